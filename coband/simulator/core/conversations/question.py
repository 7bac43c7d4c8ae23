"""What a conversation waits for, and what may come of it: an answer, several, none, or trouble; and who waits."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass, field
from types import CoroutineType
from typing import Any, ClassVar, Literal, TypeVar
from weakref import WeakKeyDictionary

from coband.simulator.core.nodes.message import Message, NodeMistake
from coband.simulator.core.nodes.outbox import Address, Resend

Reason = Literal["undelivered", "silent", "declined"]
Kinds = tuple[type[Message], ...]
Steps = Coroutine["Question", None, None]
M = TypeVar("M", bound=Message)


@dataclass(frozen=True, slots=True)
class Unanswered:
    """There is no answer.

    Attributes:
        reason: ``undelivered``: the other node never had the question and never will; ``silent``: nobody knows;
            ``declined``: it has no answer.
    """

    reason: Reason

    def __bool__(self) -> bool:
        return False


class Answers(dict[Address, M]):
    """The answers of several nodes, in the order of their addresses.

    Attributes:
        left: who did not answer, and why.
    """

    left: dict[Address, Reason]


class Declined(Message):
    """The sender has no answer to the question, or does not wait for this message any more; no payload."""

    kind: ClassVar[str] = "declined"


class Line:
    """A queue in which conversations stand.

    Args:
        limit: so many of them are served at a time, the first ones; None: all.

    Attributes:
        standing: the questions by which they have entered it.
    """

    def __init__(self, limit: int | None) -> None:
        self.limit, self.standing = limit, list[Question]()


@dataclass(slots=True, weakref_slot=True, eq=False, repr=False)
class Question:
    """What a conversation waits for.

    Attributes:
        kinds: messages that may end the wait.
        pending: nodes from whom nothing has come.
        outcome: what came of it, as whoever awaits it is told.
        public: any message of these kinds from these nodes is an answer, whatever it was sent for.
        where: which of these messages are answers; None: all.
        undo: called with the message, once, as soon as it is certain that the other node will never have it; None where
            there is nothing to undo, or an answer shows that it has come.
        attempts: how often it is asked again after it was given up; None: as the scenario's recovery says.
        limit: time after which it is overdue.
        needed: so many answers are enough when it is overdue.
        together: the answers of some are worth nothing without those of the others.
        taking: given each answer when it comes, and its sender; what it returns is kept in place of the answer.
        line: in which a place is waited for, and no message.
        anybody: a message of any one node is waited for.
        number: its own, that of the message that asks.
        follows: number of another node's question that this one answers; what continues that one answers this one.
        message: that asks; None if nothing was asked.
        held: it was given up, and is to be asked again.
        overdue: its time is over.
        answers: what has come, by address.
        left: the nodes from whom nothing will come, and why.
        conversation: that waits.
    """

    kinds: Kinds
    pending: set[Address]
    outcome: Callable[..., Any]
    public: bool = False
    where: Callable[[Any], bool] | None = None
    undo: Callable[[Any], None] | None = None
    attempts: int | None = None
    limit: float | None = None
    needed: int = 0
    together: bool = False
    taking: Callable[..., Any] | None = None
    line: Line | None = None
    anybody: bool = False
    number: int = 0
    follows: int = 0
    message: Any = None
    held: bool = False
    overdue: bool = False
    answers: dict[Address, Any] = field(default_factory=dict)
    left: dict[Address, Reason] = field(default_factory=dict)
    conversation: Conversation = field(init=False)

    def __await__(self) -> Generator[Question, None, Any]:
        yield self
        return self.outcome(self)

    def take(self, message: Message, source: Address) -> bool:
        """A message has come; False if it is not an answer."""
        if source not in self.pending and not (self.anybody and not self.answers):
            return False
        if not isinstance(message, self.kinds) or (self.where is not None and not self.where(message)):
            return False
        self.answers[source] = message if self.taking is None else self.taking(message, source)
        self.pending.discard(source)
        if self.undo is not None and message.answers == self.number:
            self.undo = None
        if message.asks == 1:
            self.conversation.owes[source] = message.talk
        return True

    @property
    def over(self) -> bool:
        """Whether nothing more is waited for."""
        if self.pending:
            return (self.overdue and len(self.answers) >= self.needed) or (self.together and bool(self.left))
        if self.line is not None:
            return self in self.line.standing[: self.line.limit]
        return not self.anybody or bool(self.answers)

    def __str__(self) -> str:
        return " or ".join(kind.__name__ for kind in self.kinds) or "a place in a line"

    def one(self) -> Any:
        """The answer of the only member, or why there is none."""
        for answer in self.answers.values():
            return answer
        return Unanswered(next(iter(self.left.values()), "silent"))

    def first(self) -> Any:
        """The message that came, and its sender."""
        return next((message, source) for source, message in self.answers.items())

    def all(self) -> Answers[Any]:
        """The answers in the order of addresses."""
        answers: Answers[Any] = Answers((address, self.answers[address]) for address in sorted(self.answers))
        answers.left = {**self.left, **dict.fromkeys(sorted(self.pending), "silent")}
        return answers


class Conversation:
    """One ``async def`` under way.

    Attributes:
        questions: what it waits for, one after the other.
        owes: by node, the number of its question that the next message to it answers.
        blocking: the client takes no turn before it has ended.
        key: a new conversation with the same key ends this one.
        question: what it waits for now.
        place: the question by which it has entered a line.
        round: number of the last question to all, which a message to all continues.
    """

    __slots__ = ("blocking", "key", "owes", "place", "question", "questions", "round", "steps")

    def __init__(self, steps: Steps, owes: dict[Address, int], blocking: bool = False, key: object = None) -> None:
        if not isinstance(steps, CoroutineType):
            raise NodeMistake(f"{steps!r} is not a conversation: begin the call of an `async def`")
        self.questions: Generator[Question, None, None] = steps.__await__()
        self.steps, self.owes, self.blocking, self.round = steps, owes, blocking, 0
        self.key = steps if key is None else key
        self.question: Question | None = None
        self.place: Question | None = None

    def __str__(self) -> str:
        code = self.steps.cr_code
        return f"{code.co_qualname}, line {getattr(self.steps.cr_frame, 'f_lineno', code.co_firstlineno)}"


@dataclass(eq=False)
class Trouble:
    """What a node knows of messages that did not come through; most nodes never have any.

    Attributes:
        kept: what is sent to nodes that cannot be reached as soon as they are heard of.
        tries: how often what was given up has been sent again.
        newest: what was told last, by kind and node or None: all.
        missed: nodes of which something did not come when nobody waited for them, and whether nothing more will.
        patient: what waited for a node at its last silence.
        undo: of messages for which nobody waits any more, if they have not arrived.
    """

    kept: dict[Address, list[Resend]] = field(default_factory=dict)
    tries: dict[tuple[int, Address], int] = field(default_factory=dict)
    newest: dict[tuple[type, Address | None], int] = field(default_factory=dict)
    missed: dict[Address, bool] = field(default_factory=dict)
    patient: dict[Address, list[Question]] = field(default_factory=dict)
    undo: WeakKeyDictionary[Message, Callable[[Any], None]] = field(default_factory=WeakKeyDictionary)
