"""Synthetic contextual bandits: drawn arm sets or a fixed domain, and a drawn reward (Li et al. 2023, section 5)."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import pydantic
from pydantic import Field

from coband.simulator.arrays import FloatArray
from coband.simulator.core.config import JsonObject
from coband.simulator.core.world import World
from coband.simulator.problems.arms import ArmSource, ArmSpec, extent_of
from coband.simulator.problems.problem import Extent, Problem, ProblemEntry, Streams
from coband.simulator.problems.rewards import AnyReward, NoiseSpec, RewardFunction, as_noise
from coband.simulator.problems.world import Blocks, FixedArmsWorld, Noise, Turn, TurnsWorld, longest_block, read_only


class ContextualWorld(TurnsWorld):
    """A world whose arm set changes from turn to turn, drawn from one stream per agent.

    Args:
        noise, streams, realised: see `TurnsWorld`.
        agents: number of agents; their blocks of draws share one memory budget.
    """

    def __init__(
        self,
        source: ArmSource,
        reward: RewardFunction,
        noise: Noise,
        streams: Streams,
        agents: int,
        realised: bool = False,
    ) -> None:
        super().__init__(source.dimension, noise, streams, realised)
        self._source, self._reward = source, reward
        self._sizes = agents, source.count * source.dimension
        self._expected: int | None = None

    def upcoming(self, agent: int, turn: int) -> list[FloatArray]:
        """Arms of the turn and of those after it that are drawn already."""
        return [arms for arms, *_ in self._of(agent).upcoming(turn)]

    def expect(self, turns: int) -> None:
        """About so many turns an agent will take: they are drawn in longer blocks, and few are not used."""
        self._expected = turns

    def describe(self) -> JsonObject:
        return self._reward.describe()

    def reward_of(self, agent: int) -> RewardFunction:
        """The mean reward f of this agent's arms."""
        return self._reward

    def shift_arms(self, agent: int, arms: FloatArray) -> FloatArray:
        """Move drawn arms (turns, n, d) to this agent's region; here they stay where they are."""
        return arms

    def _open(self, agent: int) -> Blocks[Turn]:
        arms, noise = self._streams("world", agent, "arms"), self._streams("world", agent, "noise")
        longest = longest_block(*self._sizes, expected=self._expected is not None)
        return Blocks(lambda turns: self._draw(agent, arms, noise, turns), longest, self._expected)

    def _draw(
        self, agent: int, arm_stream: np.random.Generator, noise_stream: np.random.Generator, turns: int
    ) -> list[Turn]:
        arms = read_only(self.shift_arms(agent, self._source.draw(arm_stream, turns)))
        means = read_only(self.reward_of(agent)(arms))
        best = means.max(axis=1).tolist()
        return list(zip(arms, means, best, self._noise.draws(noise_stream, turns), strict=True))


class ContextualProblem(Problem):
    """Arms from a region or a pool, with a mean reward that is drawn once per replication."""

    kind: Literal["contextual"]
    """Contextual bandit with synthetic arms and rewards."""
    arms: ArmSpec
    """How the arm set of a turn is drawn."""
    reward: AnyReward
    """The mean reward f."""
    noise: NoiseSpec = Field(default=0.1)
    """Noise of a reward; a number is the standard deviation of Gaussian noise (0.1 is ours, Li et al. 2023 gives
    none)."""
    regret: Literal["expected", "realised"] = "expected"
    """expected: max f - f(arm); realised: max f - the noisy reward, as in Dai et al. 2023's figures; may be
    negative."""

    @pydantic.model_validator(mode="after")
    def _check(self) -> ContextualProblem:
        if misplaced := self.reward.misplaced(self.arms, "arms"):
            raise ValueError(misplaced)
        return self

    def extent(self, agents: int) -> Extent:
        """Arms of a turn of each agent, or the pool; the kernel matrix of the reward's centres."""
        return extent_of(self.arms, agents, float(getattr(self.reward, "centres", 0)) ** 2)

    def build(self, streams: Streams, agents: int, base: Path | None = None) -> World:
        """Draw pool and reward function from the streams (world, 0, pool) and (world, 0, reward)."""
        source = self.arms.build(streams)
        reward = self.reward.draw(streams("world", 0, "reward"), source)
        noise = as_noise(self.noise)
        realised = self.regret == "realised"
        if source.fixed is not None:
            means = reward(source.fixed[None])[0]
            return FixedArmsWorld(source.fixed, means, noise, streams, reward.describe(), realised)
        return ContextualWorld(source, reward, noise, streams, agents, realised)


PROBLEM = ProblemEntry(
    name="contextual",
    config=ContextualProblem,
    summary="synthetic arms (ball, sphere, box, cube, pool); linear, logistic, cosine, square, cubic or RKHS reward",
    reference="Li et al. 2023, section 5 (synthetic); Pavlovic et al. 2024, section 5; Dai et al. 2023, section 5.1",
    cites=("li2023asynchronous", "pavlovic2024order", "dai2023federated"),
)
