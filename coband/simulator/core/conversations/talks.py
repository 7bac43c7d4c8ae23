"""A node whose protocol is written as conversations: ``async def`` functions, resumed when what they wait for is here.

There is no event loop and no clock. Hosts see an ordinary node, a function of what it is told (``core.nodes``): this
class answers ``receive``, ``undelivered`` and ``on_timer``. Authors ask, gather, hear and tell.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from types import CoroutineType
from typing import Any, ClassVar, Never, TypeVar

from coband.simulator.core.conversations.conversation import Conversations, Talking
from coband.simulator.core.conversations.question import Answers, Declined, Kinds, Line, M, Question, Steps, Unanswered
from coband.simulator.core.nodes.message import Message, NodeMistake, returned
from coband.simulator.core.nodes.node import NodeContext
from coband.simulator.core.nodes.outbox import ALL_AGENTS, Address, Later, Outbox, Recipient, called
from coband.simulator.plugins.promises import other_parameters

F = TypeVar("F", bound=Callable[..., Any])


def on(kind: type[Message], *, blocking: bool = False) -> Callable[[F], F]:
    """Mark the method that handles messages of a kind for which no conversation waits.

    It is given the message and its sender. It returns None, a message that answers, messages that are not sent again
    where they are given up ([(recipient, message)]), or is a conversation.
    """
    return _mark("on", kind, blocking)


def late(kind: type[Message], *, blocking: bool = False) -> Callable[[F], F]:
    """Mark the method that handles answers, or messages to all that continue a question, which nobody waits for."""
    return _mark("late", kind, blocking)


def lost(kind: type[Message]) -> Callable[[F], F]:
    """Mark the method that takes back what was told and did not come through, after all attempts.

    It is given the message and the node that will never have it. Without such a method the newest message of a kind is
    kept, and sent when that node is heard of.
    """
    return _mark("lost", kind)


def _mark(what: str, kind: type[Message], blocking: bool = False) -> Callable[[F], F]:
    def marked(function: F) -> F:
        if why := other_parameters(function.__qualname__, function, _marked):
            raise NodeMistake(why)
        function.__dict__.setdefault("marks", []).append((what, kind, blocking))
        return function

    return marked


def _marked(self: Talks, message: Message, source: Address) -> Any:
    """How a method that is marked is called."""


class Talks(Talking):
    """Asks and answers.

    A question that the transport gives up is asked again as often as the scenario's ``recovery`` says. Whoever waits
    for a node from which nothing comes goes on after its ``patience``.

    Attributes:
        keeps: messages that may come before a conversation waits for them.
        ignores: messages that mean nothing where no conversation waits for them.
        each: messages of which each one counts: a newer one does not take the place of one that did not come through.
    """

    keeps: ClassVar[Kinds] = ()
    ignores: ClassVar[Kinds] = ()
    _handlers: ClassVar[Mapping[tuple[str, type[Message]], tuple[str, bool]]] = {}  # method, and whether it is blocking

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        members = [one for ancestor in reversed(cls.__mro__) for one in vars(ancestor).items()]
        cls._handlers = {mark[:2]: (name, mark[2]) for name, one in members for mark in getattr(one, "marks", ())}

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self._talks: Conversations | None = None
        self._number = context.index + 1

    @property
    def talks(self) -> Conversations:
        """The state of all conversations."""
        if self._talks is None:
            self._talks = Conversations(self, self._number)
        return self._talks

    def rest(self) -> None:
        """Nothing is under way: all that is kept until there is something again is the number of the last message."""
        if self._talks is not None and type(self).main is Talks.main:
            self._number = self._talks.number
            self._talks = None

    # --- what authors write

    def ask(
        self,
        to: Address,
        message: Message,
        *,
        reply: type[M] | tuple[type[M], ...],
        public: bool = False,
        where: Callable[[Any], bool] | None = None,
        undo: Callable[[Any], None] | None = None,
        attempts: int | None = None,
        limit: float | None = None,
        **unknown: Never,
    ) -> Awaitable[M | Unanswered]:
        """Ask a node, and wait for its answer.

        Args:
            to: the node.
            message: the question.
            reply: the kind, or kinds, of message that answers.
            public: any message of these kinds from that node is an answer, also one to all.
            where: which of them.
            undo: called with the question, once, as soon as it is certain that the node will never have it, even if
                nobody waits any more.
            attempts: how often it is asked again after it was given up; else as the scenario's recovery says.
            limit: wait no longer than this, in simulated time: for nodes that may have the question and stay down.
            unknown: there are no other ways to ask.

        Returns:
            The answer, or `Unanswered`; to be awaited.
        """
        if unknown:
            raise NodeMistake(f"a question has no {', '.join(unknown)}; public, where, undo, attempts, limit")
        kinds = reply if isinstance(reply, tuple) else (reply,)
        question = Question(
            kinds=kinds,
            pending={to},
            outcome=Question.one,
            public=public,
            where=where,
            undo=undo,
            attempts=attempts,
            limit=limit,
        )
        return self.talks.put(question, message, to)

    def gather(
        self,
        message: Message | None,
        *,
        reply: type[M],
        to: Collection[Address] | None = None,
        where: Callable[[M], bool] | None = None,
        quorum: int | None = None,
        timeout: float | None = None,
        together: bool = False,
        taking: Callable[[M, Address], None] | None = None,
    ) -> Awaitable[Answers[M]]:
        """Ask all agents, or those in ``to``, and wait for all answers, or for some of them once a time has passed.

        Args:
            message: the question; None: nothing is asked, as each of them sends such a message by itself.
            reply: the kind of message that answers.
            to: addresses; None: all agents.
            where: which of these messages.
            quorum: so many answers are enough after the timeout; None: all.
            timeout: simulated time.
            together: without one of them the others' answers are worth nothing, so that the wait ends.
            taking: given each answer when it comes, and its sender; the answer is not kept, which saves memory.

        Returns:
            The answers; to be awaited.
        """
        addressed = range(self.context.agents) if to is None else sorted(to)
        members = [one for one in addressed if self.context.is_there(one)]
        needed, public = len(members) if quorum is None else quorum, message is None
        asked = Question((reply,), {*members}, Question.all, public, where, limit=timeout)
        asked.needed, asked.together, asked.taking = needed, together, taking
        return self.talks.put(asked, message, ALL_AGENTS if to is None else members)

    def hear(self, *kinds: type[M], where: Callable[[M], bool] | None = None) -> Awaitable[tuple[M, Address]]:
        """Wait for a message of these kinds that nobody was asked for.

        Args:
            kinds: of message.
            where: which of them.

        Returns:
            The message and its sender; to be awaited.
        """
        return self.talks.put(Question(kinds, set(), Question.first, public=True, where=where, anybody=True))

    def enter(self, line: Line) -> Awaitable[None]:
        """Stand in a line; the place is given up when the conversation ends, however it ends. To be awaited."""
        return self.talks.put(Question((), set(), lambda place: None, line=line))

    def tell(self, to: Recipient, message: Message) -> None:
        """Send a message, and do not wait for an answer. Within a conversation it answers what ``to`` has asked.

        It is sent again where the transport gives it up, and kept for a node that cannot be reached until that node is
        heard of, unless a newer message of its kind has been told; see `each` and `lost`.

        Args:
            to: a node, or all agents.
            message: the message.
        """
        self.talks.tell(to, message)

    def sent(self) -> Outbox:
        """What was told outside of a conversation, which is to be returned to the simulator."""
        return [] if self._talks is None or self._talks.busy else self._talks.take()

    @property
    def unsent(self) -> int:
        """How many messages were told outside of a conversation and not returned to the simulator."""
        return 0 if self._talks is None else len(self._talks.outbox)

    def begin(self, steps: Steps, *, blocking: bool = False, key: object = None) -> Outbox:
        """Begin a conversation; what it sends at once is to be returned to the simulator.

        Args:
            steps: a call of an ``async def``.
            blocking: this client takes no turn before the conversation has ended.
            key: a new conversation with the same key ends this one.
        """
        busy, talks = self.talks.busy, self._called()
        talks.begin(steps, {}, blocking, key)
        return [] if busy else talks.take()

    def end(self) -> None:
        """End all conversations where they stand."""
        while self.talks.under_way:
            self.talks.end(next(iter(self.talks.under_way.values())))

    def main(self) -> Steps | None:
        """The conversation that a node has from its beginning; it begins by waiting."""
        return None

    @property
    def collected(self) -> list[Message]:
        """Answers that have come to questions that still wait for others, in the order of arrival."""
        return [answer for question in self.talks.waits for answer in question.answers.values() if answer is not None]

    @property
    def blocked_on(self) -> Iterator[str]:
        """One sentence for each conversation under way: where it is, and what it waits for."""
        for question in self.talks.waits:
            names = map(called, sorted(question.pending))
            nodes = f" from {', '.join(names)}" if question.pending else ""
            yield f"{question.conversation}: waits for {question}{nodes}"

    # --- what hosts call

    def receive(self, message: Message, source: Address) -> Outbox:
        """Give a message to those who wait for it, or to the method that handles its kind."""
        talks = self.talks if self.talks.begun else self._called()
        talks.busy = True
        if message.pulls and talks.server is not None:
            talks.server.applied += message.pulls
        if talks.kept:
            for timer in talks.kept.pop(source, ()):
                talks.resend(timer)
        question = talks.open.get(message.answers)
        if question is not None and not talks.listening and question.take(message, source):
            talks.settle(question)  # as nearly always
        else:
            self._match(message, source, question)
        return talks.take()

    def _match(self, message: Message, source: Address, question: Question | None) -> None:
        """Give a message to all who listen for it, to those who asked, or else to the method that handles its kind."""
        talks = self.talks
        heard = [one for one in talks.listening if one.take(message, source)] if talks.listening else []
        if question is not None and question.take(message, source):
            heard.append(question)
        elif question is not None and type(message) is Declined:
            if question.message is not None:
                kind = question.message.kind
                self.declined = {**self.declined, kind: self.declined.get(kind, 0) + 1}
            talks.leave_out(question, source, "declined")
        elif not heard or (question not in heard and any(one.message for one in heard)):  # askers hear what others use
            late = message.answers and self.handled("late", message, source)
            if not (late or self.handled("on", message, source) or heard):
                self._refuse(message, source)
        for one in heard:
            talks.settle(one)

    def undelivered(self, message: Message, recipient: Address) -> Outbox:
        """Send it again while somebody waits for an answer; otherwise it is undone."""
        self._called().undelivered(message, recipient)
        return self.talks.take()

    def on_timer(self, timer: Message) -> Outbox | None:
        """Send something again, notice a silence, or go on without an answer."""
        talks = self._called()
        matters, outbox = getattr(talks, timer.kind)(timer), talks.take()
        return outbox if matters or outbox else None

    # --- messages that no question waits for

    def _called(self) -> Conversations:
        """The node is called; its main conversation begins the first time."""
        talks = self.talks
        talks.busy = True
        if not talks.begun:
            talks.begun = True
            if (steps := self.main()) is not None:
                talks.begin(steps, {})
                if any(not isinstance(to, Later) for to, _ in talks.outbox):
                    raise NodeMistake(f"{type(self).__name__}.main sends before it waits; begin with `await self.hear`")
        return talks

    def handled_by(self, message: Message) -> str:
        places = ((what, type(message)) for what in ("on", "late"))
        return next((self._handlers[place][0] for place in places if place in self._handlers), "receive")

    def handled(self, what: str, message: Message, source: Address) -> bool:
        """Call the method that is marked for its kind, and see to what it returns; False if there is none."""
        if (handler := self._handlers.get((what, type(message)))) is None:
            return False
        found, talks = getattr(self, handler[0])(message, source), self.talks
        owed = message.talk if message.asks == 1 and what != "lost" else 0
        if isinstance(found, Message):
            talks.tell(source, found, owed)
        elif isinstance(found, list):
            talks.outbox += found
        elif found is not None:
            if not isinstance(found, CoroutineType):
                wanted = "return a message that answers, a list of (recipient, message), None, or be an `async def`"
                raise returned(self, handler[0], found, wanted)
            talks.begin(found, {source: owed} if owed else {}, handler[1], (handler[0], source))
        elif owed and not message.answers:
            talks.tell(source, Declined(), owed)
        return True

    def _refuse(self, message: Message, source: Address) -> None:
        """Nobody has a use for it: its sender is told if it waits, and the author if it must not happen."""
        name, kind = type(self).__name__, type(message).__name__
        if isinstance(message, self.keeps):
            self.talks.mail.append((message, source))
        elif isinstance(message, (*self.ignores, Declined)):
            return
        elif message.pulls and self.talks.server is not None:
            what = f"say what becomes of them in a method that is marked @{'late' if message.answers else 'on'}({kind})"
            raise NodeMistake(f"{name} got a {message.kind!r} with {message.pulls} pulls that nobody waits for: {what}")
        elif message.asks == 1:
            self.talks.tell(source, Declined(), message.talk)
        elif not (message.answers or message.asks):
            what = f"mark a method with @on({kind}), or add it to `keeps` or `ignores`. {'; '.join(self.blocked_on)}"
            raise NodeMistake(f"{name} has no use for a {message.kind!r} from node {source}: {what}")
