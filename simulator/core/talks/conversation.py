"""The conversations of one node: which are under way, what each waits for, and what becomes of what is sent in them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
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
        self.owes, self.blocking, self.key = owes, blocking, steps if key is None else key

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

    __slots__ = (
        *("_blocking", "_each", "_gives_up", "_handled", "_missed", "_newest", "_number", "_own", "_patience", "_step"),
        *("_tries", "_undo", "asked", "begun", "busy", "client", "current", "kept", "listening", "mail", "node"),
        *("open", "outbox", "server", "under_way"),
    )
    open: dict[int, Question]
    listening: dict[Question, None]
    mail: list[tuple[Message, Address]]
    kept: dict[Address, list[Message]]
    _undo: WeakKeyDictionary[Message, Callable[[Any], None]]  # if it has not arrived
    _tries: dict[tuple[int, Address], int]  # how often what was given up has been sent again
    _newest: dict[tuple[type, Address | None], int]  # what was told last, by kind and node or None: all
    _missed: dict[Address, None]  # nodes of which something did not come when nobody waited for them
    _patience: dict[Address, tuple[int, list[Question]]]  # number of a silence, and who waits

    def __init__(self, node: Node, each: Kinds, handled: Callable[[str, Message, Address], bool]) -> None:
        self.begun = self.busy = False
        self.current: Conversation | None = None
        self.asked: Question | None = None
        self.node, self._each, self._handled = node, each, handled
        self.client = node if isinstance(node, Client) else None
        self.server = node if isinstance(node, Server) else None
        self.outbox: Outbox = []
        self.under_way: dict[object, Conversation] = {}
        self._step, self._gives_up, self._blocking = node.context.agents + 1, node.context.gives_up, 0
        self._number = self._own = node.context.index + 1  # numbers of messages are those of their senders modulo step

    def __getattr__(self, name: str) -> Any:
        """What few nodes have is made when it is first asked for."""
        if name not in self.__slots__:
            raise AttributeError(f"conversations have no {name}")
        made: Any = {"mail": list, "_undo": WeakKeyDictionary}.get(name, dict)()
        setattr(self, name, made)
        return made

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

    def begin(self, steps: Steps, owes: dict[Address, int], blocking: bool = False, key: object = None) -> None:
        """Take the first steps of a conversation."""
        conversation = Conversation(steps, owes, blocking, key)
        if older := self.under_way.get(conversation.key):
            self.end(older)
        self.under_way[conversation.key] = conversation
        if blocking:
            self._hold_turns(1)
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
        if (question.public or not question.pending) and question.over:
            self._close(question)
            return True
        if self._missed:
            for source in self._missed.keys() & question.pending:
                self.missed(source)
        return False

    def end(self, conversation: Conversation) -> None:
        """End it where it stands."""
        if conversation.question:
            self._close(conversation.question)
        conversation.steps.close()
        self._ended(conversation)

    def _ended(self, conversation: Conversation) -> None:
        """Give free what it holds, and tell those who wait for an answer that there is none."""
        del self.under_way[conversation.key]
        if conversation.blocking:
            self._hold_turns(-1)
        for source, question in conversation.owes.items():
            self.tell(source, Declined(), question)
        if conversation.line and (following := conversation.line.leave(conversation)):
            self.advance(following)

    def _hold_turns(self, more: int) -> None:
        self._blocking += more
        if self.client is not None:
            self.client.waiting = self._blocking > 0

    # --- what is sent

    def put(self, question: Question, message: Message | None = None, to: Recipients = SERVER) -> Question:
        """A question that is to be awaited; without a message others send what answers it by themselves."""
        if (current := self.current) is None or self.asked is not None:
            raise TypeError(self._forgotten(self.asked or question))
        self.asked = question
        if message is None:
            return question
        number = self._post(message, to, 2 if question.public else 1)
        question.message, question.number, self.open[number] = message, number, question
        if not isinstance(to, int):
            current.round = number
        if message.answers and not self._is_own(message.answers):
            question.follows = message.answers
            self.open[question.follows] = question
        if question.limit is not None:
            self.outbox.append((Later(question.limit), Overdue(question=number, round=message.round)))
        return question

    def _forgotten(self, question: Question) -> str:
        where = "in a conversation that begins with `return self.begin(self.conversation())`"
        return f"{type(self.node).__name__} asks for {question} and does not wait: write `await` before it, {where}"

    def tell(self, to: Recipient, message: Message, answers: int | None = None) -> None:
        """Send without waiting for an answer, and again until it has come through."""
        number = self._post(message, to, 0, answers)
        if self._gives_up:
            self._newest[type(message), to if isinstance(to, int) else None] = number

    def _post(self, message: Message, to: Recipients, asks: int, answers: int | None = None) -> int:
        """Send a message with a number, unique among those of all nodes, and that of the question that it answers.

        Without ``answers`` it is what ``to`` has asked in the current conversation, or the last question to all.
        """
        if message.talk:
            raise TypeError(f"this {message.kind!r} has been sent before; make a new message each time")
        if answers is not None or (current := self.current) is None:
            answers = answers or 0
        elif isinstance(to, int):
            answers = current.owes.pop(to, current.round)
        else:
            answers = current.round
            current.owes.clear()
        fields, self._number = message.__dict__, self._number + self._step
        fields["talk"], fields["answers"], fields["asks"] = self._number, answers, asks
        self._send(message, to)
        return self._number

    def _is_own(self, number: int) -> bool:
        return number % self._step == self._own

    def _send(self, message: Message, to: Recipients) -> None:
        if message.pulls and self.client:
            self.client.unshared -= message.pulls
        if isinstance(to, list):
            self.outbox += [(address, message) for address in to]
        else:
            self.outbox.append((to, message))

    # --- what comes

    def heard_of(self, source: Address) -> None:
        """A node can be reached: send what is kept for it."""
        for message in self.kept.pop(source, ()):
            self.again(message, source)

    def leave_out(self, question: Question, address: Address, reason: Reason) -> bool:
        """A node will not answer; False if it is not waited for."""
        waited = address in question.pending and question.conversation.question is question
        if waited:
            question.pending.discard(address)
            question.left[address] = reason
            self.settle(question)
        return waited

    def settle(self, question: Question) -> None:
        """Something has become of a question: go on if nothing more is waited for."""
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
        if message is None or question.undo is None or question.came:
            return
        if question.held:
            question.undo(message)
        elif self._gives_up:
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
        wanted, tries = self._is_wanted(message, recipient), self._tries.pop((message.talk, recipient), 0)
        if wanted and tries < attempts:
            self._tries[message.talk, recipient] = tries + 1
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
        return self.again(timer.copy, timer.about)

    def again(self, message: Message, recipient: Address) -> bool:
        """Send a message again; False if it is not wanted any more."""
        if wanted := self._is_wanted(message, recipient):
            if question := self.open.get(message.talk):
                question.held = False
            self._send(message, recipient)
        return wanted

    def silence(self, timer: Silence) -> bool:
        """A host has noticed a silence; False if it does not matter."""
        return self.missed(timer.about) or self._handled("on", timer, timer.about)

    def missed(self, source: Address) -> bool:
        """Something of a node does not come: be patient for a while, or when it is waited for; False if it is not."""
        waiting = [question for question in self.waits if source in question.pending]
        if not waiting:
            self._missed[source] = None
            return False
        self._missed.pop(source, None)
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
            self.settle(question)
        return question is not None
