"""What a conversation waits for, and what may come of it: an answer, several, or none."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Generic, Literal, TypeVar

from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.outbox import Address
from coband.simulator.core.nodes.timers import Timer

Reason = Literal["undelivered", "silent", "declined"]
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


TAKEN = Message()
"""In place of an answer that has been taken."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Overdue(Timer):
    """The time for which a node wants to wait for the answers to its question is over."""

    kind: ClassVar[str] = "overdue"
    question: int


class Question(Generic[R]):
    """What a conversation waits for.

    Args:
        kinds: messages that may end the wait.
        members: nodes whose messages may; empty: all nodes.

    Attributes:
        pending: the members from whom nothing has come.
        answers: what has come, by address.
        left: the members from whom nothing will come, and why.
        number: of the message that asks; 0 if nothing was asked.
        follows: number of another node's question that this one answers; what continues that one answers this one.
        round: of the message that asks.
        public: any message of these kinds from these nodes is an answer, whatever it was sent for.
        undo: called with the question, once, as soon as it is certain that the other node will never have it.
        attempts: how often it is asked again after it was given up; None: as the scenario's recovery says.
        held: who has not got the question, as its transport gave it up; it is to be asked again.
        message: the question, while it waits.
        certain: its answer shows that it has arrived.
        silences: the newest thing that was missed of a member, by number.
    """

    number = follows = 0
    round = -1
    public = False
    where: Callable[[Any], bool] | None = None
    undo: Undo | None = None
    attempts: int | None = None
    held: Collection[Address] = ()
    message: Message | None = None
    certain = False
    silences: Mapping[Address, int] = MappingProxyType({})
    conversation: Any

    def __init__(self, kinds: tuple[type[Message], ...], members: Collection[Address]) -> None:
        self.kinds, self.members = kinds, members
        self.pending = set(members)
        self.answers: dict[Address, Message] = {}
        self.left: dict[Address, Reason] = {}

    def __await__(self) -> Generator[Question[Any], None, R]:
        yield self
        return self.outcome()

    def takes(self, message: Message, source: Address) -> bool:
        """Whether a message may be the answer."""
        expected = source in self.pending or not self.members
        return expected and isinstance(message, self.kinds) and (self.where is None or self.where(message))

    @property
    def over(self) -> bool:
        """Whether nothing more is waited for."""
        return bool(self.answers or self.left)

    def expire(self) -> None:
        """The time to wait is over."""
        self.left.update(dict.fromkeys(self.pending, "silent"))

    def outcome(self) -> R:
        """What came of it."""
        raise NotImplementedError


class Asked(Question[M | Unanswered]):
    """One node's answer."""

    def outcome(self) -> M | Unanswered:
        for answer in self.answers.values():
            return answer  # type: ignore[return-value]
        return Unanswered(*self.left.values())


class Heard(Question[Any]):
    """Some message that comes, and whom it is from."""

    def outcome(self) -> tuple[Message, Address] | Unanswered:
        for source, message in self.answers.items():
            return message, source
        return Unanswered(next(iter(self.left.values())))


class Gathered(Question[Answers[M]]):
    """The answers of many nodes: of all, or of so many as are needed once the time is over.

    Attributes:
        needed: so many answers are enough when the time is over.
        together: the answers of some are worth nothing without those of the others.
        taking: given each answer when it comes, and its sender; the answer is not kept.
    """

    taking: Callable[[Any, Address], None] | None = None
    needed = 0
    together = False
    overdue = False

    @property
    def over(self) -> bool:
        if self.together and self.left:
            return True
        return not self.pending or (self.overdue and len(self.answers) >= self.needed)

    def expire(self) -> None:
        self.overdue = True

    def outcome(self) -> Answers[M]:
        found: Answers[M] = Answers()
        for address in sorted(self.answers):
            found[address] = self.answers[address]  # type: ignore[assignment]
        found.left = self.left
        return found


class Place(Question[None]):
    """A place in a line."""

    def __init__(self, line: Any) -> None:
        super().__init__((), ())
        self.line = line

    def outcome(self) -> None:
        return None
