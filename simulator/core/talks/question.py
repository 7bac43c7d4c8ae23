"""What a conversation waits for, and what may come of it: an answer, several, or none."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeVar

from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.outbox import Address

Reason = Literal["undelivered", "silent", "declined"]
Kinds = tuple[type[Message], ...]
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


@dataclass(frozen=True, kw_only=True, eq=False)
class Declined(Message):
    """The sender has no answer to the question, or does not wait for this message any more; no payload."""

    kind: ClassVar[str] = "declined"


class Line:
    """A queue in which conversations stand.

    Args:
        limit: so many of them are served at a time; None: all.
    """

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self._standing: list[Any] = []

    def enter(self, conversation: Any) -> bool:
        """Stand at its end; whether it is served at once."""
        self._standing.append(conversation)
        return self.limit is None or len(self._standing) <= self.limit

    def leave(self, conversation: Any) -> Any:
        """Give up its place; who is served instead, or None."""
        place, limit = self._standing.index(conversation), self.limit
        del self._standing[place]
        return self._standing[limit - 1] if limit is not None and place < limit <= len(self._standing) else None


class Question:
    """What a conversation waits for.

    Args:
        kinds: messages that may end the wait.
        members: nodes whose messages are waited for; None: that of any one node.
        outcome: what came of it, as whoever awaits it is told.
        how: attributes.

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
        limit: time after which it is overdue.
        needed: so many answers are enough when it is overdue.
        together: the answers of some are worth nothing without those of the others.
        taking: given each answer when it comes, and its sender; what it returns is kept in place of the answer.
        line: in which a place is waited for, and no message.
        conversation: that waits.
    """

    number = follows = needed = 0
    public = held = together = overdue = False
    message: Message | None = None
    where: Callable[[Any], bool] | None = None
    undo: Callable[[Any], None] | None = None
    attempts: int | None = None
    limit: float | None = None
    taking: Callable[..., Any] | None = None
    line: Line | None = None
    conversation: Any

    def __init__(
        self, kinds: Kinds, members: Collection[Address] | None, outcome: Callable[[Question], Any], **how: Any
    ) -> None:
        self.__dict__.update(how)
        self.kinds, self.members, self.outcome = kinds, members, outcome
        self.pending = set(members or ())
        self.answers: dict[Address, Any] = {}
        self.left: dict[Address, Reason] = {}

    def __await__(self) -> Generator[Question, None, Any]:
        yield self
        return self.outcome(self)

    def takes(self, message: Message, source: Address) -> bool:
        """Whether a message may be the answer."""
        expected = source in self.pending or self.members is None
        return expected and isinstance(message, self.kinds) and (self.where is None or self.where(message))

    def take(self, message: Message, source: Address) -> None:
        """An answer has come."""
        self.answers[source] = message if self.taking is None else self.taking(message, source)
        self.pending.discard(source)
        if message.asks == 1:
            self.conversation.owes[source] = message.talk

    @property
    def over(self) -> bool:
        """Whether nothing more is waited for."""
        if self.pending:
            enough = self.overdue and len(self.answers) >= self.needed
            return enough or (self.together and bool(self.left))
        return self.members is not None or bool(self.answers)

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
