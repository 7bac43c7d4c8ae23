"""A node whose protocol is written as conversations: ``async def`` functions, resumed when what they wait for is here.

There is no event loop and no clock. Hosts see an ordinary node, a function of what it is told (``core.nodes``): this
class answers ``receive``, ``undelivered`` and ``on_timer``. Authors ask, gather, hear and tell.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple, TypedDict, TypeVar, Unpack, overload

from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import Node, NodeContext
from coband.simulator.core.nodes.outbox import ALL_AGENTS, Address, Later, Outbox, Recipient
from coband.simulator.core.nodes.timers import OutOfPatience, Resend, Silence
from coband.simulator.core.talks.conversation import Conversation, Conversations, Line, Steps
from coband.simulator.core.talks.question import (
    Answers,
    Asked,
    Declined,
    Gathered,
    Heard,
    Overdue,
    Place,
    Question,
    Unanswered,
    Undo,
)

M = TypeVar("M", bound=Message)
M2 = TypeVar("M2", bound=Message)
M3 = TypeVar("M3", bound=Message)
F = TypeVar("F", bound=Callable[..., Any])


class How(TypedDict, total=False):
    """How a node is asked.

    Attributes:
        undo: called with the question, once, as soon as it is certain that the node will never have it, even if nobody
            waits any more.
        attempts: how often it is asked again after it was given up; else as the scenario's recovery says.
        limit: wait no longer than this, in simulated time: for nodes that may have the question and stay down.
        public: any message of these kinds from that node is an answer, also one to all.
        where: which of them.
    """

    undo: Undo
    attempts: int
    limit: float
    public: bool
    where: Callable[[Any], bool]


class Handler(NamedTuple):
    """What a class does about messages of one kind: the name of its method, and whether turns wait for its end."""

    name: str
    blocking: bool


def on(kind: type[Message], *, blocking: bool = False) -> Callable[[F], F]:
    """Mark the method that handles messages of a kind for which no conversation waits.

    It is given the message and its sender. It returns None, a message that answers, messages that are not sent again
    where they are given up ([(recipient, message)]), or is a conversation.
    """
    return _mark("handles", kind, blocking)


def late(kind: type[Message], *, blocking: bool = False) -> Callable[[F], F]:
    """Mark the method that handles answers, or messages to all that continue a question, which nobody waits for."""
    return _mark("handles_late", kind, blocking)


def lost(kind: type[Message]) -> Callable[[F], F]:
    """Mark the method that takes back what was told and did not come through, after all attempts.

    It is given the message and the node that will never have it. Without such a method the newest message of a kind is
    kept, and sent when that node is heard of.
    """
    return _mark("takes_back", kind, False)


def _mark(what: str, kind: type[Message], blocking: bool) -> Callable[[F], F]:
    def marked(function: F) -> F:
        function.__dict__.setdefault(what, []).append((kind, blocking))
        return function

    return marked


class Talks(Node):
    """Asks and answers.

    A question that the transport gives up is asked again as often as the scenario's ``recovery`` says. Whoever waits
    for a node from which nothing comes goes on after its ``patience``.

    Attributes:
        keeps: messages that may come before a conversation waits for them.
        ignores: messages that mean nothing where no conversation waits for them.
        each: messages of which each one counts: a newer one does not take the place of one that did not come through.
        talks: the state of all conversations.
    """

    keeps: ClassVar[tuple[type[Message], ...]] = ()
    ignores: ClassVar[tuple[type[Message], ...]] = ()
    each: ClassVar[tuple[type[Message], ...]] = ()
    _handlers: ClassVar[Mapping[type[Message], Handler]] = {}
    _late_handlers: ClassVar[Mapping[type[Message], Handler]] = {}
    _losses: ClassVar[Mapping[type[Message], Handler]] = {}

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        cls._handlers, cls._late_handlers = _marked(cls, "handles"), _marked(cls, "handles_late")
        cls._losses = _marked(cls, "takes_back")

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.talks = Conversations(self, self.each, self._lose)
        self._begun = False

    # --- what authors write

    @overload
    def ask(
        self, to: Address, message: Message, *, reply: type[M], **how: Unpack[How]
    ) -> Awaitable[M | Unanswered]: ...

    @overload
    def ask(
        self, to: Address, message: Message, *, reply: tuple[type[M], type[M2]], **how: Unpack[How]
    ) -> Awaitable[M | M2 | Unanswered]: ...

    @overload
    def ask(
        self, to: Address, message: Message, *, reply: tuple[type[M], type[M2], type[M3]], **how: Unpack[How]
    ) -> Awaitable[M | M2 | M3 | Unanswered]: ...

    def ask(self, to: Address, message: Message, *, reply: Any, **how: Unpack[How]) -> Any:
        """Ask a node, and wait for its answer.

        Args:
            to: the node.
            message: the question.
            reply: the kind, or kinds, of message that answers.
            how: see `How`.

        Returns:
            The answer, or `Unanswered`; to be awaited.
        """
        question: Asked[Any] = Asked(reply if isinstance(reply, tuple) else (reply,), (to,))
        limit = how.pop("limit", None)
        if how:
            question.__dict__.update(how)
        self._put(question, message, to, limit)
        return question

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
        members: Collection[Address] = range(self.context.agents) if to is None else to
        question: Gathered[M] = Gathered((reply,), members)
        question.taking, question.where = taking, where
        question.together, question.needed = together, len(members) if quorum is None else quorum
        question.public = message is None
        self._put(question, message, ALL_AGENTS if to is None else sorted(to), timeout)
        return question

    def _put(self, question: Question[Any], message: Message | None, to: Any, limit: float | None) -> None:
        self._make(question)
        if message is None:
            return
        self.talks.put(question, message, to)
        if limit is not None:
            overdue = Overdue(question=question.number, round=message.round)
            self.talks.outbox.append((Later(limit), overdue))

    def _make(self, question: Question[Any]) -> None:
        if self.talks.asked is not None:
            self.talks.take()
        self.talks.asked = question

    @overload
    def hear(
        self, *kinds: type[M], where: Callable[[M], bool] | None = ..., of: None = ...
    ) -> Awaitable[tuple[M, Address]]: ...

    @overload
    def hear(
        self, *kinds: type[M], where: Callable[[M], bool] | None = ..., of: Collection[Address]
    ) -> Awaitable[tuple[M, Address] | Unanswered]: ...

    def hear(self, *kinds: Any, where: Any = None, of: Collection[Address] | None = None) -> Any:
        """Wait for a message of these kinds that nobody was asked for.

        Args:
            kinds: of message.
            where: which of them.
            of: the nodes that it may come from, and each of which is expected to send one; None: all nodes.

        Returns:
            The message and its sender, or `Unanswered` if one of these nodes is silent; to be awaited.
        """
        question = Heard(kinds, () if of is None else of)
        question.public, question.where = True, where
        self._make(question)
        return question

    def enter(self, line: Line) -> Awaitable[None]:
        """Stand in a line; the place is given up when the conversation ends, however it ends. To be awaited."""
        place = Place(line)
        self._make(place)
        return place

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
        return self.talks.take()

    def begin(self, steps: Steps, *, blocking: bool = False, key: object = None) -> Outbox:
        """Begin a conversation; what it sends at once is to be returned to the simulator.

        Args:
            steps: a call of an ``async def``.
            blocking: this client takes no turn before the conversation has ended.
            key: a new conversation with the same key ends this one.
        """
        talks = self.talks
        if not self._begun:
            self._begin_main()
        talks.begin(Conversation(steps, blocking, key))
        return [] if talks.busy else talks.take()

    def end(self) -> None:
        """End all conversations where they stand."""
        for conversation in list(self.talks.under_way):
            self.talks.end(conversation)

    def main(self) -> Steps | None:
        """The conversation that a node has from its beginning; it begins by waiting."""
        return None

    @property
    def collected(self) -> list[Message]:
        """Answers that have come to questions that still wait for others, in the order of arrival."""
        questions = [conversation.question for conversation in self.talks.under_way]
        return [answer for question in questions if question is not None for answer in question.answers.values()]

    @property
    def blocked_on(self) -> Iterator[str]:
        """One sentence for each conversation under way: where it is, and what it waits for."""
        for conversation in self.talks.under_way:
            if (question := conversation.question) is not None:
                kinds = " or ".join(kind.__name__ for kind in question.kinds) or "a place in a line"
                nodes = f" from {sorted(question.pending)}" if question.members else ""
                yield f"{conversation}: waits for {kinds}{nodes}"

    # --- what hosts call

    def receive(self, message: Message, source: Address) -> Outbox:
        """Give a message to those who wait for it, or to the method that handles its kind."""
        talks = self.talks
        talks.busy = True
        if not self._begun:
            self._begin_main()
        if message.pulls and talks.server is not None:
            talks.server.applied += message.pulls
        if talks.kept:
            talks.arrived(source)
        question = talks.open.get(message.answers) if message.answers else None
        if question is not None and source in question.pending:
            if type(message) is Declined:
                talks.leave_out(question, source, "declined")
                return talks.take()
            if question.takes(message, source):
                if talks.listening:
                    self._overhear(message, source, question)
                talks.answered(question, message, source)
                return talks.take()
        if not (talks.listening and self._overhear(message, source, None)):
            self._handle(message, source, wanted=False)
        return talks.take()

    def undelivered(self, message: Message, recipient: Address) -> Outbox:
        """Send it again while somebody waits for an answer; otherwise it is undone."""
        self.talks.busy = True
        self.talks.undelivered(message, recipient)
        return self.talks.take()

    def on_timer(self, timer: Message) -> Outbox | None:
        """Send something again, notice a silence, or go on without an answer."""
        talks, matters = self.talks, False
        talks.busy = True
        self._begin_main()
        if isinstance(timer, Resend):
            matters = talks.resend(timer)
        elif isinstance(timer, Silence):
            assert timer.about is not None
            matters = talks.missed(timer.about) or self._find_out(timer, timer.about)
        elif isinstance(timer, OutOfPatience):
            matters = talks.go_on(timer)
        elif isinstance(timer, Overdue):
            matters = talks.expire(timer)
        outbox = talks.take()
        return outbox if matters or outbox else None

    # --- messages that no question waits for

    def _begin_main(self) -> None:
        if not self._begun:
            self._begun = True
            if (steps := self.main()) is not None:
                self.talks.begin(Conversation(steps))
                if any(not isinstance(to, Later) for to, _ in self.talks.outbox):
                    raise TypeError(f"{type(self).__name__}.main sends before it waits; begin with `await self.hear`")

    def _overhear(self, message: Message, source: Address, answered: Question[Any] | None) -> bool:
        """Give it to those who listen; True if somebody has heard it, and nothing else is to be done."""
        talks = self.talks
        heard = [one for one in talks.listening if one is not answered and one.takes(message, source)]
        if not heard:
            return False
        asked = [one for one in heard if one.number]  # who asks hears what is for others, too
        if asked and answered is None:
            self._handle(message, source, wanted=True)
        for question in heard:
            if question in talks.listening:
                talks.answered(question, message, source)
        return True

    def _lose(self, message: Message, recipient: Address) -> bool:
        handler = self._losses.get(type(message))
        if handler is not None:
            getattr(self, handler.name)(message, recipient)
        return handler is not None

    def _find_out(self, silence: Silence, source: Address) -> bool:
        handler = self._handlers.get(Silence)
        if handler is not None:
            self._call(handler, silence, source)
        return handler is not None

    def _handle(self, message: Message, source: Address, *, wanted: bool) -> None:
        """Call the method that handles its kind; ``wanted``: somebody else has a use for it."""
        kind = type(message)
        handler = (self._late_handlers.get(kind) if message.answers else None) or self._handlers.get(kind)
        if handler is not None:
            self._call(handler, message, source)
        elif wanted or isinstance(message, (*self.ignores, Declined)):
            return
        elif isinstance(message, self.keeps):
            self.talks.mail.append((message, source))
        else:
            self._refuse(message, source)

    def _call(self, handler: Handler, message: Message, source: Address) -> None:
        found, talks = getattr(self, handler.name)(message, source), self.talks
        owed = message.talk if message.asks == 1 else 0
        if found is None:
            if owed and not message.answers:
                talks.decline({source: owed})
        elif isinstance(found, Message):
            talks.answer(found, source, owed)
        elif isinstance(found, list):
            talks.outbox += found
        else:
            conversation = Conversation(found, handler.blocking, (handler.name, source))
            if owed:
                conversation.owes[source] = owed
            talks.begin(conversation)

    def _refuse(self, message: Message, source: Address) -> None:
        """Nobody has a use for it: its sender is told if it waits, and the author if it must not happen."""
        kind = type(message).__name__
        if message.pulls and self.talks.server is not None:
            raise TypeError(
                f"{type(self).__name__} got a {message.kind!r} with {message.pulls} pulls that nobody waits for: say "
                f"what becomes of them in a method that is marked @late({kind})"
            )
        if message.asks == 1:
            self.talks.decline({source: message.talk})
        elif not (message.answers or message.asks):
            raise TypeError(
                f"{type(self).__name__} has no use for a {message.kind!r} from node {source}: mark a method with "
                f"@on({kind}), or add {kind} to `keeps` or `ignores`. " + "; ".join(self.blocked_on)
            )


def _marked(cls: type, what: str) -> dict[type[Message], Handler]:
    """The methods of a class, and of its bases, that are marked, by the kind of message."""
    return {
        kind: Handler(name, blocking)
        for ancestor in reversed(cls.__mro__)
        for name, member in vars(ancestor).items()
        for kind, blocking in getattr(member, what, ())
    }
