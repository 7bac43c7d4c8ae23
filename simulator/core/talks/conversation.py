"""The conversations of one node: which are under way, what each waits for, and what becomes of what is sent in them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from types import CoroutineType
from typing import Any
from weakref import WeakKeyDictionary

from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import Client, Node, Server
from coband.simulator.core.nodes.outbox import SERVER, Address, Later, Outbox, Recipient
from coband.simulator.core.nodes.timers import OutOfPatience, Overdue, Resend, Silence
from coband.simulator.core.talks.question import Declined, Kinds, Line, Question, Reason

Recipients = Recipient | list[Address]
Steps = Coroutine[Question, None, None]


class Conversation:
    """One ``async def`` under way.

    Attributes:
        questions: what it waits for, one after the other.
        owes: by node, the number of its question that the next message to it answers.
        blocking: the client takes no turn before it has ended.
        key: a new conversation with the same key ends this one.
        question: what it waits for now.
        line: the line in which it has a place.
        round: number of the last question to all, which a message to all continues.
    """

    question: Question | None = None
    line: Line | None = None
    round = 0

    def __init__(self, steps: Steps, owes: dict[Address, int], blocking: bool = False, key: object = None) -> None:
        if not isinstance(steps, CoroutineType):
            raise TypeError(f"{steps!r} is no conversation: begin the call of an `async def`")
        self.steps, self.questions = steps, steps.__await__()
        self.owes, self.blocking, self.key = owes, blocking, self if key is None else key

    def __str__(self) -> str:
        return f"{self.steps.__qualname__}, line {getattr(self.steps.cr_frame, 'f_lineno', 0)}"


class Conversations:
    """What a node's conversations have in common.

    Args:
        node: whose conversations.
        each: messages of which each one counts.
        handled: calls the method that the node has for a message, if there is one.

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
    asked: Question | None = None

    def __init__(self, node: Node, each: Kinds, handled: Callable[[str, Message, Address], bool]) -> None:
        self.node, self._each, self._handled = node, each, handled
        self.client = node if isinstance(node, Client) else None
        self.server = node if isinstance(node, Server) else None
        self.outbox: Outbox = []
        self.under_way: dict[object, Conversation] = {}
        self.open: dict[int, Question] = {}
        self.listening: dict[Question, None] = {}
        self.mail: list[tuple[Message, Address]] = []
        self.kept: dict[Address, list[Message]] = {}
        self._undo: WeakKeyDictionary[Message, Callable[[Any], None]] = WeakKeyDictionary()  # if it has not arrived
        self._tries: WeakKeyDictionary[Message, dict[Address, int]] = WeakKeyDictionary()
        self._newest: dict[tuple[type, Address | None], int] = {}  # what was told last, by kind and node or None: all
        self._missed: set[Address] = set()  # nodes of which something did not come when nobody waited for them
        self._patience: dict[Address, tuple[int, list[Question]]] = {}  # number of a silence, and who waits
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
    def waits(self) -> list[Question]:
        """All that is waited for."""
        return [one.question for one in self.under_way.values() if one.question is not None]

    # --- conversations

    def begin(self, conversation: Conversation) -> None:
        """Take its first steps."""
        if (older := self.under_way.get(conversation.key)) is not None:
            self.end(older)
        self.under_way[conversation.key] = conversation
        self._hold_turns(conversation)
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

    def _goes_on(self, conversation: Conversation, question: Question) -> bool:
        """A conversation waits; True if it does not have to."""
        if self.asked is not question:
            what = "await only what `ask`, `gather`, `hear` and `enter` return, and each once; a new message asks again"
            raise TypeError(f"{conversation}: {what}")
        self.asked = None
        conversation.question, question.conversation = question, conversation
        if question.line is not None:
            conversation.line = question.line
            return question.line.enter(conversation)
        if question.members is None:
            conversation.round = 0
        if question.public:
            self.listening[question] = None
            for letter in list(self.mail):
                if not question.over and question.takes(*letter):
                    self.mail.remove(letter)
                    question.take(*letter)
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
        self._hold_turns(conversation)
        self.decline(conversation.owes)
        if conversation.line is not None and (following := conversation.line.leave(conversation)) is not None:
            self.advance(following)

    def _hold_turns(self, changed: Conversation) -> None:
        if changed.blocking and self.client is not None:
            self.client.waiting = any(conversation.blocking for conversation in self.under_way.values())

    # --- what is sent

    def put(self, question: Question, message: Message | None = None, to: Recipients = SERVER) -> Question:
        """A question that is to be awaited; without a message others send what answers it by themselves."""
        if self.current is None or self.asked is not None:
            raise TypeError(self._forgotten(self.asked or question))
        self.asked = question
        if message is None:
            return question
        follows = self._owed(to)
        question.message, question.number = message, self._stamp(message, follows, 2 if question.public else 1)
        self.open[question.number] = question
        if not isinstance(to, int):
            self.current.round = question.number
        if follows and not self._is_own(follows):
            question.follows = follows
            self.open[follows] = question
        self._send(message, to)
        if question.limit is not None:
            self.outbox.append((Later(question.limit), Overdue(question=question.number, round=message.round)))
        return question

    def _forgotten(self, question: Question) -> str:
        where = "in a conversation that begins with `return self.begin(self.conversation())`"
        return f"{type(self.node).__name__} asks for {question} and does not wait: write `await` before it, {where}"

    def tell(self, to: Recipient, message: Message, answers: int | None = None) -> None:
        """Send without waiting for an answer, and again until it has come through."""
        number = self._stamp(message, self._owed(to) if answers is None else answers, 0)
        self._newest[type(message), to if isinstance(to, int) else None] = number
        self._send(message, to)

    def decline(self, owed: Mapping[Address, int]) -> None:
        """Tell nodes that wait for an answer that there is none."""
        for source, question in owed.items():
            self.tell(source, Declined(), question)

    def _owed(self, to: Recipients) -> int:
        """The number of the question that a message answers, or of the last question to all, which it continues."""
        if self.current is None:
            return 0
        if isinstance(to, int):
            return self.current.owes.pop(to, self.current.round)
        self.current.owes.clear()
        return self.current.round

    def _stamp(self, message: Message, answers: int, asks: int) -> int:
        """Write into a message its number, unique among those of all nodes, and what it answers."""
        if message.talk:
            raise TypeError(f"this {message.kind!r} has been sent before; make a new message each time")
        fields, self._number = message.__dict__, self._number + self._step
        fields["talk"], fields["answers"], fields["asks"] = self._number, answers, asks
        return self._number

    def _is_own(self, number: int) -> bool:
        return number % self._step == self._own

    def _send(self, message: Message, to: Recipients) -> None:
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

    def answered(self, question: Question, message: Message, source: Address) -> None:
        """A message is an answer to a question."""
        question.take(message, source)
        self._settle(question)

    def leave_out(self, question: Question, address: Address, reason: Reason) -> bool:
        """A node will not answer; False if it is not waited for."""
        waited = address in question.pending and question.conversation.question is question
        if waited:
            question.pending.discard(address)
            question.left[address] = reason
            self._settle(question)
        return waited

    def _settle(self, question: Question) -> None:
        if question.over:
            self._close(question)
            self.advance(question.conversation)

    def _close(self, question: Question) -> None:
        """Wait for it no longer. Whom it has answered is told that nothing follows, unless the conversation goes on."""
        message, question.message, question.conversation.question = question.message, None, None
        self.open.pop(question.number, None)
        if question.public:
            del self.listening[question]
        if question.follows:
            del self.open[question.follows]
            if not question.answers:
                question.conversation.owes.update(dict.fromkeys(question.members or (), question.follows))
        if message is None or question.undo is None:
            return
        if any(answer.answers == question.number for answer in question.answers.values()):
            return  # it has come
        if question.held:
            question.undo(message)
        else:
            self._undo[message] = question.undo

    # --- what does not come through; timers have methods with the names of their kinds

    def undelivered(self, message: Message, recipient: Address) -> None:
        """Send it again after a while as long as it is wanted, with growing waits; at last it is undone, or kept."""
        if self.client is not None:
            self.client.unshared += message.pulls
        if not message.talk:
            return
        question, policy = self.open.get(message.talk), self.node.context.recovery
        attempts = policy.attempts if question is None or question.attempts is None else question.attempts
        if question is not None:
            question.held = True
        wanted, counts = self._is_wanted(message, recipient), self._tries.setdefault(message, {})
        tries = counts.pop(recipient, 0)
        if wanted and tries < attempts:
            counts[recipient] = tries + 1
            timer = Resend(copy=message, about=recipient, round=message.round, version=message.version)
            self.outbox.append((Later(policy.delay(tries)), timer))
        elif wanted and question is not None:
            self.leave_out(question, recipient, "undelivered")
        elif not self._undone(message, recipient) and wanted:
            kept = [one for one in self.kept.get(recipient, ()) if self._is_wanted(one, recipient)]
            self.kept[recipient] = [*kept, message]

    def _is_wanted(self, message: Message, recipient: Address) -> bool:
        """Whether its answer is waited for, it is an answer itself, or nothing newer of its kind has been told."""
        if message.asks:
            question = self.open.get(message.talk)
            return question is not None and recipient in question.pending
        kind = type(message)
        if kind in self._each or (message.answers and not self._is_own(message.answers)):
            return True
        return message.talk >= max(self._newest.get((kind, to), 0) for to in (recipient, None))

    def _undone(self, message: Message, recipient: Address) -> bool:
        """It is certain that ``recipient`` will not have it; True if that matters to the node."""
        if (undo := self._undo.pop(message, None)) is not None:
            undo(message)
        return self._handled("lost", message, recipient)

    def resend(self, timer: Resend) -> bool:
        """The time has come to send a message again; False if it is not wanted any more."""
        wanted = self._is_wanted(timer.copy, timer.about)
        if wanted:
            if (question := self.open.get(timer.copy.talk)) is not None:
                question.held = False
            self._send(timer.copy, timer.about)
        return wanted

    def silence(self, timer: Silence) -> bool:
        """A host has noticed a silence; False if it does not matter."""
        return self.missed(timer.about) or self._handled("on", timer, timer.about)

    def missed(self, source: Address) -> bool:
        """Something of a node does not come: be patient for a while, or when it is waited for; False if it is not."""
        waiting = [question for question in self.waits if source in question.pending]
        if not waiting:
            self._missed.add(source)
            return False
        self._missed.discard(source)
        number = self._patience.get(source, (0, []))[0] + 1
        self._patience[source] = number, waiting
        timer = OutOfPatience(about=source, number=number, round=(waiting[0].message or Message()).round)
        self.outbox.append((Later(self.node.context.recovery.patience), timer))
        return True

    def patience(self, timer: OutOfPatience) -> bool:
        """Go on without the answers of a node, if nothing more of it has been missed since; False if nobody waits."""
        number, waiting = self._patience[timer.about]
        still = waiting if number == timer.number else []
        return sum(self.leave_out(question, timer.about, "silent") for question in still) > 0

    def overdue(self, timer: Overdue) -> bool:
        """The time of a question is over; False if it has ended before."""
        if (question := self.open.get(timer.question)) is not None:
            question.overdue = True
            self._settle(question)
        return question is not None
