"""The conversations of one node: which are under way, what each waits for, and what becomes of what is sent in them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from types import CoroutineType
from typing import Any
from weakref import WeakKeyDictionary

from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import Client, Node
from coband.simulator.core.nodes.outbox import Address, Later, Outbox, Recipient
from coband.simulator.core.nodes.timers import OutOfPatience, Resend
from coband.simulator.core.talks.question import Declined, Kinds, Overdue, Question, R, Reason, Undo

Steps = Coroutine[Question[Any], None, None]


class Line:
    """A queue in which conversations stand.

    Args:
        limit: so many of them are served at a time; None: all.
    """

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self._standing: list[Conversation] = []

    def enter(self, conversation: Conversation) -> bool:
        """Stand at its end; whether it is served at once."""
        self._standing.append(conversation)
        return self.limit is None or len(self._standing) <= self.limit

    def leave(self, conversation: Conversation) -> Conversation | None:
        """Give up its place; who is served instead."""
        place, limit = self._standing.index(conversation), self.limit
        del self._standing[place]
        return None if limit is None or not place < limit <= len(self._standing) else self._standing[limit - 1]


class Conversation:
    """One ``async def`` under way.

    Attributes:
        questions: what it waits for, one after the other.
        blocking: the client takes no turn before it has ended.
        key: a new conversation with the same key ends this one.
        owes: by node, the number of its question that the next message to it answers.
        round: number of the last question to all, which a message to all continues.
    """

    question: Question[Any] | None = None
    line: Line | None = None
    round = 0

    def __init__(self, steps: Steps, owes: dict[Address, int], blocking: bool = False, key: object = None) -> None:
        if not isinstance(steps, CoroutineType):
            raise TypeError(f"{steps!r} is no conversation: begin the call of an `async def`")
        self.steps, self.questions, self.blocking = steps, steps.__await__(), blocking
        self.owes, self.key = owes, self if key is None else key

    def __str__(self) -> str:
        frame = self.steps.cr_frame
        return f"{self.steps.__qualname__}, line {0 if frame is None else frame.f_lineno}"


class Conversations:
    """What a node's conversations have in common.

    Args:
        node: whose conversations.
        each: messages of which each one counts.
        lose: called with a message that was told and its recipient, once it is certain that the recipient will not have
            it; whether that matters to the node.

    Attributes:
        outbox: what has been sent since the node was called.
        begun: whether the node has begun its main conversation.
        busy: whether the node has been called and not answered yet.
        current: the conversation whose steps are being taken.
        asked: a question that was made and not awaited yet.
        under_way: conversations by their keys.
        open: questions that wait, by their numbers and by those that they follow.
        listening: questions that any fitting message answers.
        mail: messages that came before they were heard.
        kept: messages for nodes that cannot be reached, until they are heard of.
    """

    begun = busy = False
    current: Conversation | None = None
    asked: Question[Any] | None = None

    def __init__(self, node: Node, each: Kinds, lose: Callable[[Message, Address], bool]) -> None:
        self.node, self._each, self._lose = node, each, lose
        self.client = node if isinstance(node, Client) else None
        self.outbox: Outbox = []
        self.under_way: dict[object, Conversation] = {}
        self.open: dict[int, Question[Any]] = {}
        self.listening: dict[Question[Any], None] = {}
        self.mail: list[tuple[Message, Address]] = []
        self.kept: dict[Address, list[Message]] = {}
        self._undo: WeakKeyDictionary[Message, Undo] = WeakKeyDictionary()  # of questions that may not have arrived
        self._newest: dict[tuple[type, Address | None], int] = {}  # what was told last, by kind and node or None: all
        self._tries: WeakKeyDictionary[Message, dict[Address, int]] = WeakKeyDictionary()
        self._missed: set[Address] = set()  # nodes of which something did not come when nobody waited for them
        self._patience: dict[Address, tuple[int, list[Question[Any]]]] = {}  # who waits since the newest silence
        self._silences = 0
        self._step = node.context.agents + 1
        self._number = self._own = node.context.index + 1  # numbers of messages are those of their senders modulo step

    def take(self) -> Outbox:
        """What has been sent since the node was called."""
        if self.asked is not None:
            raise TypeError(self._forgotten(self.asked))
        self.busy = False
        outbox, self.outbox = self.outbox, []
        return outbox

    @property
    def waits(self) -> list[Question[Any]]:
        """All that is waited for."""
        return [one.question for one in self.under_way.values() if one.question is not None]

    # --- conversations

    def begin(self, conversation: Conversation) -> None:
        """Take its first steps."""
        if (older := self.under_way.get(conversation.key)) is not None:
            self.end(older)
        self.under_way[conversation.key] = conversation
        if conversation.blocking:
            self._hold_turns()
        self.advance(conversation)

    def advance(self, conversation: Conversation) -> None:
        """Take its steps up to the next wait."""
        outer, self.current = self.current, conversation
        for question in conversation.questions:
            if not self._goes_on(conversation, question):
                break
        else:
            self._ended(conversation)
        self.current = outer

    def expect(self, question: Question[R]) -> Question[R]:
        """It has been made, and is to be awaited."""
        if self.current is None or self.asked is not None:
            raise TypeError(self._forgotten(self.asked or question))
        self.asked = question
        return question

    def _forgotten(self, question: Question[Any]) -> str:
        where = "in a conversation that begins with `return self.begin(self.conversation())`"
        return f"{type(self.node).__name__} asks for {question} and does not wait: write `await` before it, {where}"

    def _goes_on(self, conversation: Conversation, question: Question[Any]) -> bool:
        """A conversation waits; whether it does not have to."""
        if not isinstance(question, Question):
            raise TypeError(f"{conversation}: await only what `ask`, `gather`, `hear` and `enter` return")
        if self.asked is not question:
            raise TypeError(f"{conversation}: a question is awaited a second time; ask again with a new message")
        self.asked = None
        conversation.question, question.conversation = question, conversation
        if question.line is not None:
            conversation.line = question.line
            served: bool = question.line.enter(conversation)
            return served
        if question.members is None:
            conversation.round = 0
        if question.public:
            self.listening[question] = None
            for letter in list(self.mail):
                if not question.over and question.takes(*letter):
                    self.mail.remove(letter)
                    self._note(question, *letter)
        if question.over:
            self._close(question)
            return True
        for source in self._missed & question.pending:
            self.missed(source)
        return False

    def end(self, conversation: Conversation) -> None:
        """End it where it stands."""
        if conversation.question is not None:
            self._close(conversation.question)
        conversation.steps.close()
        self._ended(conversation)

    def _ended(self, conversation: Conversation) -> None:
        """Give free what it holds, and tell those who wait for an answer that there is none."""
        if self.under_way.get(conversation.key) is conversation:
            del self.under_way[conversation.key]
        if conversation.blocking:
            self._hold_turns()
        self.decline(conversation.owes)
        if conversation.line is not None and (following := conversation.line.leave(conversation)) is not None:
            self.advance(following)

    def _hold_turns(self) -> None:
        if self.client is not None:
            self.client.waiting = any(conversation.blocking for conversation in self.under_way.values())

    # --- what is sent

    def put(
        self, question: Question[R], message: Message | None, to: Recipient | list[Address], limit: float | None
    ) -> Question[R]:
        """Ask one node or several; None: they send what answers it by themselves."""
        self.asked = self.expect(question)
        if message is None:
            return question
        follows = self._owed(to)
        question.message, question.number = message, self._stamp(message, follows, 2 if question.public else 1)
        self.open[question.number] = question
        if self.current is not None and not isinstance(to, int):
            self.current.round = question.number
        if follows and not self._is_own(follows):
            question.follows = follows
            self.open[follows] = question
        self._send(message, to)
        if limit is not None:
            self.outbox.append((Later(limit), Overdue(question=question.number, round=message.round)))
        return question

    def tell(self, to: Recipient, message: Message, answers: int | None = None) -> None:
        """Send without waiting for an answer, and again until it has come through."""
        number = self._stamp(message, self._owed(to) if answers is None else answers, 0)
        self._newest[type(message), to if isinstance(to, int) else None] = number
        self._send(message, to)

    def decline(self, owed: Mapping[Address, int]) -> None:
        """Tell nodes that wait for an answer that there is none."""
        for source, question in owed.items():
            self.tell(source, Declined(), question)

    def _stamp(self, message: Message, answers: int, asks: int) -> int:
        """Write into a message its number, unique among those of all nodes, and what it answers."""
        if message.talk:
            raise TypeError(f"this {message.kind!r} has been sent before; make a new message each time")
        fields, self._number = message.__dict__, self._number + self._step
        fields["talk"], fields["answers"], fields["asks"] = self._number, answers, asks
        return self._number

    def _is_own(self, number: int) -> bool:
        return number % self._step == self._own

    def _owed(self, to: Recipient | list[Address]) -> int:
        """The number of the question that a message answers, or of the last question to all, which it continues."""
        if self.current is None:
            return 0
        if isinstance(to, int):
            return self.current.owes.pop(to, self.current.round)
        self.current.owes.clear()
        return self.current.round

    def _send(self, message: Message, to: Recipient | list[Address]) -> None:
        if self.client is not None:
            self.client.unshared -= message.pulls
        if isinstance(to, list):
            self.outbox += [(address, message) for address in to]
        else:
            self.outbox.append((to, message))

    # --- what comes

    def arrived(self, source: Address) -> None:
        """A message of a node has come, so that what is kept for it can be sent."""
        for message in self.kept.pop(source, ()):
            if self._is_wanted(message, source):
                self._send(message, source)

    def answered(self, question: Question[Any], message: Message, source: Address) -> None:
        """A message is an answer to a question."""
        self._note(question, message, source)
        self._settle(question)

    def _note(self, question: Question[Any], message: Message, source: Address) -> None:
        question.take(message, source)
        if message.asks == 1:
            question.conversation.owes[source] = message.talk

    def leave_out(self, question: Question[Any], address: Address, reason: Reason) -> bool:
        """A node will not answer; False if it is not waited for."""
        waited = address in question.pending and question.conversation.question is question
        if waited:
            question.pending.discard(address)
            question.left[address] = reason
            self._settle(question)
        return waited

    def _settle(self, question: Question[Any]) -> None:
        if question.over:
            self._close(question)
            self.advance(question.conversation)

    def _close(self, question: Question[Any]) -> None:
        """Wait for it no longer. Whom it has answered is told that nothing follows, unless the conversation goes on."""
        question.conversation.question = None
        self.open.pop(question.number, None)
        if question.follows:
            del self.open[question.follows]
        if question.follows and not question.answers:
            question.conversation.owes.update(dict.fromkeys(question.members or (), question.follows))
        if question.public:
            del self.listening[question]
        message, question.message = question.message, None
        if message is None or question.undo is None or (question.answers and not question.public):
            return
        if question.held:
            question.undo(message)
        else:
            self._undo[message] = question.undo

    # --- what does not come through

    def undelivered(self, message: Message, recipient: Address) -> None:
        """Send it again after a while as long as it is wanted, with growing waits; at last it is undone, or kept."""
        if self.client is not None:
            self.client.unshared += message.pulls
        if not message.talk:
            return
        if not self._is_wanted(message, recipient):
            self._undone(message, recipient)
            return
        question, policy = self.open.get(message.talk), self.node.context.recovery
        attempts = policy.attempts
        if question is not None:
            question.held = True
            attempts = attempts if question.attempts is None else question.attempts
        counts = self._tries.setdefault(message, {})
        tries = counts.pop(recipient, 0)
        if tries < attempts:
            counts[recipient] = tries + 1
            timer = Resend(copy=message, about=recipient, round=message.round, version=message.version)
            self.outbox.append((Later(policy.delay(tries)), timer))
        elif question is not None:
            self.leave_out(question, recipient, "undelivered")
        elif not self._undone(message, recipient):
            kept = [one for one in self.kept.get(recipient, ()) if self._is_wanted(one, recipient)]
            self.kept[recipient] = [*kept, message]

    def _is_wanted(self, message: Message, recipient: Address) -> bool:
        """Whether its answer is waited for, it is an answer itself, or nothing newer of its kind has been told."""
        question = self.open.get(message.talk)
        if question is not None or message.asks:
            return question is not None and recipient in question.pending
        kind = type(message)
        if kind in self._each or (message.answers and not self._is_own(message.answers)):
            return True
        return message.talk >= max(self._newest.get((kind, to), 0) for to in (recipient, None))

    def _undone(self, message: Message, recipient: Address) -> bool:
        """It is certain that ``recipient`` will not have it; True if that matters to the node."""
        if (undo := self._undo.pop(message, None)) is not None:
            undo(message)
        return self._lose(message, recipient)

    def resend(self, timer: Resend) -> bool:
        """The time has come to send a message again; False if it is not wanted any more."""
        wanted = self._is_wanted(timer.copy, timer.about)
        if wanted:
            if (question := self.open.get(timer.copy.talk)) is not None:
                question.held = False
            self._send(timer.copy, timer.about)
        return wanted

    def missed(self, source: Address) -> bool:
        """Something of a node does not come: be patient for a while, or when it is waited for; False if it is not."""
        waiting = [question for question in self.waits if source in question.pending]
        if not waiting:
            self._missed.add(source)
            return False
        self._missed.discard(source)
        self._silences += 1
        self._patience[source] = self._silences, waiting
        asked = waiting[0].message or Message()
        timer = OutOfPatience(about=source, number=self._silences, round=asked.round)
        self.outbox.append((Later(self.node.context.recovery.patience), timer))
        return True

    def go_on(self, timer: OutOfPatience) -> bool:
        """Go on without the answers of a node, if nothing more of it has been missed since; False if nobody waits."""
        number, waiting = self._patience[timer.about]
        if number != timer.number:
            return False
        return sum(self.leave_out(question, timer.about, "silent") for question in waiting) > 0

    def expire(self, timer: Overdue) -> bool:
        """The time of a question is over; False if it has ended before."""
        question = self.open.get(timer.question)
        if question is not None:
            question.overdue = True
            self._settle(question)
        return question is not None
