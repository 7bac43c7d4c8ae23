"""IndRAGE and IndRAGE/V: every agent runs RAGE alone (Fiez, Jain, Jamieson, Ratliff 2019, "Sequential Experimental
Design for Transductive Linear Bandits", Algorithm 1); baselines of Du et al. 2023, section 6.
As printed: `tests/oracles/cope_alone.py`. Next: `pure_exploration.py`.

Rounds t = 1, 2, ... of an XY-optimal design over the agent's own arms Z, Pukelsheim rounding, ordinary least squares,
elimination. With rho the value of the design, epsilon = 0.1, and delta shared out over the V agents (so that all are
right with probability 1 - delta), ``constants`` says how many samples a round takes and when an arm is dropped:

* published (the default): N_t = ceil(8 (2^(t+1))^2 rho (1 + epsilon) L) with L = ln(t^2 |Z|^2/delta); an arm z goes
  when some z' has an estimated gap (z' - z)^T theta of 2^-(t+2) or more. Three public implementations by others compute
  this, two of them with ln(2 t^2 |Z|^2/delta).
* public_code: the authors' own code begins two rounds earlier, with a sixteenth of the samples:
  N_t = ceil(8 (2^(t-1))^2 rho (1 + epsilon) L), at least 2 s/epsilon for s arms in the design, with
  L = ln(2 t^2 |Z|^2/delta), and 2^-t for the gap. Where gaps are large it needs far fewer samples.
* paper_003: N_t and the threshold 2^-t are those of Du et al. 2023, Algorithm 1, as CoKernelFC has them. Then IndRAGE
  and CoKernelFC differ in cooperation alone, and on equal tasks CoKernelFC equals IndRAGE/V by construction.

``elimination: width``, what the authors' code does by default, drops z when some z' has (z' - z)^T theta >=
||z' - z||_{A^-1} sqrt(2 L), A = sum of z z^T over the round's samples; the design keeps it below the gap above.

Simplified: the design is solved to a certified gap instead of some steps of Frank and Wolfe's (which overstate rho by
about 1 %), and rounding needs s (1 + epsilon)/epsilon samples. A kernel enters through features with the same inner
products, and there must be fewer of them than samples.

IndRAGE/V is a yardstick and no algorithm: the same runs, with ``samples_per_agent`` divided by V.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import numpy as np
from pydantic import model_validator

from coband.agents.exploration.pure_exploration import (
    PURE_EXPLORATION,
    FixedConfidenceConfig,
    PureExplorationAgent,
    confident_samples,
    five_digits,
)
from coband.simulator.arrays import BoolArray, FloatArray, IntArray
from coband.simulator.core.algorithm import SILENT, Algorithm, Needs
from coband.simulator.core.nodes.node import NodeContext, Outbox
from coband.simulator.maths.exploration.design import Design, fewest_samples

NEEDS = Needs(reliable=False, problems=("pure_exploration",), schedules=("phases",))


class IndRageConfig(FixedConfidenceConfig):
    """Parameters of RAGE."""

    constants: Literal["published", "public_code", "paper_003"] = "published"
    """published: samples and gaps as Fiez et al. print them; public_code: as their code has them, two rounds ahead;
    paper_003: those of CoKernelFC, so that comparing with it on equal tasks shows nothing else than sharing."""
    elimination: Literal["gap", "width"] = "gap"
    """gap: an arm is dropped by a fixed gap of each round; width: by the width of its confidence interval, the default
    of the authors' code."""

    @model_validator(mode="after")
    def _check(self) -> IndRageConfig:
        if self.constants == "paper_003" and self.elimination == "width":
            raise ValueError("elimination(=width) is not Du et al. 2023's: it must be gap with constants(=paper_003).")
        return self


class IndRage(PureExplorationAgent):
    """One agent's RAGE."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.config: IndRageConfig = context.config
        self._own = self.pairs.of(self.index)
        self.alive = np.ones((1, self._own.arms), dtype=np.bool_)
        self._start: FloatArray | None = None

    def request(self) -> IntArray:
        """The design for the arms that are alive, and its samples."""
        design = self._own.design(self.alive, 0.0, self._start)
        self._start = design.weights
        total = max(self._samples(design.value), self._least(design))
        counts: IntArray = self._own.allot(design, total, self.alive, 0.0, self.config.epsilon)[0]
        return counts

    def _samples(self, rho: float) -> int:
        """N_t, before rounding asks for more."""
        config, arms, agents = self.config, self._own.arms, self.context.agents
        if config.constants == "paper_003":
            return confident_samples(self.round, rho, arms, agents, config.delta, config.epsilon)
        power = self.round + 1 if config.constants == "published" else self.round - 1
        return math.ceil(8 * 2.0 ** (2 * power) * five_digits(rho) * (1 + config.epsilon) * self._log())

    def _log(self) -> float:
        """L, for this agent's share of delta."""
        two = 2 if self.config.constants == "public_code" else 1
        return math.log(two * self.round**2 * self._own.arms**2 * self.context.agents / self.config.delta)

    def _least(self, design: Design) -> int:
        least = fewest_samples(design.weights, self.config.epsilon)
        if self.config.constants == "public_code":
            least = max(least, math.ceil(2 * np.count_nonzero(design.weights) / self.config.epsilon))
        return least

    def observe_batch(self, counts: IntArray, means: FloatArray) -> Outbox:
        """Least squares, and elimination."""
        self.pulled(counts)
        estimates = self._own.least_squares(counts[None], means[None])[0]
        alive = self.alive[0]
        alive &= ~self._beaten(counts, estimates, alive)
        if alive.sum() == 1:
            self.stop(int(np.flatnonzero(alive)[0]))
        self.round += 1
        return []

    def _beaten(self, counts: IntArray, estimates: FloatArray, alive: BoolArray) -> BoolArray:
        """Which arms some alive arm is ahead of, by the gap of this round or by the width of the interval."""
        if self.config.elimination == "gap":
            return np.asarray(estimates[alive].max() - estimates >= 2.0 ** -(self.round + self._offset()))
        S = self._own.covariance(counts.astype(np.float64))
        variances = np.maximum(np.diag(S)[:, None] + np.diag(S) - 2 * S, 0.0)
        ahead = estimates - estimates[:, None]  # of the second arm over the first
        beaten = ahead >= np.sqrt(2 * variances * self._log())
        beaten[np.diag_indices_from(beaten)] = False
        return np.asarray(beaten[:, alive].any(axis=1))

    def _offset(self) -> int:
        return 2 if self.config.constants == "published" else 0


class IndRageOverV(IndRage):
    """IndRage whose samples are divided by V."""

    def samples_used(self) -> float:
        return self.pulls / self.context.agents


ALGORITHM = Algorithm(
    name="ind_rage",
    agent=IndRage,
    server=None,
    config=IndRageConfig,
    summary="Every agent finds its best arm alone, with XY-optimal designs and least squares.",
    reference="Fiez et al. 2019, Algorithm 1 (RAGE); baseline IndRAGE of Du et al. 2023",
    needs=NEEDS,
    counts=SILENT,
    metrics=PURE_EXPLORATION,
    cites=("fiez2019sequential", "du2023collaborative"),
)

OVER_V = replace(
    ALGORITHM,
    name="ind_rage_over_v",
    agent=IndRageOverV,
    summary="A yardstick: the samples of ind_rage divided by the number of agents.",
    reference="baseline IndRAGE/V of Du et al. 2023",
)
