"""Pure exploration with related tasks: every agent looks for the best of its own arms (Du et al. 2023, sections 3 and
6).

All agents know all task-arm pairs x~ = (z_v, x); F(x~) is hidden. Du et al. 2023 is "Collaborative Pure Exploration in
Kernel Bandit".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
import pydantic
from pydantic import Field

from coband.simulator.arrays import FloatArray, require_room
from coband.simulator.core.config import REWARD, Config
from coband.simulator.core.world import World
from coband.simulator.maths.exploration.conditions import smallest_norm
from coband.simulator.maths.kernels.library import Kernel, Linear
from coband.simulator.maths.kernels.registry import AnyKernel
from coband.simulator.metrics import Metric
from coband.simulator.problems.problem import InstanceError, Problem, ProblemEntry, Streams, check_columns
from coband.simulator.problems.rewards import GaussianNoise, NoiseSpec, as_noise
from coband.simulator.problems.world import Blocks, FixedArmsWorld, Noise, read_only

IntArray = npt.NDArray[np.int64]
ATTEMPTS = 1000
CHUNK = 1 << 16  # pulls drawn at once; it bounds the memory of a batch of a million pulls


class TableFeatures(Config):
    """Explicit features: all 0/1 vectors with ``ones`` ones in a block of ``size`` coordinates; F(x) = theta . x.

    theta_i = 0.1 + i * gap, i = 0 .. d - 1, so that the smallest gap is `problem.gap` (Du et al. 2023, appendix A).
    """

    kind: Literal["table"]
    """All 0/1 vectors with `ones` ones in the agent's block of coordinates."""
    tasks: Literal["same", "similar", "different"] | tuple[Annotated[int, Field(ge=0)], ...] = "same"
    """Block of each agent. same: all agents have the first block; similar: two fifths of the agents have the first
    block, the others the second; different: each agent has its own; or a list of one block number per agent, from 0."""
    size: int = Field(default=4, ge=2)
    """Coordinates of a block."""
    ones: int = Field(default=2, ge=1)
    """Ones in a vector."""

    def table(self, agents: int, gap: float) -> tuple[FloatArray, FloatArray]:
        """The pairs (agents, n, d) and their means (agents, n).

        Raises:
            InstanceError: the list of blocks does not have one entry per agent.
        """
        blocks = self.blocks(agents)
        if len(blocks) != agents:
            raise InstanceError(f"problem.features.tasks {self.count_error(agents)}")
        shape = agents, math.comb(self.size, self.ones), self.size * (max(blocks) + 1)
        what = "the arms of {:,} agents, {:,} each of dimension {:,}".format(*shape)
        require_room(what, *shape, instead="change problem.features (size, ones)")
        chosen = list(combinations(range(self.size), self.ones))
        pairs = np.zeros(shape)
        for agent, block in enumerate(blocks):
            for arm, places in enumerate(chosen):
                pairs[agent, arm, [self.size * block + place for place in places]] = 1.0
        theta = 0.1 + gap * np.arange(pairs.shape[2])
        return pairs, pairs @ theta

    def count_error(self, agents: int) -> str | None:
        """An error message if `tasks` does not have one entry per agent, else None."""
        if isinstance(self.tasks, str) or len(self.tasks) == agents:
            return None
        return f"has {len(self.tasks)} entries: must have one per agent (agents.count is {agents})"

    @pydantic.model_validator(mode="after")
    def _check(self) -> TableFeatures:
        if self.ones >= self.size:
            raise ValueError(f"ones(={self.ones}) must be < size(={self.size}).")
        return self

    def blocks(self, agents: int) -> tuple[int, ...]:
        if not isinstance(self.tasks, str):
            return self.tasks
        if self.tasks == "different":
            return tuple(range(agents))
        first = agents if self.tasks == "same" else max(1, 2 * agents // 5)
        return (0,) * first + (1,) * (agents - first)


class KernelFeatures(Config):
    """Random points z_v and x in boxes, and a function of the RKHS of a kernel on (z, x); ours, after Du et al. 2023,
    section 3.

    F = sum_j a_j k(x~_j, .) over all pairs, with standard normal a_j. F is redrawn until its smallest gap is at least
    `separation` times its range, and then scaled so that the smallest gap is `problem.gap`.
    """

    kind: Literal["kernel"]
    """Drawn task and arm features and a drawn function of the kernel's RKHS."""
    kernel: AnyKernel
    """k((z, x), (z', x')); tasks are the first coordinates: a product whose factors have `columns`."""
    task_dimension: int = Field(default=1, ge=1)
    """Number of coordinates of z."""
    arm_dimension: int = Field(default=2, ge=1)
    """Number of coordinates of x."""
    count: int = Field(default=6, ge=2)
    """Arms of each agent, n; all agents have the same arms."""
    spread: float = Field(default=1.0, ge=0)
    """Task features are drawn from [0, spread]^dimension; 0: all tasks are the same."""
    separation: float = Field(default=0.05, gt=0, lt=1)
    """Lower bound on the smallest gap, as a share of F's range."""

    def draw(self, rng: np.random.Generator, agents: int, gap: float) -> tuple[FloatArray, FloatArray]:
        """The pairs (agents, n, d) and their means (agents, n).

        Raises:
            InstanceError: the kernel names columns that pairs do not have, or no drawn function has large enough gaps.
        """
        check_columns(self.kernel, self.task_dimension + self.arm_dimension, "problem.features.kernel")
        tasks = self.spread * rng.random((agents, 1, self.task_dimension))
        arms = rng.random((1, self.count, self.arm_dimension))
        shape = (agents, self.count)
        parts = [np.broadcast_to(part, (*shape, part.shape[2])) for part in (tasks, arms)]
        pairs = np.concatenate(parts, axis=2)
        points = np.ascontiguousarray(pairs.reshape(-1, pairs.shape[2]))
        what = f"the kernel of {self.count:,} arms of {agents:,} agents"
        require_room(what, len(points), len(points), instead="change problem.features.count, or agents.count")
        K = self.kernel(points, points)
        for _ in range(ATTEMPTS):
            means = (K @ rng.standard_normal(len(K))).reshape(shape)
            smallest = smallest_gap(means)
            if smallest >= self.separation * np.ptp(means) > 0:
                return pairs, means * (gap / smallest)
        raise InstanceError(
            f"no function with gaps of problem.features.separation(={self.separation}) of its range was found in "
            f"{ATTEMPTS} attempts; lower it."
        )


def smallest_gap(means: FloatArray) -> float:
    """Delta_min: the smallest difference between the best and the second best arm of an agent; means (V, n)."""
    ordered = np.sort(means, axis=1)
    return float((ordered[:, -1] - ordered[:, -2]).min())


class PureExplorationWorld(FixedArmsWorld):
    """A world in which each agent has its own arm set, the same at every turn.

    Args:
        pairs: task-arm pairs of each agent, (V, n, d).
        means: their means, (V, n).
        sampling: see `PureExplorationProblem`.
        norms: norm of the smallest parameter of each agent's rewards in the features' kernel, (V,); each agent
            knows its own norm.
    """

    fixed_arms = False

    def __init__(
        self, pairs: FloatArray, means: FloatArray, noise: Noise, sampling: str, streams: Streams, norms: FloatArray
    ) -> None:
        super().__init__(pairs[0], means, noise, streams, {"means": means.tolist()})
        self.norms, self._pairs = norms, read_only(pairs)
        self._gaps = self._means.max(axis=1, keepdims=True) - self._means
        self._deviation = noise.sd if isinstance(noise, GaussianNoise) and sampling == "statistics" else None
        self._batches: dict[int, Blocks[FloatArray]] = {}

    def knowledge(self) -> FloatArray:
        """All task-arm pairs, (V, n, d)."""
        return self._pairs

    def arms(self, agent: int, turn: int) -> FloatArray:
        pairs: FloatArray = self._pairs[agent]
        return pairs

    def pull_batch(self, agent: int, phase: int, counts: IntArray) -> tuple[FloatArray, float]:
        """Mean reward of each arm, 0 where its count is 0, and the pseudo-regret of all pulls.

        With Gaussian noise the mean of c rewards is N(f, sd^2 / c). It takes one draw per arm and phase for any c.
        """
        noise = self._exact(agent, phase, counts) if self._deviation is None else self._drawn(agent, phase, counts)
        means = np.where(counts > 0, self._means[agent] + noise, 0.0)
        return means, float(counts @ self._gaps[agent])

    def _drawn(self, agent: int, phase: int, counts: IntArray) -> FloatArray:
        assert self._deviation is not None
        if agent not in self._batches:
            rng, n = self._streams("world", agent, "batches"), self._means.shape[1]
            self._batches[agent] = Blocks(lambda phases: list(rng.standard_normal((phases, n))))
        standard: FloatArray = self._batches[agent].at(phase)
        return self._deviation * standard / np.sqrt(np.maximum(counts, 1))

    def _exact(self, agent: int, phase: int, counts: IntArray) -> FloatArray:
        """Mean noise of each arm, drawn pull by pull from the stream of the phase."""
        rng = self._streams("world", agent, f"pulls of phase {phase}")
        sums = [
            math.fsum(sum(self._noise.draws(rng, min(CHUNK, count - start))) for start in range(0, count, CHUNK))
            for count in counts.tolist()
        ]
        return np.array(sums) / np.maximum(counts, 1)

    def score(self, answers: Sequence[int | None]) -> dict[str, float]:
        """`correct`: 1 if all answers are right, else 0; `error`: 1 - correct; `correct_agents`; `gap`: Delta_min."""
        if not answers:
            return {}
        right = sum(answer == best for answer, best in zip(answers, self._means.argmax(axis=1).tolist(), strict=True))
        correct = int(right == len(answers))
        return {"correct": correct, "error": 1 - correct, "correct_agents": right, "gap": smallest_gap(self._means)}

    def score_of(self, agent: int, answer: int | None) -> dict[str, float]:
        """`correct`: whether this agent's answer is right."""
        return {"correct": answer == int(self._means[agent].argmax())}


class PureExplorationProblem(Problem):
    """Every agent looks for the best of its own arms; the tasks of the agents are related."""

    kind: Literal["pure_exploration"]
    """Find the best arm of every agent's task."""
    features: Annotated[TableFeatures | KernelFeatures, Field(discriminator="kind")] = TableFeatures(kind="table")
    """How the task-arm pairs and their means are made."""
    gap: Annotated[float, REWARD] = Field(default=0.5, gt=0)
    """The smallest gap between the best and the second best arm of any task, Delta_min."""
    noise: NoiseSpec = 1.0
    """Noise of one pull; a number is the standard deviation of Gaussian noise (Du et al. 2023: 1)."""
    sampling: Literal["statistics", "pulls"] = "statistics"
    """statistics: with Gaussian noise, draw the mean of a batch at once; pulls: draw every pull."""

    def validate_for(self, agents: int) -> Iterator[tuple[tuple[str, ...], str]]:
        wrong = self.features.count_error(agents) if isinstance(self.features, TableFeatures) else None
        if wrong is not None:
            yield ("features", "tasks"), wrong

    def build(self, streams: Streams, agents: int, base: Path | None = None) -> World:
        """Draw pairs and means from the stream (world, 0, tasks).

        Raises:
            InstanceError: the features do not fit the number of agents, or no instance was found.
        """
        if isinstance(self.features, KernelFeatures):
            pairs, means = self.features.draw(streams("world", 0, "tasks"), agents, self.gap)
            norms = _norms(self.features.kernel, pairs, means)
        else:
            pairs, means, norms = _of_table(self.features, agents, self.gap)
        return PureExplorationWorld(pairs, means, as_noise(self.noise), self.sampling, streams, norms)


def _norms(kernel: Kernel, pairs: FloatArray, means: FloatArray) -> FloatArray:
    return np.array([smallest_norm(kernel(own, own), F) for own, F in zip(pairs, means, strict=True)])


@lru_cache(maxsize=8)
def _of_table(features: TableFeatures, agents: int, gap: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Pairs, means and norms of a table, which are the same in all replications and for all algorithms.

    Raises:
        InstanceError: the features do not fit the number of agents.
    """
    pairs, means = features.table(agents, gap)
    return read_only(pairs), read_only(means), read_only(_norms(Linear(), pairs, means))


PROBLEM = ProblemEntry(
    name="pure_exploration",
    config=PureExplorationProblem,
    summary="each agent looks for the best of its own arms; tasks are the same, similar or different",
    reference="Du et al. 2023 (Collaborative Pure Exploration in Kernel Bandit), sections 3 and 6, appendix A",
    cites=("du2023collaborative",),
    metrics=(
        Metric("correct", "0 or 1", "1 when all agents are right; of an agent, whether it is", proportion=True),
        Metric(
            "error",
            "0 or 1",
            "1 when some agent is wrong",
            better="lower",
            proportion=True,
            title="errors",
            verb="errs least often",
        ),
        Metric("correct_agents", "agents", "agents that are right"),
        Metric("gap", "units of the reward", "the smallest difference between an agent's best arm and another of it"),
    ),
    aim="error",
)
