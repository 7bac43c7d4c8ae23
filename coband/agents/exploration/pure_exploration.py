"""What all algorithms of pure exploration have in common: the pairs that everybody knows, counts of pulls, the end."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import ClassVar

import numpy as np
from pydantic import Field

from coband.agents.common.parameters import AnyKernel
from coband.simulator.arrays import FloatArray, IntArray
from coband.simulator.core.config import Config
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import Address, BatchAgent, NodeContext, Outbox, UnsupportedScenario
from coband.simulator.maths.exploration.design import DesignError, check_countable
from coband.simulator.maths.exploration.pairs import Pairs, pairs_of
from coband.simulator.maths.kernels.library import Linear
from coband.simulator.metrics import Metric

PURE_EXPLORATION = (
    Metric("samples_per_agent", "pulls", "pulls of an average agent", better="lower", verb="needs the fewest samples"),
    Metric("answer", "arm", "the arm that the agent declares the best", aggregate=None),
    Metric("samples", "pulls", "pulls of the agent", aggregate=None),
    Metric("phases", "phases", "batches that the agent has pulled", aggregate=None),
)

DIFFICULTY = (
    Metric(
        "hardness", "samples", "rho*(xi) of Du et al. 2023: the smallest largest variance of a difference over its gap"
    ),
    Metric("effective_dimension", "dimensions", "effective dimension d_eff of the task-arm pairs (Du et al. 2023)"),
    Metric("task_rank", "tasks", "rank of K_Z, the kernel matrix of tasks"),
)
"""Of CoKernelFC and CoKernelFB: how hard the instance is; known after a run only, from the hidden means."""


class PureExplorationConfig(Config):
    """Parameters of every algorithm of pure exploration."""

    kernel: AnyKernel = Linear()
    """The kernel of task-arm pairs (z, x); linear for explicit features."""


class FixedConfidenceConfig(PureExplorationConfig):
    """Parameters with a fixed confidence."""

    delta: float = Field(default=0.005, gt=0, lt=1)
    """Probability that some agent's answer may be wrong."""
    epsilon: float = Field(default=0.1, gt=0, le=1)
    """How much worse whole numbers of samples may be than the design, relatively."""


class FixedBudgetConfig(PureExplorationConfig):
    """Parameters with a fixed budget."""

    budget: int = Field(default=30_000, ge=1)
    """Samples per agent on average, the paper's T."""
    epsilon: float = Field(default=0.1, gt=0, le=1)
    """How much worse whole numbers of samples may be than the design, relatively."""


class PureExplorationAgent(BatchAgent):
    """Knows all pairs and counts its pulls."""

    noted: ClassVar[Mapping[str, str]] = {"stop": "arm declared the best"}

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.pairs: Pairs = context.sharing.get("pairs", self._all_pairs)
        self.index = context.index
        self.round = 1
        self.pulls = self.phases = 0

    def _all_pairs(self) -> Pairs:
        points: FloatArray = np.ascontiguousarray(self.context.knowledge.reshape(-1, self.context.dimension))
        return pairs_of(self.context.config.kernel(points, points), self.context.agents)

    def pulled(self, counts: IntArray) -> None:
        pulls = int(counts.sum())
        self.phases += 1
        self.pulls += pulls
        self.unshared += pulls

    def stop(self, answer: int) -> None:
        """Declare an arm the best."""
        self.answer, self.done = answer, True
        self.note("stop", round=self.round, value=answer)

    def receive(self, message: Message, source: Address) -> Outbox:
        """Nobody talks to an agent that works alone."""
        raise TypeError(f"agent {self.index} works alone but got a message of kind {message.kind!r}")

    def samples_used(self) -> float:
        return self.pulls

    def report(self) -> dict[str, float | int]:
        """``samples_per_agent``: this agent's share of the mean over agents."""
        return {"samples_per_agent": self.samples_used() / self.context.agents}

    def report_own(self) -> dict[str, float | int | None]:
        """``answer``: the arm declared the best, None while unknown; ``samples``; ``phases``: batches pulled."""
        return {"answer": self.answer, "samples": self.samples_used(), "phases": self.phases}


def affordable(budget: int, allot: Callable[[], object]) -> None:
    """Refuse a budget whose first round cannot be rounded.

    Raises:
        UnsupportedScenario: with the reason.
        DesignError: it is too large to count.
    """
    check_countable(budget)
    try:
        allot()
    except DesignError as error:
        raise UnsupportedScenario(f"budget(={budget}) is too small: {error}") from None


def five_digits(rho: float) -> float:
    """A design's value to the digits in which counts may use it; more would make them depend on the machine."""
    return float(f"{rho:.5g}")


def confident_samples(round: int, rho: float, arms: int, agents: int, delta: float, epsilon: float) -> int:
    """Du et al. 2023, Algorithm 1, line 5: 32 (2^r)^2 (1 + eps)^2 rho log(2 n^2 V / delta_r), delta_r = delta/(2
    r^2)."""
    log = math.log(2 * arms**2 * agents * 2 * round**2 / delta)
    return math.ceil(32 * 2.0 ** (2 * round) * (1 + epsilon) ** 2 * five_digits(rho) * log)


def rounds_of(omega: float, equal: float) -> int:
    """R = ceil(log2 omega), at least 1; a value that is a power of two but for ``equal`` counts as one."""
    return max(1, math.ceil(math.log2(omega) - equal)) if omega > 1 else 1
