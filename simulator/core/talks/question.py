"""What a conversation waits for, and what may come of it: an answer, several, or none."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, TypeVar

from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.outbox import Address
from coband.simulator.core.nodes.timers import Timer

Reason = Literal["undelivered", "silent", "declined"]
Kinds = tuple[type[Message], ...]
Undo = Callable[[Any], None]
M = TypeVar("M", bound=Message)
R = TypeVar("R")


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


@dataclass(frozen=True, kw_only=True, eq=False)
class Declined(Message):
    """The sender has no answer to the question, or does not wait for this message any more; no payload."""

    kind: ClassVar[str] = "declined"


@dataclass(frozen=True, kw_only=True, eq=False)
class Overdue(Timer):
    """The time for which a node wants to wait for the answers to its question is over."""

    kind: ClassVar[str] = "overdue"
    question: int


class Question(Generic[R]):
    """What a conversation waits for.

    Args:
        kinds: messages that may end the wait.
        members: nodes whose messages are waited for; None: that of any one node.
        outcome: what came of it.

    Attributes:
        pending: the members from whom nothing has come.
        answers: what has come, by address.
        left: the members from whom nothing will come, and why.
        number: of the message that asks; 0 if nothing was asked.
        follows: number of another node's question that this one answers; what continues that one answers this one.
        message: the question, while it waits.
        public: any message of these kinds from these nodes is an answer, whatever it was sent for.
        where: which of these messages are answers; None: all.
        undo: called with the question, once, as soon as it is certain that the other node will never have it.
        attempts: how often it is asked again after it was given up; None: as the scenario's recovery says.
        held: it was given up, and is to be asked again.
        taking: given each answer when it comes, and its sender; the answer is not kept.
        together: the answers of some are worth nothing without those of the others.
        needed: so many answers are enough when the time is over.
        overdue: the time is over.
        line: in which a place is waited for, and no message.
        conversation: that waits.
    """

    number = follows = needed = 0
    public = held = together = overdue = False
    message: Message | None = None
    where: Callable[[Any], bool] | None = None
    undo: Undo | None = None
    attempts: int | None = None
    taking: Callable[[Any, Address], None] | None = None
    line: Any = None
    conversation: Any

    def __init__(self, kinds: Kinds, members: Collection[Address] | None, outcome: Callable[[Question[R]], R]) -> None:
        self.kinds, self.members, self.outcome = kinds, members, outcome
        self.pending = set(members or ())
        self.answers: dict[Address, Any] = {}
        self.left: dict[Address, Reason] = {}

    def __await__(self) -> Generator[Question[R], None, R]:
        yield self
        return self.outcome(self)

    def takes(self, message: Message, source: Address) -> bool:
        """Whether a message may be the answer."""
        expected = source in self.pending or self.members is None
        return expected and isinstance(message, self.kinds) and (self.where is None or self.where(message))

    @property
    def over(self) -> bool:
        """Whether nothing more is waited for."""
        if self.members is None:
            return bool(self.answers)
        enough = self.overdue and len(self.answers) >= self.needed
        return not self.pending or enough or (self.together and bool(self.left))

    def take(self, message: Message, source: Address) -> None:
        """An answer has come."""
        self.answers[source] = message
        if self.taking is not None:
            self.taking(message, source)
            self.answers[source] = None
        self.pending.discard(source)

    def __str__(self) -> str:
        return " or ".join(kind.__name__ for kind in self.kinds) or "a place in a line"

    def one(self) -> Any:
        """The answer of the only member, or why there is none."""
        return next(iter(self.answers.values()), None) or Unanswered(next(iter(self.left.values()), "silent"))

    def first(self) -> Any:
        """The message that came, and its sender."""
        ((source, message),) = self.answers.items()
        return message, source

    def all(self) -> Answers[Any]:
        """The answers in the order of addresses."""
        answers: Answers[Any] = Answers((address, self.answers[address]) for address in sorted(self.answers))
        answers.left = {**self.left, **dict.fromkeys(sorted(self.pending), "silent")}
        return answers
