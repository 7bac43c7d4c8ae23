"""Defences of a server that sums statistics of its agents: what it takes in place of the sum.

A message says of its fields whether their sums over agents are what the server wants (``payload(adds=...)``). The
server hears of each such upload the change of n times a robust mean of the agents' statistics, over the n agents that
have sent any; so what its protocol sums is that robust sum, and the protocol itself stays what it is.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Field

from coband.simulator.arrays import FloatArray
from coband.simulator.core.config import Config
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.outbox import Address
from coband.simulator.core.wire.values import semidefinite
from coband.simulator.plugins.kinds import Kinds

ITERATIONS, CLOSE, TINY = 1000, 1e-12, 1e-250


class BaseDefence(Config):
    """What all defences have."""

    @abstractmethod
    def mean(self, statistics: FloatArray) -> FloatArray:
        """A mean of the agents' statistics, (n, size), that some of them cannot move far: (size,)."""

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
    factor: float = Field(default=1.0, gt=0)
    """The factor."""

    def mean(self, statistics: FloatArray) -> FloatArray:
        norms = np.linalg.norm(statistics, axis=1)
        most = self.factor * float(np.median(norms))
        return np.asarray((statistics * np.minimum(1.0, most / np.maximum(norms, 1e-300))[:, None]).mean(axis=0))


class CoordinateMedian(BaseDefence):
    """The median of each number by itself (Yin et al. 2018)."""

    kind: Literal["coordinate_median"]

    def mean(self, statistics: FloatArray) -> FloatArray:
        return np.asarray(np.median(statistics, axis=0))


class TrimmedMean(BaseDefence):
    """Of each number by itself the mean without the f largest and the f smallest (Yin et al. 2018); of 2 f agents or
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
    factor: float = Field(default=3.0, ge=1)
    """The factor."""

    def mean(self, statistics: FloatArray) -> FloatArray:
        distances = np.linalg.norm(statistics - np.median(statistics, axis=0), axis=1)
        return np.asarray(statistics[distances <= self.factor * np.median(distances)].mean(axis=0))


DEFENCES: Kinds[type[BaseDefence]] = Kinds.of(
    "defences", BaseDefence, (Sum, Clip, CoordinateMedian, TrimmedMean, GeometricMedian, RejectOutliers)
)
"""The defences that scenarios can name."""


def _word_is_kind(value: Any) -> Any:
    return {"kind": value} if isinstance(value, str) else value


_Defence = Annotated[BaseDefence, DEFENCES.field()]
_Word = Literal["sum", "clip", "coordinate_median", "geometric_median", "reject_outliers"]
Defence = Annotated[_Defence, BeforeValidator(_word_is_kind, json_schema_input_type=_Word | _Defence)]
SUM = Sum(kind="sum")


class Defended:
    """What a server takes in place of sums."""

    def __init__(self, defence: BaseDefence) -> None:
        self._defence = defence
        self._open: dict[tuple[type[Message], str], Any] = {}  # of a field of whole statistics: what they are about
        self._statistics: dict[tuple[type[Message], str], dict[Address, FloatArray]] = {}
        self._total: dict[tuple[type[Message], str], FloatArray] = {}

    def taken(self, source: Address, message: Message, fields: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        """What the server hears in each field that adds up: the change of n times the robust mean."""
        return {name: self._change(source, message, name, values) for name, values in fields.items()}

    def _change(self, source: Address, message: Message, name: str, values: FloatArray) -> FloatArray:
        key, declared = (type(message), name), message.declared(name)
        about = (message.round, getattr(message, "step", 0)) if declared["adds"] == "all" else None
        if key not in self._open or self._open[key] != about:
            self._open[key], self._statistics[key] = about, {}
            self._total[key] = np.zeros(values.shape)
        known, before = self._statistics[key], self._total[key]
        known[source] = values + known[source] if about is None and source in known else values
        stack = np.stack([known[agent].ravel() for agent in sorted(known)])
        total = (len(known) * self._defence.mean(stack)).reshape(values.shape)
        if declared["symmetric"] and total.ndim == 2:
            total = semidefinite(total)
        self._total[key] = total
        return total - before
