"""Parameters of Async-KernelUCB (Li et al. 2023, Algorithm 1, with the values of lemmas 4.1 and 4.4 and of theorem
4.5)."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from coband.agents.parameters import AnyKernel, Repeats
from coband.simulator.arrays import FloatArray
from coband.simulator.core.config import REWARD, Config
from coband.simulator.core.nodes.node import NodeContext, UnsupportedScenario
from coband.simulator.maths.exploration.asynchronous import (
    accuracy_ratio,
    confidence_width,
    exchange_threshold,
    information_gain,
    sampling_rate,
)
from coband.simulator.maths.kernels.library import Gaussian


class ExchangeConfig(Config):
    """How the server treats exchanges that overlap."""

    exchanges: Literal["auto", "serial", "interleaved"] = "auto"
    """serial: one exchange is finished before the next is answered, as in the paper, which has no delays; interleaved:
    all at once; auto: interleaved where links, turns or the handling of messages take time, serial otherwise."""


class AsyncConfig(Config):
    """Parameters of Algorithm 1."""

    kernel: AnyKernel = Gaussian(gamma=1.0)
    """The kernel k(x, y)."""
    alpha: Annotated[float, Field(ge=0)] | Literal["theory"] = 1.0
    """Exploration: arms are chosen by mu + alpha * sigma; theory: that of lemma 4.4."""
    lam: float = Field(default=1.0, gt=0)
    """Ridge parameter lambda; the lemmas assume lambda <= k(x, x)."""
    q: Annotated[float, Field(ge=0)] | Literal["theory"] = 1.0
    """Sampling: a point enters the dictionary with probability min(1, q * sigma^2); theory: that of lemma 4.1."""
    threshold: Annotated[float, Field(ge=0)] | Literal["theory"] = 1.0
    """The paper's D: an exchange is due when the variances of the new points add up to more; theory: 1/N^2."""
    repeats: Repeats = "keep"
    """keep: a point sampled several times stands as often in the dictionary; drop: once, which spans the same."""
    delta: float = Field(default=0.1, gt=0, lt=1)
    """For ``theory``: what lemma 4.4 says holds with probability 1 - 2 delta."""
    epsilon: float = Field(default=1 / 3, gt=0, lt=1)
    """Accuracy of the dictionary, for ``theory`` (the paper leaves it open; 1/3 is ours, so that beta = 2)."""
    B: float = Field(default=1.0, ge=0)
    """The paper's S, a bound on the norm of f in the kernel's Hilbert space, for ``alpha: theory``."""
    R: Annotated[float, REWARD] = Field(default=0.1, ge=0)
    """The noise is R-sub-Gaussian, for ``alpha: theory``."""
    horizon: int | None = Field(default=None, ge=1)
    """The paper's T, turns of all agents together, for ``q: theory``; null: those that the schedule allows."""
    transfer: Literal["full", "delta"] = "full"
    """full: as in the paper; delta: only what the receiver lacks."""
    server: ExchangeConfig = ExchangeConfig()
    """Overlapping exchanges."""
    blocking: bool = False
    """True: the agent waits while its exchange is under way."""

    @model_validator(mode="after")
    def _theory_has_a_scale(self) -> Self:
        if self.alpha == "theory" and self.threshold == 0:
            raise ValueError(
                "alpha: theory needs a threshold > 0, since its information gain is that of K/(D beta lambda); "
                "write threshold: theory, or alpha as a number."
            )
        return self

    def due(self, context: NodeContext) -> float:
        """D, as given or 1/N^2."""
        return exchange_threshold(context.agents) if self.threshold == "theory" else self.threshold

    def rate(self, context: NodeContext) -> float:
        """q, as given or from T.

        Raises:
            UnsupportedScenario: T is needed, and neither the schedule nor ``horizon`` says it.
        """
        if self.q != "theory":
            return self.q
        turns = self.horizon or context.total_turns
        if turns is None:
            raise UnsupportedScenario(
                "q: theory depends on the number of turns; give horizon (turns of all agents together), or "
                "schedule.turns"
            )
        return sampling_rate(self.epsilon, turns, self.delta)

    def width(self, context: NodeContext, A: FloatArray) -> float:
        """alpha, as given or for the information gain of the data behind A (m, m)."""
        if self.alpha != "theory":
            return self.alpha
        due = self.due(context)
        return confidence_width(
            information_gain(A, due * accuracy_ratio(self.epsilon) * self.lam),
            agents=context.agents,
            threshold=due,
            epsilon=self.epsilon,
            lam=self.lam,
            norm=self.B,
            noise=self.R,
            delta=self.delta,
        )
