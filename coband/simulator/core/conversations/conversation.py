"""The conversations of one node: which are under way, what each waits for, and what becomes of what is sent in them."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from coband.simulator.core.conversations.question import Conversation, Declined, Kinds, Question, Reason, Steps, Trouble
from coband.simulator.core.nodes.message import Message, NodeMistake, mistake
from coband.simulator.core.nodes.node import Client, Node, Server
from coband.simulator.core.nodes.outbox import (
    SERVER,
    Address,
    Later,
    Outbox,
    OutOfPatience,
    Overdue,
    Recipient,
    Resend,
    Silence,
)
from coband.simulator.plugins.entry_points import kind_of

Recipients = Recipient | list[Address]
FOREIGN = "await only what `ask`, `gather`, `hear` and `enter` return, and each once; a new message asks again"


class Talking(Node):
    """A node that has conversations; ``each``: messages of which each one counts."""

    each: ClassVar[Kinds] = ()

    @abstractmethod
    def handled(self, what: str, message: Message, source: Address) -> bool:
        """Call the method that is marked for its kind, and see to what it returns; False if there is none."""

    @abstractmethod
    def rest(self) -> None:
        """Nothing is under way."""


class Conversations:
    """What a node's conversations have in common.

    Attributes:
        node: whose conversations.
        number: of the message sent last; that of its sender modulo the number of all nodes.
        outbox: what has been sent since the node was called.
        begun: whether the node has begun its main conversation.
        busy: whether the node has been called and not answered yet.
        current: the conversation whose steps are being taken.
        asked: a question that was made and not awaited yet.
        under_way: conversations by their keys.
        open: questions that wait, by their numbers and by those that they follow.
        listening: questions that any fitting message answers.
        mail: messages that came before they were heard.
    """

    __slots__ = (
        "_gives_up",
        "_trouble",
        "asked",
        "begun",
        "busy",
        "client",
        "current",
        "listening",
        "mail",
        "node",
        "number",
        "open",
        "outbox",
        "server",
        "under_way",
    )

    def __init__(self, node: Talking, number: int) -> None:
        self.begun = self.busy = False
        self.current: Conversation | None = None
        self.asked: Question | None = None
        self._trouble: Trouble | None = None
        self.node = node
        self.client = node if isinstance(node, Client) else None
        self.server = node if isinstance(node, Server) else None
        self.outbox: Outbox = []
        self.under_way: dict[object, Conversation] = {}
        self.open: dict[int, Question] = {}
        self.listening: dict[Question, None] = {}
        self.mail: list[tuple[Message, Address]] = []
        self._gives_up = node.context.gives_up
        self.number = number

    @property
    def trouble(self) -> Trouble:
        """What it knows of messages that did not come through."""
        if self._trouble is None:
            self._trouble = Trouble()
        return self._trouble

    @property
    def kept(self) -> dict[Address, list[Resend]]:
        """What is sent to nodes that cannot be reached as soon as they are heard of."""
        return {} if self._trouble is None else self._trouble.kept

    def take(self) -> Outbox:
        """What has been sent since the node was called."""
        outbox, self.outbox, self.busy = self.outbox, [], False
        if self.client is not None and not (self.under_way or self.mail or self._trouble):
            self.node.rest()
        return outbox

    @property
    def waits(self) -> list[Question]:
        """All that is waited for."""
        return [one.question for one in self.under_way.values() if one.question is not None]

    # --- conversations

    def begin(self, steps: Steps, owes: dict[Address, int], blocking: bool = False, key: object = None) -> None:
        """Take the first steps of a conversation."""
        conversation = Conversation(steps, owes, blocking, key)
        key = conversation.key
        if key in self.under_way:
            self.end(self.under_way[key])
        self.under_way[key] = conversation
        if blocking and self.client is not None:
            self.client.waiting = True
        self.advance(conversation)

    def advance(self, conversation: Conversation) -> None:
        """Take its steps up to the next wait."""
        outer, self.current = self.current, conversation
        try:
            for question in conversation.questions:
                if question is None or self.asked is not question:
                    raise NodeMistake(f"{conversation}: {FOREIGN}")
                self.asked = None
                conversation.question, question.conversation = question, conversation
                if question.line is not None:
                    conversation.place = question
                    question.line.standing.append(question)
                if question.anybody:
                    conversation.round = 0
                if question.public:
                    self.listening[question] = None
                    self.mail = self.mail and [letter for letter in self.mail if not question.take(*letter)]
                if question.pending or not question.over:
                    if self._trouble is not None:
                        for source in self._trouble.missed.keys() & question.pending:
                            self.missed(source, self._trouble.missed[source])
                    self._be_patient(question)
                    break
                self._close(question)
            else:
                self.end(conversation)
        except RuntimeError as error:
            if "event loop" not in str(error):
                raise
            raise NodeMistake(f"{conversation}: {FOREIGN}; no event loop runs, but a `limit` ends a wait") from error
        self.current = outer

    def end(self, conversation: Conversation) -> None:
        """End it where it stands, free what it holds, and tell those who wait for an answer that there is none."""
        if conversation.question is not None:
            self._close(conversation.question)
            conversation.steps.close()
        elif self.asked is not None:
            raise NodeMistake(self._forgotten(self.asked))
        del self.under_way[conversation.key]
        self.under_way = self.under_way or {}  # a table that was filled once takes three times as much memory
        if conversation.blocking and self.client is not None:
            self.client.waiting = bool(self.under_way) and any(one.blocking for one in self.under_way.values())
        if conversation.owes:
            for source, question in conversation.owes.items():
                self.tell(source, Declined(), question)
        if conversation.place is not None and (line := conversation.place.line) is not None:
            line.standing.remove(conversation.place)
            for following in line.standing[line.limit - 1 : line.limit] if line.limit else ():
                self.settle(following)

    # --- what is sent

    def put(self, question: Question, message: Message | None = None, to: Recipients = SERVER) -> Question:
        """A question that is to be awaited; without a message others send what answers it by themselves."""
        if (current := self.current) is None or self.asked is not None:
            raise NodeMistake(self._forgotten(self.asked or question))
        self.asked = question
        if message is None:
            number = self.number = self.number + self.node.context.agents + 1
        else:
            number = self._post(message, to, 2 if question.public else 1)
            if not isinstance(to, int):
                current.round = number
            if message.answers and self._answers_another(message):
                question.follows = message.answers
                self.open[question.follows] = question
        question.message, question.number, self.open[number] = message, number, question
        if question.limit is not None:
            self.outbox.append((Later(question.limit), Overdue(question=number, round=getattr(message, "round", -1))))
        return question

    def _forgotten(self, question: Question) -> str:
        where = "in a conversation that begins with `return self.begin(self.conversation())`"
        return f"{type(self.node).__name__} asks for {question} and does not wait: write `await` before it, {where}"

    def tell(self, to: Recipient, message: Message, answers: int | None = None) -> None:
        """Send without waiting for an answer, and again until it has come through."""
        number = self._post(message, to, 0, answers)
        if self._gives_up:
            self.trouble.newest[type(message), to if isinstance(to, int) else None] = number

    def _post(self, message: Message, to: Recipients, asks: int, answers: int | None = None) -> int:
        """Send a message with a number, unique among those of all nodes, and that of the question that it answers.

        Without ``answers`` it is what ``to`` has asked in the current conversation, or the last question to all.
        """
        if not isinstance(message, Message):
            raise NodeMistake(f"{kind_of(message)} was given where a coband.Message is sent")
        if "talk" in (fields := message.__dict__):
            raise NodeMistake(f"this {message.kind!r} has been sent before; make a new message each time")
        if answers is None and (current := self.current) is not None:
            answers = current.round
            if not isinstance(to, int):
                current.owes.clear()
            elif current.owes:
                answers = current.owes.pop(to, answers)
        number = self.number = self.number + self.node.context.agents + 1
        fields["talk"], fields["answers"], fields["asks"] = number, answers or 0, asks
        if message.pulls and self.client is not None:
            self.client.unshared -= message.pulls
            if self.client.unshared < 0:
                had = self.client.unshared + message.pulls
                said = f"agent {self.node.context.index} sends a {message.kind!r} with pulls={message.pulls}"
                raise mistake(type(self.node), f"{said}, but only {had} of its pulls are not sent yet (`unshared`)")
        if isinstance(to, list):
            self.outbox += [(one, message) for one in to]
        else:
            self.outbox.append((to, message))
        return number

    def _answers_another(self, message: Message) -> bool:
        context = self.node.context
        return message.answers > 0 and message.answers % (context.agents + 1) != context.index + 1

    # --- what comes

    def leave_out(self, question: Question, address: Address, reason: Reason) -> bool:
        """A node will not answer; False if it is not waited for."""
        if waited := address in question.pending and question.conversation.question is question:
            question.pending.discard(address)
            question.left[address] = reason
            self.settle(question)
        return waited

    def settle(self, question: Question) -> None:
        """Something has become of a question: go on if nothing more is waited for."""
        if (not question.pending or question.over) and question.conversation.question is question:
            self._close(question)
            self.advance(question.conversation)
        elif question.conversation.question is question:
            self._be_patient(question)

    def _be_patient(self, question: Question) -> None:
        """Bound the wait for those who have not sent by themselves what others have: they may be down for long."""
        policy = self.node.context.recovery
        if policy.bounded and not question.message and question.answers and question.limit is None:
            question.limit, question.needed = policy.patience, 0
            self.outbox.append((Later(question.limit), Overdue(question=question.number)))

    def _close(self, question: Question) -> None:
        """Wait for it no longer. Whom it has answered is told that nothing follows, unless the conversation goes on."""
        question.conversation.question = None
        del self.open[question.number]
        if question.public:
            del self.listening[question]
        if question.follows:
            del self.open[question.follows]
            if not question.answers:
                question.conversation.owes.update(dict.fromkeys((*question.left, *question.pending), question.follows))
        self.open = self.open or {}
        if question.undo is None:
            return
        if question.held:
            question.undo(question.message)
        elif self._gives_up:
            self.trouble.undo[question.message] = question.undo

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
        trouble = self.trouble
        wanted, tries = self._is_wanted(message, recipient), trouble.tries.pop((message.talk, recipient), 0)
        timer = Resend(copy=message, about=recipient, round=message.round, version=message.version)
        there = self.node.context.is_there(recipient)
        if wanted and tries < attempts and there:
            trouble.tries[message.talk, recipient] = tries + 1
            self.outbox.append((Later(policy.delay(tries)), timer))
        elif wanted and question is not None:
            self.leave_out(question, recipient, "undelivered")
        else:
            if (undo := trouble.undo.pop(message, None)) is not None:
                undo(message)
            if not self.node.handled("lost", message, recipient) and wanted and there:
                kept = [one for one in trouble.kept.get(recipient, ()) if self._is_wanted(one.copy, recipient)]
                trouble.kept[recipient] = [*kept, timer]

    def _is_wanted(self, message: Message, recipient: Address) -> bool:
        """Whether its answer is waited for, it is an answer itself, or nothing newer of its kind has been told."""
        if message.asks:
            return (question := self.open.get(message.talk)) is not None and recipient in question.pending
        newest = max(self.trouble.newest.get((type(message), to), 0) for to in (recipient, None))
        return message.talk >= newest or type(message) in self.node.each or self._answers_another(message)

    def resend(self, timer: Resend) -> bool:
        """The time has come to send a message again; False if it is not wanted any more."""
        if wanted := self._is_wanted(timer.copy, timer.about):
            if question := self.open.get(timer.copy.talk):
                question.held = False
            if self.client is not None:
                self.client.unshared -= timer.copy.pulls
            self.outbox.append((timer.about, timer.copy))
        return wanted

    def silence(self, timer: Silence) -> bool:
        """A host has noticed a silence; False if it does not matter."""
        return self.missed(timer.about, timer.final) or self.node.handled("on", timer, timer.about)

    def missed(self, source: Address, final: bool = False) -> bool:
        """Something of a node does not come: be patient for a while, or when it is waited for; False if it is not."""
        if not (waiting := [question for question in self.waits if source in question.pending]):
            self.trouble.missed[source] = final
            return False
        self.trouble.missed.pop(source, None)
        self.trouble.patient.get(source, []).clear()
        self.trouble.patient[source] = waiting
        timer = OutOfPatience(about=source, waiting=waiting, round=getattr(waiting[0].message, "round", -1))
        policy = self.node.context.recovery
        gone = final or not self.node.context.is_there(source)  # nothing more comes of it but what is on its way
        self.outbox.append((Later(policy.timeout if gone else policy.patience), timer))
        return True

    def patience(self, timer: OutOfPatience) -> bool:
        """Go on without the answers of a node, if nothing more of it has been missed since; False if nobody waits."""
        return sum(self.leave_out(question, timer.about, "silent") for question in [*timer.waiting]) > 0

    def overdue(self, timer: Overdue) -> bool:
        """The time of a question is over; False if it has ended before."""
        if (question := self.open.get(timer.question)) is not None:
            question.overdue = True
            self.settle(question)
        return question is not None
