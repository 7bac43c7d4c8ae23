"""Parameters of Async-KernelUCB (Li et al. 2023, Algorithm 1), and the values that lemmas 4.1 and 4.4 and theorem 4.5
ask for. Throughout, beta = (1 + eps)/(1 - eps) for the accuracy eps of the dictionary, and N is the number of agents.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from coband.agents.common.parameters import AnyKernel, Repeats
from coband.simulator.arrays import FloatArray
from coband.simulator.core.config import REWARD, Config
from coband.simulator.core.nodes.node import NodeContext, UnsupportedScenario
from coband.simulator.maths.kernels.library import Gaussian


def accuracy_ratio(epsilon: float) -> float:
    """beta = (1 + eps)/(1 - eps) (Li et al. 2023, lemma 4.1)."""
    return (1.0 + epsilon) / (1.0 - epsilon)


def sampling_rate(epsilon: float, horizon: int, delta: float) -> float:
    """q = 4 ln(2 sqrt(2) T/delta) beta (1 + eps/3)/eps^2 (Li et al. 2023, lemma 4.1).

    Args:
        epsilon: accuracy eps of the dictionary, in (0, 1).
        horizon: T, turns of all agents together.
        delta: probability of failure.
    """
    logarithm = math.log(2.0 * math.sqrt(2.0) * horizon / delta)
    return 4.0 * logarithm * accuracy_ratio(epsilon) * (1.0 + epsilon / 3.0) / epsilon**2


def exchange_threshold(agents: int) -> float:
    """D = 1/N^2, with which the bounds on regret and communication hold (Li et al. 2023, section 4.3)."""
    return 1.0 / agents**2


def information_gain(A: FloatArray, scale: float) -> float:
    """1/2 log det(I + A/scale) for statistics A = sum z z^T (m, m): that of the data behind A, K/scale for A/scale."""
    return 0.5 * float(np.linalg.slogdet(np.eye(len(A)) + A / scale)[1])


def confidence_width(
    gain: float, *, agents: int, threshold: float, epsilon: float, lam: float, norm: float, noise: float, delta: float
) -> float:
    """alpha = (1/sqrt(1-eps) + 1) sqrt(lam) S + 2 R (sqrt(1 + N D beta) + N sqrt(2 D beta)) sqrt(ln(1/delta) + gamma).

    Li et al. 2023, lemma 4.4, which holds with probability 1 - 2 delta.

    Args:
        gain: gamma, an information gain at scale D beta lam.
        agents: N.
        threshold: D.
        epsilon: accuracy eps of the dictionary.
        lam: ridge parameter lambda.
        norm: S, a bound on the norm of f.
        noise: R, the noise is R-sub-Gaussian.
        delta: that of the lemma.
    """
    spread = threshold * accuracy_ratio(epsilon)
    lag = math.sqrt(1.0 + agents * spread) + agents * math.sqrt(2.0 * spread)
    bias = (1.0 / math.sqrt(1.0 - epsilon) + 1.0) * math.sqrt(lam) * norm
    return bias + 2.0 * noise * lag * math.sqrt(math.log(1.0 / delta) + gain)


class ExchangeConfig(Config):
    """How the server treats exchanges that overlap."""

    exchanges: Literal["auto", "serial", "interleaved"] = "auto"
    """serial: one exchange is finished before the next is answered, as in the paper, which has no delays; interleaved:
    all at once; auto: interleaved where links, turns or handling take time or there are batteries, serial otherwise."""


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
