"""The conversations of one node: which are under way, what each waits for, and what becomes of what is sent in them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from types import CoroutineType
from typing import Any
from weakref import WeakKeyDictionary

from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import Client, Node, Server
from coband.simulator.core.nodes.outbox import Address, Later, Outbox, Recipient
from coband.simulator.core.nodes.timers import OutOfPatience, Resend
from coband.simulator.core.talks.question import (
    TAKEN,
    Declined,
    Gathered,
    Heard,
    Overdue,
    Place,
    Question,
    Reason,
    Undo,
)

Steps = Coroutine[Question[Any], None, None]


class Line:
    """A queue in which conversations stand.

    Args:
        limit: so many of them are served at a time; None: all.
    """

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self.served: list[Conversation] = []
        self.queue: deque[Conversation] = deque()


class Conversation:
    """One ``async def`` under way.

    Attributes:
        blocking: the client takes no turn before it has ended.
        key: a new conversation with the same key ends this one.
        owes: by node, the number of its question that the next message to it answers.
        round: number of the last question to all, which a message to all continues.
    """

    question: Question[Any] | None = None
    line: Line | None = None
    round = 0

    def __init__(self, steps: Steps, blocking: bool = False, key: object = None) -> None:
        self.steps, self.blocking, self.key = steps, blocking, key
        self.owes: dict[Address, int] = {}

    def __str__(self) -> str:
        frame = self.steps.cr_frame if isinstance(self.steps, CoroutineType) else None
        return f"{getattr(self.steps, '__qualname__', '?')}, line {0 if frame is None else frame.f_lineno}"


class Conversations:
    """What a node's conversations have in common.

    Args:
        node: whose conversations.
        each: messages of which each one counts.
        lose: called with a message that was told and its recipient, once it is certain that the recipient will not have
            it; whether that matters to the node.

    Attributes:
        outbox: what has been sent since the node was called.
        busy: whether the node has been called and not answered yet.
        current: the conversation whose steps are being taken.
        asked: a question that was made and not awaited yet.
        open: questions that wait, by their numbers and by those that they follow.
        listening: questions that any fitting message answers.
        mail: messages that came before they were heard.
        kept: messages for nodes that cannot be reached, until they are heard of.
    """

    def __init__(self, node: Node, each: tuple[type[Message], ...], lose: Callable[[Message, Address], bool]) -> None:
        self.node, self._each, self._lose = node, each, lose
        self.client = node if isinstance(node, Client) else None
        self.server = node if isinstance(node, Server) else None
        self.outbox: Outbox = []
        self.busy = False
        self.current: Conversation | None = None
        self.asked: Question[Any] | None = None
        self.under_way: dict[Conversation, None] = {}
        self.open: dict[int, Question[Any]] = {}
        self.listening: dict[Question[Any], None] = {}
        self.mail: list[tuple[Message, Address]] = []
        self._keyed: dict[object, Conversation] = {}
        self._undo: WeakKeyDictionary[Message, Undo] = WeakKeyDictionary()  # of questions that may not have arrived
        self._newest: dict[tuple[type, Address | None], int] = {}  # what was told last, by kind and node or None: all
        self._tries: WeakKeyDictionary[Message, dict[Address, int]] = WeakKeyDictionary()
        self.kept: dict[Address, list[Message]] = {}
        self._missed: set[Address] = set()  # nodes of which something did not come when nobody waited for them
        self._step = node.context.agents + 1
        self._number = self._own = node.context.index + 1  # numbers of messages are those of their senders modulo step
        self._silences = self._blocking = 0

    def take(self) -> Outbox:
        """What has been sent; within a conversation nothing, as it goes with the rest."""
        if self.current is not None:
            return []
        if self.asked is not None:
            raise TypeError(f"{self._forgotten()}; ask within a conversation: `return self.begin(self.conversation())`")
        self.busy = False
        outbox, self.outbox = self.outbox, []
        return outbox

    # --- conversations

    def begin(self, conversation: Conversation) -> None:
        """Take its first steps."""
        if not isinstance(conversation.steps, CoroutineType):
            raise TypeError(f"{conversation.steps!r} is no conversation: begin the call of an `async def`")
        key = conversation.key
        if key is not None:
            if key in self._keyed:
                self.end(self._keyed[key])
            self._keyed[key] = conversation
        self.under_way[conversation] = None
        self._block(conversation.blocking)
        self.advance(conversation)

    def advance(self, conversation: Conversation) -> None:
        """Take its steps up to the next wait."""
        steps, outer = conversation.steps, self.current
        while True:
            self.current = conversation
            try:
                question = steps.send(None)
            except StopIteration:
                self._check_awaited(None)
                self._ended(conversation)
                return
            finally:
                self.current = outer
            if not isinstance(question, Question):
                raise TypeError(f"{conversation}: await only what `ask`, `gather`, `hear` and `enter` return")
            self._check_awaited(question)
            if not self._wait(conversation, question):
                return

    def _check_awaited(self, question: Question[Any] | None) -> None:
        if self.asked is not question:
            raise TypeError(self._forgotten())
        self.asked = None

    def _forgotten(self) -> str:
        if self.asked is None:
            return f"{type(self.node).__name__}: a question is awaited a second time; ask again with a new message"
        kinds = " or ".join(kind.__name__ for kind in self.asked.kinds) or "a place in a line"
        return f"{type(self.node).__name__} asks for {kinds} and does not wait: write `await` before it"

    def _wait(self, conversation: Conversation, question: Question[Any]) -> bool:
        """Wait; True if it is over at once."""
        conversation.question, question.conversation = question, conversation
        if isinstance(question, Place):
            return self._stand(conversation, question.line)
        if isinstance(question, Heard):
            conversation.round = 0
        if question.public:
            self.listening[question] = None
            for letter in list(self.mail):
                if not question.over and question.takes(*letter):
                    self.mail.remove(letter)
                    self._note(question, *letter)
        if not question.over:
            for source in self._missed & question.pending:
                self.missed(source)
            return False
        self._close(question)
        return True

    def _stand(self, conversation: Conversation, line: Line) -> bool:
        conversation.line = line
        if line.limit is not None and len(line.served) >= line.limit:
            line.queue.append(conversation)
            return False
        line.served.append(conversation)
        conversation.question = None
        return True

    def end(self, conversation: Conversation) -> None:
        """End it where it stands; whom it has asked in answer to a question is told that nothing follows."""
        question = conversation.question
        if question is not None:
            if question.follows and question.number:
                conversation.owes.update(dict.fromkeys(question.pending, question.follows))
            self._close(question)
        conversation.steps.close()
        self._ended(conversation)

    def _ended(self, conversation: Conversation) -> None:
        """Give free what it holds, and tell those who wait for an answer that there is none."""
        self.under_way.pop(conversation, None)
        if conversation.key is not None and self._keyed.get(conversation.key) is conversation:
            del self._keyed[conversation.key]
        self._block(-conversation.blocking)
        self.decline(conversation.owes)
        line = conversation.line
        if line is None:
            return
        if conversation in line.queue:
            line.queue.remove(conversation)
            return
        line.served.remove(conversation)
        if line.queue:
            following = line.queue.popleft()
            line.served.append(following)
            following.question = None
            self.advance(following)

    def _block(self, change: int) -> None:
        if change and self.client is not None:
            self._blocking += change
            self.client.waiting = self._blocking > 0

    # --- what is sent

    def put(self, question: Question[Any], message: Message, to: Recipient | Iterable[Address]) -> None:
        """Ask the members of a question, at one address or at several."""
        conversation = self.current
        follows = 0 if conversation is None else self._owed(conversation, to)
        number = self._stamp(message, follows, 2 if question.public else 1)
        if conversation is not None and not isinstance(to, int):
            conversation.round = number
        question.number, question.round, question.message = number, message.round, message
        self.open[number] = question
        if follows and not self._is_own(follows):
            question.follows = follows
            self.open[follows] = question
        self._send(message, to)

    def tell(self, to: Recipient, message: Message) -> None:
        """Send without waiting for an answer, and again until it has come through."""
        self._tell(to, message, 0 if self.current is None else self._owed(self.current, to))

    def _tell(self, to: Recipient, message: Message, answers: int) -> None:
        number = self._stamp(message, answers, 0)
        self._newest[type(message), to if isinstance(to, int) else None] = number
        if self.kept:
            for address in [to] if isinstance(to, int) else self.kept:
                self.kept[address] = [kept for kept in self.kept.get(address, ()) if self._is_wanted(kept, address)]
        self._send(message, to)

    def answer(self, message: Message, source: Address, question: int) -> None:
        """Answer a question at once."""
        self._tell(source, message, question)

    def _stamp(self, message: Message, answers: int, asks: int) -> int:
        """Write into a message its number, unique among those of all nodes, and what it answers."""
        fields = message.__dict__
        if "talk" in fields and message.talk:
            raise TypeError(f"this {message.kind!r} has been sent before; make a new message each time")
        self._number = number = self._number + self._step
        fields["talk"], fields["answers"], fields["asks"] = number, answers, asks
        return number

    def _is_own(self, number: int) -> bool:
        return number % self._step == self._own % self._step

    def decline(self, owed: dict[Address, int]) -> None:
        """Tell nodes that wait for an answer that there is none."""
        for source, question in owed.items():
            self.answer(Declined(), source, question)

    @staticmethod
    def _owed(conversation: Conversation, to: Recipient | Iterable[Address]) -> int:
        """The number of the question that a message answers, or of the last question to all, which it continues."""
        if isinstance(to, int):
            return conversation.owes.pop(to, conversation.round)
        conversation.owes.clear()
        return conversation.round

    def _send(self, message: Message, to: Recipient | Iterable[Address]) -> None:
        if message.pulls and self.client is not None:
            self.client.unshared -= message.pulls
        if isinstance(to, list):
            self.outbox += [(address, message) for address in to]
        else:
            self.outbox.append((to, message))  # type: ignore[arg-type]

    # --- what comes

    def arrived(self, source: Address) -> None:
        """A message of a node has come, so that what is kept for it can be sent."""
        for message in self.kept.pop(source, ()):
            self._send(message, source)

    def answered(self, question: Question[Any], message: Message, source: Address) -> None:
        """A message is an answer to a question."""
        self._note(question, message, source)
        self._settle(question)

    def _note(self, question: Question[Any], message: Message, source: Address) -> None:
        question.answers[source] = message
        question.certain |= message.answers == question.number
        if isinstance(question, Gathered) and question.taking is not None:
            question.taking(message, source)
            question.answers[source] = TAKEN
        question.pending.discard(source)
        if message.asks == 1:
            question.conversation.owes[source] = message.talk

    def leave_out(self, question: Question[Any], address: Address, reason: Reason) -> None:
        """A node will not answer; unless the conversation goes on with it, it is told that nothing follows."""
        question.pending.discard(address)
        question.left[address] = reason
        if question.follows and question.number:
            question.conversation.owes[address] = question.follows
        self._settle(question)

    def _settle(self, question: Question[Any]) -> None:
        if question.over:
            self._close(question)
            self.advance(question.conversation)

    def _close(self, question: Question[Any]) -> None:
        question.conversation.question = None
        for number in (question.number, question.follows):
            if number and self.open.get(number) is question:
                del self.open[number]
        self.listening.pop(question, None)
        message, question.message = question.message, None
        if message is not None and question.undo is not None and not question.certain:
            if question.held:
                question.undo(message)
            else:
                self._undo[message] = question.undo

    # --- what does not come through

    def undelivered(self, message: Message, recipient: Address) -> None:
        """Send it again while it is wanted; otherwise it is undone."""
        if self.client is not None and message.pulls:
            self.client.unshared += message.pulls
        if not message.talk:
            return
        question = self.open.get(message.talk)
        if not self._is_wanted(message, recipient):
            self._undone(message, recipient)
            return
        if question is not None:
            question.held = {*question.held, recipient}
        self._again(message, recipient, question)

    def _is_wanted(self, message: Message, recipient: Address) -> bool:
        """Whether its answer is waited for, it is an answer itself, or nothing newer of its kind has been told."""
        question = self.open.get(message.talk)
        if question is not None or message.asks:
            return question is not None and recipient in question.pending
        kind = type(message)
        if kind in self._each or (message.answers and not self._is_own(message.answers)):
            return True
        return message.talk >= max(self._newest.get((kind, recipient), 0), self._newest.get((kind, None), 0))

    def _again(self, message: Message, recipient: Address, question: Question[Any] | None) -> None:
        """Once more after a while, which grows; when all attempts are used up the node goes on without it."""
        policy, counts = self.node.context.recovery, self._tries.setdefault(message, {})
        tries = counts.pop(recipient, 0)
        attempts = None if question is None else question.attempts
        if tries < (policy.attempts if attempts is None else attempts):
            counts[recipient] = tries + 1
            timer = Resend(copy=message, about=recipient, round=message.round, version=message.version)
            self.outbox.append((Later(policy.delay(tries)), timer))
        elif question is not None:
            self.leave_out(question, recipient, "undelivered")
        elif not self._undone(message, recipient):
            self.kept.setdefault(recipient, []).append(message)

    def _undone(self, message: Message, recipient: Address) -> bool:
        """It is certain that ``recipient`` will not have it; True if that matters to the node."""
        undo = self._undo.pop(message, None)
        if undo is not None:
            undo(message)
        return self._lose(message, recipient)

    def resend(self, timer: Resend) -> bool:
        """The time has come to send a message again; False if it is not wanted any more."""
        message, recipient = timer.copy, timer.about
        assert recipient is not None
        if not self._is_wanted(message, recipient):
            return False
        if (question := self.open.get(message.talk)) is not None:
            question.held = {address for address in question.held if address != recipient}
        self._send(message, recipient)
        return True

    def missed(self, source: Address) -> bool:
        """Something of a node does not come: be patient for a while, or when it is waited for; False if it is not."""
        waiting = self._waiting_for(source)
        if waiting:
            self._silences += 1
            for question in waiting:
                question.silences = {**question.silences, source: self._silences}
            self._missed.discard(source)
            timer = OutOfPatience(about=source, number=self._silences, round=waiting[0].round)
            self.outbox.append((Later(self.node.context.recovery.patience), timer))
        else:
            self._missed.add(source)
        return bool(waiting)

    def go_on(self, timer: OutOfPatience) -> bool:
        """Go on without the answers of a node, if nothing more of it has been missed since; False if nobody waits."""
        source = timer.about
        assert source is not None
        waiting = [one for one in self._waiting_for(source) if one.silences.get(source) == timer.number]
        for question in waiting:
            if question.conversation.question is question and source in question.pending:
                self.leave_out(question, source, "silent")
        return bool(waiting)

    def _waiting_for(self, source: Address) -> list[Question[Any]]:
        questions = [conversation.question for conversation in self.under_way]
        return [question for question in questions if question is not None and source in question.pending]

    def expire(self, timer: Overdue) -> bool:
        """The time of a question is over; False if it has ended before."""
        question = self.open.get(timer.question)
        if question is None or question.number != timer.question:
            return False
        question.expire()
        self._settle(question)
        return True
