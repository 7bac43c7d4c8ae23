"""Hidden parameters that change with simulated time: what `problem.drift` says.

What is hidden at a moment depends on the seed and that moment alone, not on who asks and when: algorithms that are
compared meet the same changes, and time in which nobody asks costs nothing.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Callable
from functools import lru_cache
from typing import Annotated, Literal, Protocol

import numpy as np
from pydantic import Field, model_validator

from coband.simulator.arrays import FloatArray
from coband.simulator.core.config import TIME, Config
from coband.simulator.plugins.kinds import Kinds
from coband.simulator.problems.problem import Streams

Redraw = Callable[[np.random.Generator], FloatArray]
"""Draws a parameter as the reward draws its first one."""
BLOCK = 256
"""Steps of a walk that are drawn together."""


class Path(Protocol):
    """The parameter over time."""

    def __call__(self, time: float) -> FloatArray:
        """theta at a time, (d,): the same object as long as it does not change."""


class BaseDrift(Config):
    """Base of models of drift, by which rewards change with time."""

    @abstractmethod
    def path(self, theta: FloatArray, redraw: Redraw, streams: Streams) -> Path:
        """The parameter over time.

        Args:
            theta: as drawn with the reward, (d,).
            redraw: draws another one.
            streams: of the replication; draw from ``streams("world", n, "drift")`` with any n >= 0.
        """


class Piecewise(BaseDrift):
    """A new parameter at some moments, drawn as the first one; between them nothing changes."""

    kind: Literal["piecewise"] = "piecewise"
    at: Annotated[tuple[Annotated[float, Field(gt=0, allow_inf_nan=False)], ...], TIME] = Field(min_length=1)
    """Simulated times of the changes, ascending; a pull at this very moment has the new parameter."""

    @model_validator(mode="after")
    def _ascending(self) -> Piecewise:
        if any(later <= earlier for earlier, later in zip(self.at, self.at[1:], strict=False)):
            raise ValueError(f"at(={list(self.at)}) must be ascending")
        return self

    def path(self, theta: FloatArray, redraw: Redraw, streams: Streams) -> Path:
        """theta_k between the k-th and the next moment; theta_1, theta_2, ... from the stream (world, 0, drift)."""
        rng, pieces = streams("world", 0, "drift"), [theta]

        def at(time: float) -> FloatArray:
            piece = bisect_right(self.at, time)
            while len(pieces) <= piece:
                pieces.append(redraw(rng))
            return pieces[piece]

        return at


class Walk(BaseDrift):
    """A random walk within the cube [-1, 1]^d / sqrt(d), whose faces reflect it; so theta is no longer than 1."""

    kind: Literal["walk"] = "walk"
    step: float = Field(gt=0, allow_inf_nan=False)
    """Root mean square length of a step: each coordinate changes by a normal draw of deviation step / sqrt(d)."""
    interval: Annotated[float, TIME] = Field(default=1.0, gt=0, allow_inf_nan=False)
    """Simulated time between two steps."""

    def path(self, theta: FloatArray, redraw: Redraw, streams: Streams) -> Path:
        """theta after k steps: theta_0 + step / sqrt(d) B(k), reflected; B: see `Brownian`."""
        motion, side = Brownian(len(theta), streams), 1.0 / math.sqrt(len(theta))

        @lru_cache(maxsize=1)
        def after(steps: int) -> FloatArray:
            free = theta + self.step * side * motion(steps)
            return side - np.abs((free + side) % (4.0 * side) - 2.0 * side)  # each step is reflected

        return lambda time: after(math.floor(time / self.interval))


class Seasonal(BaseDrift):
    """theta turns in a plane, once around in a period, and keeps its length."""

    kind: Literal["seasonal"] = "seasonal"
    period: Annotated[float, TIME] = Field(gt=0, allow_inf_nan=False)
    """Simulated time after which theta is the first one again."""

    def path(self, theta: FloatArray, redraw: Redraw, streams: Streams) -> Path:
        """cos(2 pi t / period) theta + sin(2 pi t / period) theta', theta' as long, orthogonal to it, and random.

        With one feature there is no other direction, and theta' is 0.
        """
        other = streams("world", 0, "drift").standard_normal(len(theta))
        length = float(theta @ theta)
        other -= (other @ theta / length if length else 0.0) * theta
        size = math.sqrt(float(other @ other))
        other *= math.sqrt(length) / size if len(theta) > 1 and size else 0.0

        @lru_cache(maxsize=1)
        def at(time: float) -> FloatArray:
            angle = 2.0 * math.pi * math.fmod(time, self.period) / self.period
            return math.cos(angle) * theta + math.sin(angle) * other

        return at


class Brownian:
    """d independent standard random walks B, (B(0) = 0, B(k + 1) - B(k) ~ N(0, I)), at any step, in O(log k) draws.

    B at 1, 2, 4, ... times `BLOCK` is a sum of independent draws; within these, halves are Brownian bridges down to
    blocks,

        B((a + b) / 2) = (B(a) + B(b)) / 2 + sqrt(b - a) / 2 N(0, I),

    and a block is a free walk whose end is moved to where it must be. Each draw has its own stream, by its place.

    Args:
        dimension: d.
        streams: of the replication.
    """

    def __init__(self, dimension: int, streams: Streams) -> None:
        self._dimension, self._streams = dimension, streams
        self._steps: Callable[[int], FloatArray] = lru_cache(maxsize=2)(self._block)
        self._at: Callable[[int], FloatArray] = lru_cache(maxsize=256)(self._start)

    def __call__(self, step: int) -> FloatArray:
        """B(step), (d,)."""
        block, place = divmod(step, BLOCK)
        at: FloatArray = self._steps(block)[place]
        return at

    def _block(self, block: int) -> FloatArray:
        """B at the steps of a block, (BLOCK, d)."""
        start, end = self._at(block), self._at(block + 1)
        free = self._normal(2 * block, BLOCK).cumsum(axis=0)
        shares = np.arange(BLOCK)[:, None] / BLOCK
        before: FloatArray = np.vstack([np.zeros(self._dimension), free[:-1]])
        at: FloatArray = start + before + shares * (end - start - free[-1])
        return at

    def _start(self, block: int) -> FloatArray:
        """B at the start of a block."""
        if not block:
            return np.zeros(self._dimension)
        half, draw, earlier = block & -block, self._normal(2 * block + 1)[0], block // 2
        if half == block:  # a power of 2
            found: FloatArray = self._at(earlier) + math.sqrt((block - earlier) * BLOCK) * draw
        else:
            found = 0.5 * (self._at(block - half) + self._at(block + half) + math.sqrt(2 * half * BLOCK) * draw)
        return found

    def _normal(self, place: int, count: int = 1) -> FloatArray:
        return self._streams("world", place, "drift").standard_normal((count, self._dimension))


DRIFTS: Kinds[type[BaseDrift]] = Kinds.of("drifts", BaseDrift, (Piecewise, Walk, Seasonal))
AnyDrift = Annotated[BaseDrift, DRIFTS.field()]
