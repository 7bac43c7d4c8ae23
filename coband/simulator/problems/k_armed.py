"""K arms without features: the commonest problem of many agents, with means that may differ from agent to agent.

Arms carry the rows of the identity as features (d = K), so that linear and kernel algorithms run as well, and so that
an agent that is offered some of the arms knows their numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pydantic
from pydantic import Field

from coband.simulator.arrays import FloatArray, IndexArray, require_room
from coband.simulator.core.config import REWARD, Config
from coband.simulator.core.world import World
from coband.simulator.metrics import Metric
from coband.simulator.problems.problem import Problem, ProblemEntry, Streams, refused
from coband.simulator.problems.rewards import BernoulliNoise, GaussianNoise
from coband.simulator.problems.world import FixedArmsWorld, Noise, read_only


class DrawnMeans(Config):
    """Means drawn uniformly, once per replication."""

    low: float = 0.0
    """The lowest that is possible."""
    high: float = 1.0
    """The highest that is possible."""

    @pydantic.model_validator(mode="after")
    def _check(self) -> DrawnMeans:
        if not self.low < self.high:
            raise ValueError(f"low(={self.low:g}) must be below high(={self.high:g}).")
        return self

    @property
    def ends(self) -> tuple[float, float]:
        """The lowest and the highest mean."""
        return self.low, self.high

    def draw(self, rng: np.random.Generator, arms: int) -> FloatArray:
        return rng.uniform(self.low, self.high, arms)


class SteppedMeans(Config):
    """The best arm, the second best, and all others."""

    first: float
    """Mean of the best arm."""
    second: float
    """Mean of the second best."""
    rest: float
    """Mean of each of the others."""

    @pydantic.model_validator(mode="after")
    def _check(self) -> SteppedMeans:
        if not self.first >= self.second >= self.rest:
            raise ValueError(
                f"first(={self.first:g}) is the largest mean, second(={self.second:g}) the next one and "
                f"rest(={self.rest:g}) that of all others: they must not grow in this order."
            )
        return self

    @property
    def ends(self) -> tuple[float, float]:
        """The lowest and the highest mean."""
        return self.rest, self.first

    def draw(self, rng: np.random.Generator, arms: int) -> FloatArray:
        return np.array([self.first, self.second, *[self.rest] * (arms - 2)])


def _form(value: object) -> str | None:
    """How a section ``means`` is read."""
    if isinstance(value, DrawnMeans | SteppedMeans):
        return "drawn" if isinstance(value, DrawnMeans) else "stepped"
    if isinstance(value, dict):
        stepped = bool(value.keys() & {"first", "second", "rest"})
        return None if stepped and value.keys() & {"low", "high"} else "stepped" if stepped else "drawn"
    if not isinstance(value, list | tuple):
        return None
    lists = {isinstance(row, list | tuple) for row in value}
    return None if len(lists) > 1 else "table" if True in lists else "list"


Means = Annotated[
    Annotated[DrawnMeans, pydantic.Tag("drawn")]
    | Annotated[SteppedMeans, pydantic.Tag("stepped")]
    | Annotated[tuple[float, ...], pydantic.Tag("list")]
    | Annotated[tuple[tuple[float, ...], ...], pydantic.Tag("table")],
    pydantic.Discriminator(
        _form,
        custom_error_type="means",
        custom_error_message="Write a list of numbers, one per arm, a list of such lists, one per agent, {low: ..., "
        "high: ...} or {first: ..., second: ..., rest: ...}",
    ),
]


class KArmedWorld(FixedArmsWorld):
    """K arms, of which each agent is offered the same ones at all of its turns.

    Args:
        means: of each agent's K arms, (N, K).
        offered: numbers of the arms that each agent is offered, ascending, (N, k); None for all of them.
        team: whether regret is ``global``.
    """

    def __init__(
        self, means: FloatArray, offered: IndexArray | None, noise: Noise, streams: Streams, team: bool
    ) -> None:
        agents, arms = means.shape
        own, common = means, np.broadcast_to(means.mean(axis=0), means.shape)
        if offered is not None:
            own, common = (np.take_along_axis(table, offered, axis=1) for table in (own, common))
        truth = {"means": means.tolist() if np.ptp(means, axis=0).any() else means[0].tolist()}
        identity = read_only(np.eye(arms))
        self._offered = [identity] * agents if offered is None else [read_only(identity[row]) for row in offered]
        super().__init__(self._offered[0], own, noise, streams, truth)
        self.fixed_arms = offered is None
        gaps = [table.max(axis=1, keepdims=True) - table for table in (own, common)]
        self._own_gaps, self._team_gaps = (table.tolist() for table in gaps)
        self._team = team
        self.measures = {"regret_own": 0.0, "regret_global": 0.0}

    def arms(self, agent: int, turn: int) -> FloatArray:
        return self._offered[agent]

    def pull(self, agent: int, turn: int, arm: int) -> tuple[float, float]:
        reward, _ = super().pull(agent, turn, arm)
        own, team = self._own_gaps[agent][arm], self._team_gaps[agent][arm]
        self.measures["regret_own"] += own
        self.measures["regret_global"] += team
        return reward, team if self._team else own


class KArmedProblem(Problem):
    """K arms without features, for cooperative bandits."""

    bernoulli: ClassVar[str] = "reward: bernoulli"
    kind: Literal["k_armed"]
    """K arms without features."""
    arms: int | None = Field(default=None, ge=2)
    """Number of arms, K; null: as many as `means` lists."""
    means: Means
    """Mean reward of each arm: numbers; a list for each agent; {low, high}, drawn uniformly; or {first, second, rest}
    for the best arm, the second best, and all others."""
    spread: Annotated[float, REWARD] = Field(default=0.0, ge=0)
    """Agents have means of their own: to each agent's arm is added a number uniform in [-spread, spread], minus the
    average of these over agents, so that averages over agents stay as they are written."""
    reward: Literal["bernoulli", "gaussian"] = "bernoulli"
    """bernoulli: 1 with the arm's mean as its probability, else 0; gaussian: normal around the mean. A turn has one
    draw, the same for all arms and algorithms."""
    sd: Annotated[float, REWARD] = Field(default=1.0, ge=0)
    """Standard deviation of gaussian rewards."""
    offered: int | None = Field(default=None, ge=1)
    """Each agent has only so many of the arms, drawn so that every arm is offered to somebody; null: all."""
    shuffle: bool = True
    """Arms are in a random order, another one in each replication: rules that prefer the first arms profit from sorted
    means."""
    regret: Literal["own", "global"] = "own"
    """own: by the agent's own means; global: by the averages of the means over agents; both against the best of the
    arms that the agent is offered. The result has both sums, as `regret_own` and `regret_global`."""

    @pydantic.model_validator(mode="after")
    def _check(self) -> KArmedProblem:
        arms = self.number_of_arms
        if self._listed and len(set(map(len, self._rows))) > 1:
            raise ValueError("means: every agent needs a number for each arm, so all lists must be equally long.")
        if self._listed and self.arms not in (None, arms):
            raise ValueError(f"means lists {arms} arm{'s' * (arms != 1)}, and arms is {self.arms}; leave arms out.")
        if arms < 2:
            raise ValueError("means must list the means of at least 2 arms.")
        if not self._listed and self.arms is None:
            raise ValueError("arms, the number of arms, is needed where means does not list them.")
        if self.offered is not None and self.offered > arms:
            raise ValueError(f"offered(={self.offered}) must be <= the {arms} arms.")
        if self.spread and self._listed and not isinstance(self.means[0], float):  # type: ignore[index]
            raise ValueError("spread goes with means that all agents have; lists for each agent say everything.")
        if self.reward == "bernoulli" and self.sd != KArmedProblem.model_fields["sd"].default:
            raise ValueError(f"sd(={self.sd:g}) goes with reward: gaussian; rewards that are 0 or 1 have no other.")
        low, high = self._ends
        if self.reward == "bernoulli" and (low < 2 * self.spread or high > 1.0 - 2 * self.spread):
            what = "means" if not self.spread else "means, and what spread may add to them (twice as much),"
            raise ValueError(f"{what} must be from 0 to 1, as they are probabilities; or write reward: gaussian.")
        return self

    @classmethod
    def of(cls, means: Any, options: Mapping[str, Any]) -> KArmedProblem:
        """What `coband.Problem.k_armed` makes.

        Raises:
            ScenarioError: means or options cannot be used.
        """
        try:
            given = means if isinstance(means, Mapping) else np.asarray(means, dtype=np.float64).tolist()
            return cls.model_validate({"kind": "k_armed", "means": given, **options})
        except (TypeError, ValueError) as error:
            raise refused("Problem.k_armed", error) from error

    @property
    def noise(self) -> BernoulliNoise | GaussianNoise:
        """How rewards scatter around the means."""
        bernoulli = self.reward == "bernoulli"
        return BernoulliNoise(kind="bernoulli") if bernoulli else GaussianNoise(kind="gaussian", sd=self.sd)

    @property
    def _listed(self) -> bool:
        return isinstance(self.means, tuple)

    @property
    def _rows(self) -> list[Any]:
        """The lists of means: one, or one for each agent."""
        assert isinstance(self.means, tuple)
        return list(self.means) if self.means and isinstance(self.means[0], tuple) else [self.means]

    @property
    def _ends(self) -> tuple[float, float]:
        if not isinstance(self.means, tuple):
            return self.means.ends
        values = [mean for row in self._rows for mean in row]
        return min(values), max(values)

    @property
    def number_of_arms(self) -> int:
        """K."""
        return len(self._rows[0]) if self._listed else self.arms or 2

    def validate_for(self, agents: int) -> Iterator[tuple[tuple[str, ...], str]]:
        if self._listed and len(self._rows) not in (1, agents):
            yield ("means",), f"has lists for {len(self._rows)} agents: must have one, or agents.count(={agents})"
        if self.offered is not None and self.offered * agents < self.number_of_arms:
            yield ("offered",), f"is too small to offer each of {self.number_of_arms} arms to one of {agents} agents"

    def build(self, streams: Streams, agents: int, base: Path | None = None) -> World:
        """Draw from the streams (world, 0, X), where X is means, spread, order or offered, as far as it is needed."""
        shape = agents, self.number_of_arms
        require_room(f"the means of {shape[1]:,} arms of {agents:,} agents", *shape, instead="take fewer arms")
        if isinstance(self.means, tuple):
            means = np.broadcast_to(np.array(self._rows), shape)
        else:
            means = np.broadcast_to(self.means.draw(streams("world", 0, "means"), shape[1]), shape)
        if self.spread:
            offsets = streams("world", 0, "spread").uniform(-self.spread, self.spread, shape)
            means = means + (offsets - offsets.mean(axis=0))
        if self.shuffle:
            means = means[:, streams("world", 0, "order").permutation(shape[1])]
        offered = None if self.offered is None else _dealt(streams("world", 0, "offered"), self.offered, *shape)
        return KArmedWorld(means, offered, self.noise, streams, self.regret == "global")


def _dealt(rng: np.random.Generator, k: int, agents: int, arms: int) -> IndexArray:
    """The arms that agents are offered, ascending, (agents, k): first each arm to one agent, then others at random."""
    hands: list[list[int]] = [[] for _ in range(agents)]
    for place, arm in enumerate(rng.permutation(arms).tolist()):
        hands[place % agents].append(arm)
    for hand in hands:
        others = np.setdiff1d(np.arange(arms), hand)
        hand += rng.choice(others, k - len(hand), replace=False).tolist()
    return np.sort(np.array(hands, dtype=np.intp), axis=1)


PROBLEM = ProblemEntry(
    name="k_armed",
    config=KArmedProblem,
    summary="K arms without features; Bernoulli or Gaussian rewards, the same for all agents or each agent's own",
    reference="cooperative bandits, such as Landgren et al. 2016; own means: Liu et al. 2025",
    cites=("landgren2016distributed",),
    metrics=(
        Metric(
            "regret_own",
            "units of the reward",
            "sum over pulls of what the best of the arms offered to the agent has more",
        ),
        Metric(
            "regret_global",
            "units of the reward",
            "sum over pulls of what the best offered arm has more, by means averaged over agents",
        ),
    ),
)
