"""Synthetic contextual bandits: drawn arm sets or a fixed domain, and a drawn reward (Li et al. 2023, section 5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pydantic
from pydantic import Field

from coband.simulator.arrays import FloatArray
from coband.simulator.core.config import JsonObject
from coband.simulator.core.world import World
from coband.simulator.metrics import Metric
from coband.simulator.problems.arms import ArmSource, ArmSpec
from coband.simulator.problems.drift import AnyDrift
from coband.simulator.problems.drift import Path as Drifting
from coband.simulator.problems.problem import Problem, ProblemEntry, Streams
from coband.simulator.problems.rewards import (
    AnyReward,
    LinearReward,
    NoiseSpec,
    RewardFunction,
    RidgeFunction,
    as_noise,
    means_of,
)
from coband.simulator.problems.world import (
    Blocks,
    DrawnTurns,
    FixedArmsWorld,
    GoingOn,
    Noise,
    Turn,
    TurnsWorld,
    frozen,
    longest_block,
    position,
    read_only,
)


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
        self.going_on: GoingOn | None = None

    def upcoming(self, agent: int, turn: int) -> FloatArray:
        """Arms of the turn and of those after it that are drawn already."""
        drawn, place = self._of(agent).upcoming(turn)
        assert isinstance(drawn, DrawnTurns)
        return drawn.arms[place:]

    def pull(self, agent: int, turn: int, arm: int) -> tuple[float, float]:
        drawn: Any  # DrawnTurns; looking costs as much as some of what follows
        drawn, place = (self._blocks.get(agent) or self._of(agent)).upcoming(turn)
        mean, best, draw = drawn.of(place, arm)
        reward = self._noise.reward(mean, draw)
        return reward, best - (reward if self.realised else mean)

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
        longest = longest_block(*self._sizes, expected=self._expected is not None)
        return Blocks(OwnTurns(self, agent, self._streams), longest, self._expected)

    def draw(self, agent: int, turns: int, arms: int, noise: int) -> tuple[DrawnTurns, int, int]:
        """The next turns of an agent whose streams of arms and noise stand here, and where they stand then."""
        assert self.going_on is not None
        rng = self.going_on.at(arms)
        drawn = frozen(self.shift_arms(agent, self._source.draw(rng, turns)))
        arms = position(rng)
        rng = self.going_on.at(noise)
        draws = self._noise.draws(rng, turns)
        return DrawnTurns(drawn, means_of(self.reward_of(agent), drawn), draws), arms, position(rng)


class OwnTurns:
    """Draws the turns of one agent, block after block; no generator waits for the next one."""

    __slots__ = ("_agent", "_arms", "_noise", "_world")

    def __init__(self, world: ContextualWorld, agent: int, streams: Streams) -> None:
        self._world, self._agent = world, agent
        opened = [streams("world", agent, purpose) for purpose in ("arms", "noise")]
        self._arms, self._noise = map(position, opened)
        world.going_on = world.going_on or GoingOn(opened[0])

    def __call__(self, turns: int) -> DrawnTurns:
        drawn, self._arms, self._noise = self._world.draw(self._agent, turns, self._arms, self._noise)
        return drawn


class PersonalWorld(ContextualWorld):
    """A world in which a part of theta is each agent's own."""

    def __init__(self, own_part: Callable[[RewardFunction, np.random.Generator], RewardFunction], *world: Any) -> None:
        super().__init__(*world)
        self._own_part, self._functions = own_part, dict[int, RewardFunction]()

    def reward_of(self, agent: int) -> RewardFunction:
        """f of the agent, whose part is drawn from the stream (world, agent, personal)."""
        if agent not in self._functions:
            self._functions[agent] = self._own_part(self._reward, self._streams("world", agent, "personal"))
        return self._functions[agent]


class Hidden:
    """A mean reward f(x) = g(x . theta_t) whose theta_t changes with simulated time.

    Args:
        first: f as it was drawn.
        path: theta_t.

    Attributes:
        variation: B, the sum of ||theta_t - theta_s|| over consecutive pulls, of whichever agents, at times s and t
            (the variation budget of Cheung et al. 2019, section 2, where a pull is a round).
    """

    def __init__(self, first: RidgeFunction, path: Drifting) -> None:
        self._path = path
        self._now: Callable[[], float] = lambda: 0.0
        self.first, self.function, self.variation = first, replace(first, theta=path(0.0)), 0.0
        self._pulled: FloatArray | None = None

    def follow_clock(self, now: Callable[[], float]) -> None:
        """Be told what time it is."""
        self._now = now

    def changed(self) -> bool:
        """Whether f is another one than when this was last asked."""
        theta = self._path(self._now())
        if theta is self.function.theta:
            return False
        self.function = replace(self.function, theta=theta)
        return True

    def note_pull(self) -> None:
        """There is a pull now."""
        theta = self.function.theta
        if theta is not self._pulled:
            self.variation += 0.0 if self._pulled is None else float(np.linalg.norm(theta - self._pulled))
            self._pulled = theta


class DriftingWorld(ContextualWorld):
    """Arm sets that change from turn to turn, and a mean reward that changes with time; see `Hidden`."""

    def __init__(self, hidden: Hidden, source: ArmSource, noise: Noise, streams: Streams, *rest: Any) -> None:
        super().__init__(source, hidden.first, noise, streams, *rest)
        self._hidden, self.follow_clock = hidden, hidden.follow_clock

    @property
    def measures(self) -> dict[str, float]:
        return {"variation": self._hidden.variation}

    def _as_now(self, agent: int, turn: int) -> Turn:
        arms, _, _, draw = super()._as_now(agent, turn)
        self._hidden.changed()
        means = read_only(self._hidden.function(arms))
        return arms, means, float(means.max()), draw

    def pull(self, agent: int, turn: int, arm: int) -> tuple[float, float]:
        outcome = TurnsWorld.pull(self, agent, turn, arm)
        self._hidden.note_pull()
        return outcome


class DriftingPool(FixedArmsWorld):
    """The same arms at all turns, and a mean reward that changes with time; see `Hidden`."""

    def __init__(self, hidden: Hidden, arms: FloatArray, *rest: Any) -> None:
        super().__init__(arms, hidden.function(arms[None])[0], *rest)
        self._hidden, self.follow_clock = hidden, hidden.follow_clock

    @property
    def measures(self) -> dict[str, float]:
        return {"variation": self._hidden.variation}

    def _follow(self) -> None:
        if self._hidden.changed():
            self._set_means(self._hidden.function(self._arms[None])[0])

    def means(self, agent: int, turn: int) -> FloatArray:
        self._follow()
        return super().means(agent, turn)

    def pull(self, agent: int, turn: int, arm: int) -> tuple[float, float]:
        self._follow()
        self._hidden.note_pull()
        return super().pull(agent, turn, arm)


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
    drift: AnyDrift | None = None
    """How theta changes as time passes; regret is against the best arm of the moment (dynamic regret). null: it
    stays as it is."""

    @pydantic.model_validator(mode="after")
    def _check(self) -> ContextualProblem:
        if self.drift is not None and self.reward.redraw(1) is None:
            raise ValueError(
                "drift: it moves the theta of rewards that are functions of x . theta (cosine, linear, logistic, "
                f"square, cubic), and reward.kind {getattr(self.reward, 'kind', '')} has none; choose one of these, or "
                "leave drift out"
            )
        if self.drift is not None and isinstance(self.reward, LinearReward) and self.reward.personal:
            raise ValueError("drift moves one theta for all agents; leave out drift, or reward.personal")
        if misplaced := self.reward.misplaced(self.arms, "arms"):
            raise ValueError(misplaced)
        return self

    def build(self, streams: Streams, agents: int, base: Path | None = None) -> World:
        """Draw pool and reward function from the streams (world, 0, pool) and (world, 0, reward)."""
        source = self.arms.build(streams)
        reward = self.reward.draw(streams("world", 0, "reward"), source)
        noise = as_noise(self.noise)
        realised = self.regret == "realised"
        if self.drift is not None:
            redraw = self.reward.redraw(source.dimension)
            assert redraw is not None
            assert isinstance(reward, RidgeFunction)
            hidden = Hidden(reward, self.drift.path(reward.theta, redraw, streams))
            if source.fixed is not None:
                return DriftingPool(hidden, source.fixed, noise, streams, reward.describe(), realised)
            return DriftingWorld(hidden, source, noise, streams, agents, realised)
        if source.fixed is not None:
            means = means_of(reward, source.fixed[None])[0]
            return FixedArmsWorld(source.fixed, means, noise, streams, reward.describe(), realised)
        if isinstance(self.reward, LinearReward) and self.reward.personal:
            return PersonalWorld(self.reward.own_part, source, reward, noise, streams, agents, realised)
        return ContextualWorld(source, reward, noise, streams, agents, realised)


PROBLEM = ProblemEntry(
    name="contextual",
    config=ContextualProblem,
    summary="synthetic arms (ball, sphere, box, cube, pool); linear, logistic, cosine, square, cubic or RKHS reward",
    reference="Li et al. 2023, section 5 (synthetic); Pavlovic et al. 2024, section 5; Dai et al. 2023, section 5.1",
    cites=("li2023asynchronous", "pavlovic2024order", "dai2023federated"),
    metrics=(
        Metric(
            "variation",
            "length of theta",
            "sum of how far the hidden theta moves between consecutive pulls; of problem.drift alone",
        ),
    ),
)
