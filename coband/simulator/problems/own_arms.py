"""Clients with arms of their own that stay the same at all turns, and linear rewards (Huang et al. 2021, section 6)."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import pydantic
from pydantic import Field

from coband.simulator.arrays import FloatArray, require_room
from coband.simulator.core.config import Config
from coband.simulator.core.world import World
from coband.simulator.problems.arms import ArmSpec, BoxArms, PoolArms, uniform_ball, uniform_sphere
from coband.simulator.problems.problem import Problem, ProblemEntry, Streams
from coband.simulator.problems.rewards import NoiseSpec, as_noise
from coband.simulator.problems.world import OwnArmsWorld


class SpecialArm(Config):
    """A box from which one arm is drawn uniformly."""

    low: float | tuple[float, ...]
    """Lower bound: one number for all coordinates, or a list of d numbers."""
    high: float | tuple[float, ...]
    """Upper bound: one number for all coordinates, or a list of d numbers."""


class OwnArmsProblem(Problem):
    """K arms for each agent, drawn once per replication."""

    kind: Literal["own_arms"]
    """Linear bandit with fixed arms, other ones for each agent."""
    arms: ArmSpec
    """How the arms of an agent are drawn, once."""
    special: SpecialArm | None = None
    """One arm of each agent, in a place drawn at random, is drawn from here; null: none is."""
    parameters: Literal["shared", "per_arm"] = "shared"
    """shared: arm a of an agent has the mean x . theta; per_arm: x . theta_a, with a parameter for each number of an
    arm."""
    theta: Literal["ball", "sphere"] | tuple[float, ...] = "sphere"
    """Each theta: uniform in the unit ball or on the unit sphere, or the same given numbers."""
    noise: NoiseSpec = Field(default=1.0)
    """Noise of a reward; a number is the standard deviation of Gaussian noise (1 in Huang et al. 2021)."""

    @pydantic.model_validator(mode="after")
    def _check(self) -> OwnArmsProblem:
        if isinstance(self.arms, PoolArms):
            raise ValueError("arms of a pool are the same for all agents; write another kind.")
        if self.special is not None:
            BoxArms(kind="box", dimension=self.arms.dimension, count=1, low=self.special.low, high=self.special.high)
        if not isinstance(self.theta, str) and len(self.theta) != self.arms.dimension:
            raise ValueError(f"theta has {len(self.theta)} numbers but arms.dimension is {self.arms.dimension}.")
        return self

    def build(self, streams: Streams, agents: int, base: Path | None = None) -> World:
        """Arms from the stream (world, agent, arms), parameters from (world, 0, reward)."""
        shape = agents, self.arms.count or 0, self.arms.dimension or 0
        what = "the arms of {:,} agents, {:,} each of dimension {:,}".format(*shape)
        require_room(what, *shape, instead="change problem.arms (dimension, count)")
        arms = np.stack([self._drawn(streams("world", agent, "arms"), streams) for agent in range(agents)])
        theta = self._parameters(streams("world", 0, "reward"), arms.shape[1])
        truth = {"theta": theta.tolist()}
        return OwnArmsWorld(arms, np.vecdot(arms, theta), as_noise(self.noise), streams, truth)

    def _drawn(self, rng: np.random.Generator, streams: Streams) -> FloatArray:
        own = np.array(self.arms.build(streams).draw(rng, 1)[0])
        if self.special is not None:
            low, high = np.asarray(self.special.low, dtype=np.float64), np.asarray(self.special.high, dtype=np.float64)
            own[rng.integers(len(own))] = low + (high - low) * rng.random(own.shape[1])
        return own

    def _parameters(self, rng: np.random.Generator, arms: int) -> FloatArray:
        """(arms, d), all rows the same where the parameter is shared."""
        d, number = self.arms.dimension or 0, arms if self.parameters == "per_arm" else 1
        if isinstance(self.theta, str):
            drawn = (uniform_ball if self.theta == "ball" else uniform_sphere)(rng, (number,), d)
        else:
            drawn = np.array([self.theta])
        return np.ascontiguousarray(np.broadcast_to(drawn, (arms, d)))


PROBLEM = ProblemEntry(
    name="own_arms",
    config=OwnArmsProblem,
    summary="fixed arms, other ones for each agent, with linear rewards of one parameter or of one per arm",
    reference="Huang et al. 2021, section 6",
    cites=("huang2021federated",),
)
