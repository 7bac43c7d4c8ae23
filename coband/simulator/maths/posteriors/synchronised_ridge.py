"""Ridge regression in two parts: what has been synchronised, equal for all agents, and an agent's own news."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Literal
from weakref import ref

import numpy as np

from coband.simulator.arms import Points, features_of
from coband.simulator.arrays import FloatArray
from coband.simulator.maths.linalg.gram import Gram
from coband.simulator.maths.linalg.growing_rows import GrowingRows
from coband.simulator.maths.posteriors.observations import Observations
from coband.simulator.maths.posteriors.protocol import Posterior
from coband.simulator.maths.posteriors.ridge import Ridge

ROUNDING = 1e-12
"""Of gains that triggers look at: with lam = 1 a unit pull doubles det V but for rounding, which decides nothing."""


class RidgeVersion:
    """A ridge regression that does not change, and those that followed it: agents with one history share all of it.

    Each version is held by the agents that act on it alone, so agents may act on different ones.
    """

    __slots__ = ("__weakref__", "_next", "ridge")

    def __init__(self, ridge: Ridge) -> None:
        self.ridge = ridge
        self._next: dict[int, ref[RidgeVersion]] = {}

    def follow(self, version: int, W: Gram | FloatArray, b: FloatArray) -> RidgeVersion:
        """The version after this one, computed by the first agent that asks."""
        if version in self._next and (found := self._next[version]()) is not None:
            return found
        ridge = self.ridge.copied()
        ridge.follow(W, b)
        following = RidgeVersion(ridge)
        self._next[version] = ref(following)
        return following


class SynchronisedRidge:
    """The ridge regression of an agent's newest synchronisation, with its version.

    Args:
        start: without observations; agents that are given one object share what they compute.
        alone: nobody else is given the same synchronisations.

    Attributes:
        version: of the synchronisation; 0 before the first.
    """

    __slots__ = ("_alone", "_current", "version")

    def __init__(self, start: Ridge | RidgeVersion, alone: bool = False) -> None:
        self.version, self._alone = 0, alone
        self._current = start if isinstance(start, RidgeVersion) else RidgeVersion(start)

    @property
    def ridge(self) -> Ridge:
        """V = lam I + W_sync and b_sync."""
        return self._current.ridge

    def follow(self, version: int, W: Gram | FloatArray, b: FloatArray) -> None:
        """Take in a synchronisation, unless it is the current one."""
        if version == self.version:
            return
        if not self._alone:
            self._current = self._current.follow(version, W, b)
        else:
            if not self.version:
                self._current = RidgeVersion(self._current.ridge.copied())
            self._current.ridge.follow(W, b)
        self.version = version


NOTHING: Mapping[int, tuple[int, FloatArray]] = MappingProxyType({})


@lru_cache(maxsize=64)
def _zeros(dimension: int) -> FloatArray:
    """One vector of zeros for all."""
    zeros = np.zeros(dimension)
    zeros.flags.writeable = False
    return zeros


class LocalRidge(Posterior):
    """The synchronised part and an agent's own news, which enter V when they are needed.

    ``update`` adds news. Observations and arms are features (n, p), arms also stacks of them, (..., n, p).
    """

    __slots__ = ("_b", "_b_given", "_given", "_out", "_own", "_rows", "_shared", "_taken")

    def __init__(self, shared: SynchronisedRidge) -> None:
        self._shared = shared
        self._start(np.empty((0, shared.ridge.dimension)), _zeros(shared.ridge.dimension))

    def _start(self, rows: FloatArray, b: FloatArray) -> None:
        self._rows, self._b = GrowingRows(self._shared.ridge.dimension, 1), b
        self._rows.append(rows)
        self._given, self._b_given = 0, _zeros(len(b))
        self._out: Mapping[int, tuple[int, FloatArray]] = NOTHING  # given out, by round: number of rows, b
        self._own: Ridge | None = None
        self._taken = 0

    def clear(self) -> None:
        """Forget the news that have been given out; those that have come since stay."""
        left = self._rows.all[self._given :]
        self._start(left, self._b - self._b_given if len(left) else _zeros(len(self._b)))

    def update(self, observations: Observations) -> None:
        G = observations.features
        self._rows.append(G)
        self._b = self._b + G.T @ observations.rewards

    @property
    def has_news(self) -> bool:
        """Whether there are pulls since the newest synchronisation."""
        return self._rows.size > 0

    @property
    def log_det(self) -> float:
        """log det(V / lam), news included."""
        return self._current().log_det

    def predict(self, arms: Points) -> tuple[FloatArray, FloatArray]:
        G, current, synchronised = features_of(arms), self._current(), self._shared.ridge
        theta = current.solve(synchronised.b + self._b) if self.has_news else synchronised.theta
        return G @ theta, current.variance(G)

    @property
    def size(self) -> int:
        """Number of pulls since the newest synchronisation."""
        return self._rows.size

    def solve(self, g: FloatArray) -> FloatArray:
        """V^(-1) g, (p,)."""
        return self._current().solve(g)

    def inverse(self) -> FloatArray:
        """V^(-1), a full matrix (p, p)."""
        return np.asarray(self._current().inverse())

    def gain(self, entries: Literal["diagonal", "full"]) -> float:
        """log of det(lam I + W_sync + W_new) / det(lam I + W_sync), of all entries or only of the diagonals."""
        if entries == "full":
            return self._current().log_det - self._shared.ridge.log_det
        rows = self._rows.all
        squares = rows[0] * rows[0] if len(rows) == 1 else np.einsum("ij,ij->j", rows, rows)
        return float(np.log1p(squares / self._shared.ridge.diagonal).sum())

    def news(self, round: int) -> tuple[Gram | FloatArray, FloatArray]:
        """W_new, in the form that the ridge follows, and b_new, of the pulls that have not been given out yet.

        Args:
            round: under which they can be taken back.

        Raises:
            ValueError: something is out under this number.
        """
        if round in self._out:
            raise ValueError(f"the news of round(={round}) have been given out; give each round's news out once.")
        W = self._shared.ridge.squares_of(self._rows.all[self._given :])
        b = self._b - self._b_given
        self._out = {**self._out, round: (self._rows.size - self._given, b)}
        self._given, self._b_given = self._rows.size, self._b
        return W, b

    def restore(self, round: int, W: Gram | FloatArray, b: FloatArray) -> None:
        """Take back the W and b given out in a round: they are news again. If forgotten meanwhile they are added."""
        if round not in self._out:
            self._rows.append(W.rows if isinstance(W, Gram) else np.sqrt(W)[None])
            self._b = self._b + b
            return
        rounds = list(self._out)
        start = sum(self._out[earlier][0] for earlier in rounds[: rounds.index(round)])
        self._out = dict(self._out)
        count, b_given = self._out.pop(round)
        order = np.arange(self._rows.size)
        order = np.concatenate([order[:start], order[start + count :], order[start : start + count]])
        rows = self._rows.all[order]
        self._rows = GrowingRows(rows.shape[1], len(rows))
        self._rows.append(rows)
        self._given, self._b_given = self._given - count, self._b_given - b_given
        self._own, self._taken = None, 0

    def _current(self) -> Ridge:
        size = self._rows.size
        if not size:
            return self._shared.ridge
        if self._own is None:
            self._own = self._shared.ridge.forked(self._rows)
        if self._taken < size:
            self._own.add_squares(self._rows.leading(size)[self._taken :])
            self._taken = size
        return self._own
