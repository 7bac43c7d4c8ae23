"""Arm sets: the models of `problem.arms`, and the sources that draw the arm sets of an agent's turns.

Each turn takes a fixed number of draws of one kind from the agent's random stream. Generators fill arrays in order, so
drawing several turns at once gives the same values as drawing them one by one.
"""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import Annotated, Literal, Protocol

import numpy as np
import pydantic
from pydantic import Field

from coband.simulator.arrays import FloatArray, require_room
from coband.simulator.core.config import Config
from coband.simulator.problems.world import Streams, read_only

Shape = Literal["ball", "sphere", "box"]


def uniform_ball(rng: np.random.Generator, shape: tuple[int, ...], dimension: int, radius: float = 1.0) -> FloatArray:
    """Points uniform in the l2 ball of R^d, shape (*shape, d).

    The first d coordinates of a uniform point on the unit sphere of R^(d+2) are uniform in the unit ball of R^d. This
    method needs normal draws only. The usual method, a direction times U^(1/d), also needs uniform draws, and their
    position in the stream would depend on how many turns are drawn at once.
    """
    normals = rng.standard_normal((*shape, dimension + 2))
    return normals[..., :dimension] * _to_radius(normals, radius)


def uniform_sphere(rng: np.random.Generator, shape: tuple[int, ...], dimension: int, radius: float = 1.0) -> FloatArray:
    """Points uniform on the l2 sphere of R^d, shape (*shape, d): normals divided by their norm."""
    normals = rng.standard_normal((*shape, dimension))
    return normals * _to_radius(normals, radius)


def _to_radius(vectors: FloatArray, radius: float) -> FloatArray:
    """Factors (..., 1) that scale each vector to the given length.

    `vecdot` makes each factor independent, to the last bit, of how many vectors are scaled with it.
    """
    factors: FloatArray = radius / np.sqrt(np.vecdot(vectors, vectors))
    return factors[..., None]


class ArmSource(Protocol):
    """Draws the arm sets of one world."""

    @property
    def dimension(self) -> int:
        """Features per arm, d."""

    @property
    def count(self) -> int:
        """Arms per turn, n."""

    @property
    def fixed(self) -> FloatArray | None:
        """The arm set (n, d) if every turn has the same one, else None."""

    def draw(self, rng: np.random.Generator, turns: int) -> FloatArray:
        """The arm sets of an agent's next turns, (turns, n, d); `rng` is the agent's arm stream."""

    def domain(self, rng: np.random.Generator, number: int) -> FloatArray:
        """Draw `number` points from the set that contains all arms, (number, d)."""


class _Region(Config, abc.ABC):
    """Fresh arms at each turn, independent and uniform in a region.

    The specification has no state that is drawn per replication, so it is its own `ArmSource`.
    """

    dimension: int = Field(ge=1)
    """Features per arm, d."""
    count: int = Field(ge=1)
    """Arms offered at each turn."""

    @property
    def fixed(self) -> None:
        return None

    @abc.abstractmethod
    def points(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        """Independent uniform points, (*shape, d)."""

    def draw(self, rng: np.random.Generator, turns: int) -> FloatArray:
        return self.points(rng, (turns, self.count))

    def domain(self, rng: np.random.Generator, number: int) -> FloatArray:
        return self.points(rng, (number,))

    def build(self, streams: Streams) -> ArmSource:
        what = f"the arms of one turn, {self.count:,} of dimension {self.dimension:,}"
        require_room(what, self.count, self.dimension, instead="change problem.arms (dimension, count)")
        return self


class BallArms(_Region):
    """Arms uniform in the l2 ball (Li et al. 2023, section 5: d = 20, 20 arms, radius 1)."""

    kind: Literal["ball"]
    """Uniform in the l2 ball around 0."""
    radius: float = Field(default=1.0, gt=0)
    """Radius of the ball."""

    def points(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        return uniform_ball(rng, shape, self.dimension, self.radius)


class SphereArms(_Region):
    """Arms uniform on the l2 sphere."""

    kind: Literal["sphere"]
    """Uniform on the l2 sphere around 0."""
    radius: float = Field(default=1.0, gt=0)
    """Radius of the sphere."""

    def points(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        return uniform_sphere(rng, shape, self.dimension, self.radius)


class BoxArms(_Region):
    """Arms uniform in an axis-parallel box, by default [0, 1]^d."""

    kind: Literal["box"]
    """Uniform in the box [low, high]."""
    low: float | tuple[float, ...] = 0.0
    """Lower bound: one number for all coordinates, or a list of d numbers."""
    high: float | tuple[float, ...] = 1.0
    """Upper bound: one number for all coordinates, or a list of d numbers."""

    @pydantic.model_validator(mode="after")
    def _check(self) -> BoxArms:
        for name, bound in (("low", self.low), ("high", self.high)):
            if isinstance(bound, tuple) and len(bound) != self.dimension:
                raise ValueError(f"{name} has {len(bound)} numbers but dimension is {self.dimension}.")
        if not np.all(np.less(self.low, self.high)):
            raise ValueError(f"low(={self.low}) must be below high(={self.high}) in every coordinate.")
        return self

    def points(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        low, high = np.asarray(self.low, dtype=np.float64), np.asarray(self.high, dtype=np.float64)
        return low + (high - low) * rng.random((*shape, self.dimension))


class NormalisedCubeArms(_Region):
    """Points uniform in the cube [-1/2, 1/2]^d, divided by their norm: on the sphere, denser towards the corners."""

    kind: Literal["normalised_cube"]
    """Uniform in the cube [-1/2, 1/2]^d, then divided by the norm, as in the published code of Dai et al. 2023."""

    def points(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        cube = rng.random((*shape, self.dimension)) - 0.5
        return cube * _to_radius(cube, 1.0)


class PoolArms(Config):
    """Arms from a fixed pool of points; the pool is drawn once per replication or given in the scenario.

    Each turn offers `count` points of the pool, drawn without replacement. With `count: null` each turn offers the
    whole pool, in its order.
    """

    kind: Literal["pool"]
    """From a fixed pool of points."""
    dimension: int | None = Field(default=None, ge=1)
    """Features per arm, d; needed unless `points` are given."""
    size: int | None = Field(default=None, ge=1)
    """Points in the pool; needed unless `points` are given."""
    shape: Shape = Field(default="ball", alias="from")
    """Where the pool's points are drawn from: the unit ball, the unit sphere or the box [0, 1]^d."""
    points: tuple[tuple[float, ...], ...] | None = Field(default=None, min_length=1)
    """The pool itself, a list of points of equal length, in place of `dimension`, `size` and `from`."""
    count: int | None = Field(default=None, ge=1)
    """Arms offered at each turn; null: the whole pool."""

    @pydantic.model_validator(mode="after")
    def _check(self) -> PoolArms:
        if self.points is None:
            if self.dimension is None or self.size is None:
                raise ValueError("a pool needs either `dimension` and `size`, or `points`.")
        elif (self.dimension, self.size, self.shape) != (None, None, "ball"):
            raise ValueError("`points` say it all: leave out `dimension`, `size` and `from`.")
        elif not self.points[0] or len({len(point) for point in self.points}) > 1:
            raise ValueError("all `points` must have the same number of coordinates, at least one.")
        size = self.size if self.points is None else len(self.points)
        if self.count is not None and size is not None and self.count > size:
            raise ValueError(f"count(={self.count}) must be <= the {size} points of the pool.")
        return self

    def build(self, streams: Streams) -> ArmSource:
        """Draw the pool, from the stream (world, 0, pool)."""
        if self.points is not None:
            points = np.array(self.points, dtype=np.float64)
        else:
            assert self.dimension is not None  # ensured by _check
            assert self.size is not None
            what = f"a pool of {self.size:,} points of dimension {self.dimension:,}"
            require_room(what, self.size, self.dimension, instead="change problem.arms (dimension, size)")
            points = _draw_pool(self.shape, streams("world", 0, "pool"), self.size, self.dimension)
        return Pool(read_only(points), self.count)


def _draw_pool(shape: Shape, rng: np.random.Generator, size: int, dimension: int) -> FloatArray:
    if shape == "ball":
        return uniform_ball(rng, (size,), dimension)
    if shape == "sphere":
        return uniform_sphere(rng, (size,), dimension)
    return rng.random((size, dimension))


@dataclass(frozen=True)
class Pool:
    """A fixed set of points, (size, d); each turn offers `subset` of them, or all of them when it is None."""

    points: FloatArray
    subset: int | None

    @property
    def dimension(self) -> int:
        return int(self.points.shape[1])

    @property
    def count(self) -> int:
        return len(self.points) if self.subset is None else self.subset

    @property
    def fixed(self) -> FloatArray | None:
        return self.points if self.subset is None else None

    def draw(self, rng: np.random.Generator, turns: int) -> FloatArray:
        """Subsets in uniformly random order, (turns, count, d), from `count` uniforms per turn."""
        uniforms = rng.random((turns, self.count)).tolist()
        return self.points[[_shuffle_start(len(self.points), row) for row in uniforms]]

    def domain(self, rng: np.random.Generator, number: int) -> FloatArray:
        """Draw points of the pool, (number, d); a point repeats only if `number` exceeds the size of the pool."""
        return self.points[rng.choice(len(self.points), number, replace=number > len(self.points))]


def _shuffle_start(size: int, uniforms: list[float]) -> list[int]:
    """The first entries of a Fisher-Yates shuffle of 0 .. size - 1; each entry uses one uniform variable."""
    moved: dict[int, int] = {}  # entries that a swap has changed; every other index still holds its own number
    chosen = []
    for i, uniform in enumerate(uniforms):
        j = i + int(uniform * (size - i))
        chosen.append(moved.get(j, j))
        moved[j] = moved.get(i, i)
    return chosen


ArmSpec = Annotated[BallArms | SphereArms | BoxArms | NormalisedCubeArms | PoolArms, Field(discriminator="kind")]
