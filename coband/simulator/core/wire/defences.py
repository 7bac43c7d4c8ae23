"""Defences of a server that sums statistics of its agents: what it takes in place of the sum.

A message says of its fields whether their sums over agents are what the server wants (``payload(adds=...)``). The
server hears of each such upload the change of n times a robust mean of the agents' statistics, over the n agents that
have sent any; so what its protocol sums is that robust sum, and the protocol itself stays what it is.

On a graph each pull is passed on by itself. There an agent compares those that it hears of, itself among them, by the
mean of y (1, x) over the pulls (x, y) that each has told. A defence says how much of a pull the agent takes: it scales
the reward down to that share, and a pull with the share 0 is ignored.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import BeforeValidator, Field

from coband.simulator.arrays import BoolArray, FloatArray
from coband.simulator.core.config import Config, word_is_kind
from coband.simulator.core.nodes.message import Message, Passage
from coband.simulator.core.nodes.outbox import SERVER, Address
from coband.simulator.core.wire.encodings import of_the_form, replaced, semidefinite
from coband.simulator.plugins.kinds import Kinds
from coband.simulator.plugins.promises import finite, returns

ITERATIONS, CLOSE, TINY = 1000, 1e-12, 1e-250
ROUNDS, NUMBERS = 32, 2**23
"""Rounds that are kept apart for statistics that come late, and numbers in all of them, at most."""


class BaseDefence(Config):
    """Base of defences, with which a server sums what may be lies.

    Attributes:
        judges: it can say how much to take of what one agent says (`share`), which is all that agents of a graph can do
            with single pulls.
    """

    judges: ClassVar[bool] = False

    @abstractmethod
    @returns(
        "a finite number for each of the columns it is given",
        lambda found, statistics: finite(found, *statistics.shape[1:]),
    )
    def mean(self, statistics: FloatArray) -> FloatArray:
        """A mean of the agents' statistics, (n, size), that some of them cannot move far: (size,)."""

    def share(self, statistics: FloatArray, which: int) -> float:
        """How much to take of what the agent of one row says, from 0 to 1."""
        raise NotImplementedError

    @property
    def sums(self) -> bool:
        """Whether the server does without a defence."""
        return False


class Sum(BaseDefence):
    """The sum; no defence."""

    kind: Literal["sum"]

    def mean(self, statistics: FloatArray) -> FloatArray:
        return np.asarray(statistics.mean(axis=0))

    @property
    def sums(self) -> bool:
        return True


class Clip(BaseDefence):
    """The mean, with statistics of more than the median norm times a factor shortened to that."""

    kind: Literal["clip"]
    judges: ClassVar[bool] = True
    factor: float = Field(default=1.0, gt=0)
    """The factor."""

    def mean(self, statistics: FloatArray) -> FloatArray:
        return np.asarray((statistics * self._shares(statistics)[:, None]).mean(axis=0))

    def share(self, statistics: FloatArray, which: int) -> float:
        return float(self._shares(statistics)[which])

    def _shares(self, statistics: FloatArray) -> FloatArray:
        norms = np.linalg.norm(statistics, axis=1)
        most = self.factor * float(np.median(norms))
        return np.asarray(np.minimum(1.0, most / np.maximum(norms, 1e-300)))


class CoordinateMedian(BaseDefence):
    """The median of each number by itself (Yin et al. 2018)."""

    kind: Literal["coordinate_median"]

    def mean(self, statistics: FloatArray) -> FloatArray:
        return np.asarray(np.median(statistics, axis=0))


class TrimmedMean(BaseDefence):
    """The mean of each number without the f largest and the f smallest (Yin et al. 2018); of 2 f agents or
    less, the median."""

    kind: Literal["trimmed_mean"]
    f: int = Field(ge=0)
    """How many are left out at either end."""

    def mean(self, statistics: FloatArray) -> FloatArray:
        n = len(statistics)
        if n <= 2 * self.f:
            return np.asarray(np.median(statistics, axis=0))
        return np.asarray(np.sort(statistics, axis=0)[self.f : n - self.f].mean(axis=0))


class GeometricMedian(BaseDefence):
    """The point with the least sum of distances to all statistics (Jadbabaie et al. 2022), by Weiszfeld's iteration as
    Vardi and Zhang 2000 have it, which does not stop at one of them by mistake."""

    kind: Literal["geometric_median"]

    def mean(self, statistics: FloatArray) -> FloatArray:
        # It begins at the best of them, stays if that is the median, and else never comes near another one.
        sums = [float(np.linalg.norm(statistics - row, axis=1).sum()) for row in statistics]
        found = statistics[int(np.argmin(sums))]
        size = float(np.abs(statistics).max(initial=0.0))
        for _ in range(ITERATIONS if size > TINY else 0):
            apart = statistics - found
            distances = np.linalg.norm(apart, axis=1)
            far = distances > CLOSE * size
            weights = 1.0 / distances[far]
            pull = float(np.linalg.norm(weights @ apart[far]))
            stay = min(1.0, (len(far) - int(far.sum())) / pull) if pull else 1.0
            step = (1.0 - stay) * (weights @ apart[far]) / weights.sum() if far.any() else 0.0 * found
            found = found + step
            if float(np.abs(step).max(initial=0.0)) <= CLOSE * size:
                break
        return np.asarray(found)


class RejectOutliers(BaseDefence):
    """The mean of those whose distance to the median of each number is at most a factor times the median distance."""

    kind: Literal["reject_outliers"]
    judges: ClassVar[bool] = True
    factor: float = Field(default=3.0, ge=1)
    """The factor."""

    def mean(self, statistics: FloatArray) -> FloatArray:
        return np.asarray(statistics[self._near(statistics)].mean(axis=0))

    def share(self, statistics: FloatArray, which: int) -> float:
        return float(self._near(statistics)[which])

    def _near(self, statistics: FloatArray) -> BoolArray:
        distances = np.linalg.norm(statistics - np.median(statistics, axis=0), axis=1)
        return np.asarray(distances <= self.factor * np.median(distances))


DEFENCES: Kinds[type[BaseDefence]] = Kinds.of(
    "defences", BaseDefence, (Sum, Clip, CoordinateMedian, TrimmedMean, GeometricMedian, RejectOutliers)
)


_Defence = Annotated[BaseDefence, DEFENCES.field()]
_Word = Literal["sum", "clip", "coordinate_median", "geometric_median", "reject_outliers"]
Defence = Annotated[_Defence, BeforeValidator(word_is_kind, json_schema_input_type=_Word | _Defence)]
SUM = Sum(kind="sum")
Place = Any
"""What statistics are kept apart by: a field of a message, or a name."""


class Defended:
    """What a server takes in place of sums."""

    def __init__(self, defence: BaseDefence) -> None:
        self._defence = defence
        self._fields: dict[Place, News] = {}

    def taken(self, source: Address, message: Message, fields: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        """What the server hears in each field that adds up: the change of n times the robust mean."""
        found = {}
        for name, values in fields.items():
            place, declared = (type(message), name), message.declared(name)
            if place not in self._fields:
                self._fields[place] = SUMMED[declared["adds"]](self._defence, declared["symmetric"])
            about = message.round, getattr(message, "step", 0)
            found[name] = self._fields[place].change(source, about, values)
        return found

    def total(self, place: Place, source: Address, news: FloatArray, symmetric: bool = False) -> FloatArray:
        """n times the robust mean, when the statistics of an agent have grown by these.

        In a basis that has grown, earlier statistics are zero in what is new.
        """
        return self._fields.setdefault(place, News(self._defence, symmetric)).total(source, news)

    def robust(self, statistics: Sequence[FloatArray], symmetric: bool = False) -> FloatArray:
        """n times the robust mean of statistics of one shape; of symmetric matrices, positive semidefinite."""
        return robust_sum(self._defence, statistics, symmetric)


class News:
    """A field of which each message has what is new: an agent's statistics are the sum of all that it has sent."""

    def __init__(self, defence: BaseDefence, symmetric: bool) -> None:
        self._defence, self._symmetric = defence, symmetric
        self._statistics: dict[Address, FloatArray] = {}
        self._total: FloatArray | None = None

    def change(self, source: Address, about: tuple[int, int], values: FloatArray) -> FloatArray:
        """The change of n times the robust mean by a message of an agent about a round and a step of it."""
        before, after = self._total, self.total(source, values)
        self._total = after
        return after if before is None else after - before

    def anew(self, source: Address, about: tuple[int, int], values: FloatArray) -> FloatArray:
        """The same by a message with whole statistics, in place of those that the agent has sent."""
        self._statistics.pop(source, None)
        return News.change(self, source, about, values)

    def total(self, source: Address, news: FloatArray) -> FloatArray:
        """n times the robust mean, when the statistics of an agent have grown by these."""
        known = self._statistics
        known[source] = news + _padded(known[source], news.shape) if source in known else news
        statistics = [_padded(known[agent], news.shape) for agent in sorted(known)]
        return robust_sum(self._defence, statistics, self._symmetric)


class OfARound(News):
    """A field with whole statistics of a round, each of which has a robust sum of its own. What comes late changes that
    of its round; of rounds long ago nothing is taken any more."""

    def __init__(self, defence: BaseDefence, symmetric: bool) -> None:
        super().__init__(defence, symmetric)
        self._rounds: dict[tuple[int, int], News] = {}

    def change(self, source: Address, about: tuple[int, int], values: FloatArray) -> FloatArray:
        rounds = self._rounds
        if about not in rounds:
            rounds[about] = News(self._defence, self._symmetric)
            numbers = (values.size or 1) * max(1, *(len(one._statistics) for one in rounds.values()))
            while len(rounds) > max(1, min(ROUNDS, NUMBERS // numbers)):
                del rounds[min(rounds)]
        if about not in rounds:
            return np.zeros(values.shape)
        return rounds[about].anew(source, about, values)


class Newest(News):
    """A field with whole statistics of an agent; the server keeps the newest change, and late ones are of no use."""

    def __init__(self, defence: BaseDefence, symmetric: bool) -> None:
        super().__init__(defence, symmetric)
        self._held: dict[Address, tuple[tuple[int, int], FloatArray]] = {}

    def change(self, source: Address, about: tuple[int, int], values: FloatArray) -> FloatArray:
        last, held = self._held.get(source, (about, 0.0))
        if about < last:
            return values
        change = self.anew(source, about, values) + held
        self._held[source] = about, change
        return change


SUMMED: Mapping[str, type[News]] = {"news": News, "all": OfARound, "newest": Newest}
"""How fields add up (``payload(adds=...)``) that the server itself need not bring to one basis."""


def robust_sum(defence: BaseDefence, statistics: Sequence[FloatArray], symmetric: bool) -> FloatArray:
    """n times the robust mean of statistics of one shape; of symmetric matrices, positive semidefinite."""
    stack = np.stack([own.ravel() for own in statistics])
    total = (len(stack) * defence.mean(stack)).reshape(statistics[0].shape)
    return semidefinite(total) if symmetric and total.ndim in (1, 2) else total


def _padded(values: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    return np.pad(values, [(0, wanted - size) for wanted, size in zip(shape, values.shape, strict=True)])


Pull = tuple[str, FloatArray, float]
"""The field of the reward, the point, and the reward."""


def single_pull(kind: type[Message]) -> tuple[str, str] | None:
    """The fields of the point and the reward of messages that carry one pull; None for others."""
    meanings = {kind.meaning(name): name for name in reversed(kind.payload_fields())}
    return (meanings["points"], meanings["rewards"]) if {"points", "rewards"} <= meanings.keys() else None


class Listening:
    """What the agents of a run take of each other's pulls."""

    def __init__(self, defence: BaseDefence) -> None:
        self._defence = defence
        self._sums: dict[Address, dict[Address, FloatArray]] = defaultdict(dict)  # count, sum of y and of y x

    def note(self, agent: Address, origin: Address, message: Message) -> str | None:
        """An agent learns of a pull, or has made it itself; returns the field of its reward, if it is one."""
        names = single_pull(type(message))
        if names is None:
            return None
        point, reward = np.asarray(getattr(message, names[0])), float(getattr(message, names[1]))
        known = self._sums[agent]
        known[origin] = known.get(origin, 0.0) + np.concatenate([[1.0, reward], reward * point])
        return names[1]

    def heard(self, agent: Address, origin: Address, message: Message) -> Message | None:
        """What an agent is handed in place of a message; None: nothing."""
        reward = self.note(agent, origin, message)
        if reward is None:
            return message
        known = self._sums[agent]
        rows = np.stack([known[other][1:] / known[other][0] for other in sorted(known)])
        share = self._defence.share(rows, sorted(known).index(origin))
        if share in (0.0, 1.0):
            return message if share else None
        value = getattr(message, reward)
        found = replaced(message, {reward: of_the_form(value, np.asarray(share * value))})
        passage = Passage(message.original, {}, 0, SERVER, 0, {})
        found.__dict__.update(field_bits=message.field_bits, passage=passage)
        return found
