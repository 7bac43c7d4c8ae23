"""A bandit over a fixed domain: a region is discretised once per replication, and every turn offers all its points.

Pavlovic et al. 2024 ("Order-Optimal Regret in Distributed Kernel Bandits using Uniform Sampling with Shared
Randomness"), section 5. Regret is measured against the largest mean over the points.
"""

from __future__ import annotations

import abc
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pydantic
from pydantic import Field

from coband.simulator.arrays import FloatArray, require_room
from coband.simulator.core.config import Config, JsonObject
from coband.simulator.problems.arms import Pool, uniform_ball, uniform_sphere
from coband.simulator.problems.rewards import AnyReward, NoiseSpec, as_noise, means_of
from coband.simulator.problems.world import FixedArmsWorld, Problem, ProblemEntry, Streams, World, read_only

_OPEN = 2.0**-40
"""Distance from 0 and 1 that keeps normal quantiles finite."""


class _RegionPoints(Config, abc.ABC):
    """A region and the number of points that discretise it."""

    dimension: int = Field(ge=1)
    """Coordinates per point, d."""
    points: int = Field(default=2000, ge=1)
    """Number of points (the papers give none; 2,000 is our choice)."""
    method: Literal["sobol", "uniform"] = "sobol"
    """sobol: a scrambled Sobol sequence, which leaves no gaps; uniform: independent points."""

    def draw(self, rng: np.random.Generator) -> FloatArray:
        what = f"{self.points:,} points of dimension {self.dimension:,}"
        require_room(what, self.points, self.dimension, instead="change problem.domain (dimension, points)")
        if self.method == "uniform":
            return self.independent(rng)
        from scipy.stats import qmc  # takes half as long to import as all of coband

        cube = qmc.Sobol(self.uniforms, scramble=True, rng=rng).random_base2((self.points - 1).bit_length())
        return self.mapped(np.clip(cube[: self.points], _OPEN, 1.0 - _OPEN))

    @property
    def uniforms(self) -> int:
        """How many numbers in (0, 1) are mapped to one point."""
        return self.dimension

    @abc.abstractmethod
    def independent(self, rng: np.random.Generator) -> FloatArray:
        """Independent uniform points, (points, d)."""

    @abc.abstractmethod
    def mapped(self, cube: FloatArray) -> FloatArray:
        """Map uniforms (n, `uniforms`) to points (n, d) of the region; the map preserves proportions of volume."""


class BoxPoints(_RegionPoints):
    """Points of an axis-parallel cube."""

    kind: Literal["box"]
    """The cube [low, high]^d."""
    low: float = 0.0
    """Lower bound of every coordinate."""
    high: float = 1.0
    """Upper bound of every coordinate."""

    @pydantic.model_validator(mode="after")
    def _check(self) -> BoxPoints:
        if not self.low < self.high:
            raise ValueError(f"low(={self.low}) must be below high(={self.high}).")
        return self

    def independent(self, rng: np.random.Generator) -> FloatArray:
        return self.mapped(rng.random((self.points, self.dimension)))

    def mapped(self, cube: FloatArray) -> FloatArray:
        return self.low + (self.high - self.low) * cube


class BallPoints(_RegionPoints):
    """Points of the l2 ball."""

    kind: Literal["ball"]
    """The l2 ball around 0."""
    radius: float = Field(default=1.0, gt=0)
    """Radius of the ball."""

    @property
    def uniforms(self) -> int:
        """d + 1: one for the radius, d for the direction."""
        return self.dimension + 1

    def independent(self, rng: np.random.Generator) -> FloatArray:
        return uniform_ball(rng, (self.points,), self.dimension, self.radius)

    def mapped(self, cube: FloatArray) -> FloatArray:
        """A direction from normal quantiles, times radius * u^(1/d)."""
        return _directions(cube[:, 1:]) * (self.radius * cube[:, :1] ** (1.0 / self.dimension))


class SpherePoints(_RegionPoints):
    """Points of the l2 sphere."""

    kind: Literal["sphere"]
    """The l2 sphere around 0."""
    radius: float = Field(default=1.0, gt=0)
    """Radius of the sphere."""

    def independent(self, rng: np.random.Generator) -> FloatArray:
        return uniform_sphere(rng, (self.points,), self.dimension, self.radius)

    def mapped(self, cube: FloatArray) -> FloatArray:
        """A direction from normal quantiles, times the radius."""
        return self.radius * _directions(cube)


def _directions(cube: FloatArray) -> FloatArray:
    from scipy.special import ndtri  # slow to import, and only some domains need it

    normals: FloatArray = ndtri(cube)
    norms = np.linalg.norm(normals, axis=1, keepdims=True)
    directions: FloatArray = normals / np.maximum(norms, np.finfo(np.float64).tiny)
    return directions


DomainSpec = Annotated[BoxPoints | BallPoints | SpherePoints, Field(discriminator="kind")]


class FixedDomainProblem(Problem):
    """A finite domain that is drawn once per replication; every turn offers all its points."""

    kind: Literal["fixed_domain"]
    """Bandit over a fixed, discretised domain."""
    domain: DomainSpec
    """The region and its discretisation, the same for every algorithm of a replication."""
    reward: AnyReward
    """The mean reward f."""
    noise: NoiseSpec = Field(default=0.2)
    """Noise of a reward; a number is the standard deviation of Gaussian noise (0.2 in Pavlovic et al. 2024)."""

    @pydantic.model_validator(mode="after")
    def _check(self) -> FixedDomainProblem:
        if misplaced := self.reward.misplaced(self.domain, "domain"):
            raise ValueError(misplaced)
        return self

    def build(self, streams: Streams, agents: int, base: Path | None = None) -> World:
        """Draw the points from the stream (world, 0, domain), the reward function from (world, 0, reward)."""
        points = read_only(self.domain.draw(streams("world", 0, "domain")))
        reward = self.reward.draw(streams("world", 0, "reward"), Pool(points, None))
        means = means_of(reward, points[None])[0]
        truth: JsonObject = {
            **reward.describe(),
            "maximum": float(means.max()),
            "best": points[means.argmax()].tolist(),
        }
        return FixedArmsWorld(points, means, as_noise(self.noise), streams, truth)


PROBLEM = ProblemEntry(
    name="fixed_domain",
    config=FixedDomainProblem,
    summary="a region discretised once (box, ball, sphere), with cosine, cubic, RKHS, Branin or Hartmann reward",
    reference="Pavlovic et al. 2024, section 5; Picheny et al. 2013",
    cites=("pavlovic2024order", "picheny2013benchmark"),
)
