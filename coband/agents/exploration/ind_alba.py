"""IndALBA and IndPolyALBA: every agent runs ALBA (Tao, Blanco, Zhou 2018, "Best Arm Identification in Linear Bandits
with Linear Dimension Dependency") or PolyALBA (Du, Kuroki, Chen 2021, "Combinatorial Pure Exploration with Full-Bandit
or Partial Linear Feedback") alone; baselines of Du et al. 2023, section 6.
As printed: `tests/oracles/cope_alone.py`. Next: `pure_exploration.py`.

ALBA eliminates in stages q = 0, 1, ...: stage q, with confidence 6 delta / (pi^2 (q + 1)^2), ends when at most
floor(d/2^q) arms are left (at least one), so that the dimension halves. Round r of a stage, with the share
6 / (pi^2 r^2) of its confidence, estimates all arms that are left to within e = 2^-r / 2 from

    n = ceil(c_0 (2 + (6 + e/2) d') / e^2 ln(5 |S| / delta_r))

samples of a G-optimal design, d' the dimension of their span, and drops those that seem 2^-r or more below the best.
PolyALBA has another stage 0: it looks for the d arms that seem best, by rounds that end when the best is 2^-r or more
ahead of number d + 1.

c_0 = max(4 L^2, 3) for rewards theta . x with ||theta|| <= L. The public code hands the true norm of theta to the
algorithm as L, and so does the problem here, of the agent's own task; ``norm`` sets another bound. In Du et al. 2023's
instances theta grows with the gap, so c_0 is 3 where gaps are small and larger where they are not.

``constants: public_code`` is ALBA as the public code of Fiez et al. 2019 has it (`PublicCodeAlba`).

Stages, shares of delta, c_0 and the numbers 2 and 6 agree in both; the published rule's 5 |S| and its summand e/2,
worth 6 % of the samples at most, and PolyALBA's rule are from our reading alone: PolyALBA's text was not at hand.
Simplified: in the published rule designs are rounded instead of sampled from, with ordinary least squares, for which
c_0 need not grow with L (``norm: 0`` leaves c_0 = 3: fewer samples than published, and not what the baseline's authors
propose); PolyALBA's stage 0 uses the same design, since n arms can be listed here. delta is shared out over the V
agents.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import numpy as np
from pydantic import Field, model_validator

from coband.agents.exploration.ind_rage import NEEDS
from coband.agents.exploration.pure_exploration import PURE_EXPLORATION, FixedConfidenceConfig, PureExplorationAgent
from coband.simulator.arrays import FloatArray, IntArray
from coband.simulator.core.algorithm import SILENT, Algorithm
from coband.simulator.core.nodes.node import NodeContext, Outbox, UnsupportedScenario
from coband.simulator.maths.exploration.design import apportion, check_countable, fewest_samples
from coband.simulator.maths.exploration.pairs import Pairs, pairs_of

BASE = 1.1
"""What the error of one step is divided by in the next."""
_OUTSIDE = 1e-9  # of the largest feature


class PublicCodeAlba:
    """The samples and eliminations of a step.

    Args:
        own: the agent's arms.
        norm: L, a bound of the norm of theta.
        c_0: max(4 L^2, 3).
        rng: the agent's private stream.
    """

    def __init__(self, own: Pairs, norm: float, c_0: float, rng: np.random.Generator) -> None:
        self._X, self._own, self._L, self._c_0, self._rng = own.features, own, norm, c_0, rng
        self._d = own.features.shape[1]
        self._weights = np.zeros(own.arms)

    def draw(self, left: list[int], step: int, log: float) -> IntArray:
        """How often each arm is drawn, ``log`` being ln(5 K^2/(2 delta_s))."""
        span = self._in_span(left)
        self._weights = np.zeros(self._own.arms)
        self._weights[span] = self._own.g_optimal(span).weights
        check_countable(samples := self._l(step) * log)
        return self._rng.multinomial(math.ceil(samples), self._weights / self._weights.sum())

    def _l(self, step: int) -> float:
        e = 4.0 / BASE**step
        return float(self._c_0 * (2 + (6 + e) * self._d) / (e / 2) ** 2)

    def _in_span(self, left: list[int]) -> list[int]:
        """The arms within the span of those that are left."""
        _, sizes, axes = np.linalg.svd(self._X[left], full_matrices=False)
        basis = axes[sizes > _OUTSIDE * sizes.max()]
        outside = np.linalg.norm(self._X - self._X @ basis.T @ basis, axis=1)
        return np.flatnonzero(outside <= _OUTSIDE * np.abs(self._X).max()).tolist()

    def kept(self, left: list[int], step: int, counts: IntArray, means: FloatArray) -> list[int]:
        """The arms whose gap to the best one is within its confidence interval."""
        inverse = np.asarray(np.linalg.pinv((self._X.T * self._weights) @ self._X, hermitian=True), dtype=np.float64)
        values = self._X @ inverse @ self._X.T @ (counts * means) / counts.sum()
        best = left[int(np.argmax(values[left]))]
        within = (values[best] - values[arm] <= self._interval(inverse, values, (best, arm), step) for arm in left)
        return [arm for arm, close in zip(left, within, strict=True) if arm == best or close]

    def _interval(self, inverse: FloatArray, values: FloatArray, two: tuple[int, int], step: int) -> float:
        """Half the confidence interval of the gap between two arms."""
        best, arm = two
        L, d, y, slack = self._L, self._d, self._X[best] - self._X[arm], 0.5 * 2.0**-step
        share = 1.0 / self._l(step)
        w = math.sqrt(max(float(y @ inverse @ y), 0.0))
        v = math.sqrt(2 * share * w**2 * (1 + math.sqrt(3 * d * share)))
        first = math.sqrt(2 * share) * L * w + 2 * L * (float(np.linalg.norm(y)) + w * math.sqrt(d)) * share / 3
        E = float(self._weights @ (self._X @ inverse @ y * (np.abs(values) + slack)) ** 2)
        gap = abs(float(values[best] - values[arm]))
        second = math.sqrt(2 * E * share) + (2 * (gap + slack) + L * w * math.sqrt(d)) * share / 3
        return v + min(first, second)


class PolyAlbaConfig(FixedConfidenceConfig):
    """Parameters of PolyALBA."""

    norm: float | None = Field(default=None, ge=0)
    """L, a bound of the norm of the reward's parameter, c_0 = max(4 L^2, 3); null: the norm that the problem tells."""


class AlbaConfig(PolyAlbaConfig):
    """Parameters of ALBA."""

    constants: Literal["published", "public_code"] = "published"
    """published: rounds that halve the error, as Tao et al. have them; public_code: the steps, the random draws and the
    confidence intervals of the code by Fiez et al."""

    @model_validator(mode="after")
    def _check(self) -> AlbaConfig:
        if self.constants == "public_code" and self.norm == 0:
            raise ValueError("norm(=0) leaves the intervals of constants(=public_code) without a bound: must be > 0.")
        return self


class Alba(PureExplorationAgent):
    """The stages that ALBA and PolyALBA have in common, for one agent."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.config: PolyAlbaConfig = context.config
        self._own = self.pairs.of(self.index)
        self._dimension = self._own.features.shape[1]
        self._left = list(range(self._own.arms))
        norm = context.parameter_norm if self.config.norm is None else self.config.norm
        if norm is None:
            raise UnsupportedScenario("this problem does not tell the norm of its parameter; give norm, a bound of it.")
        self._norm = norm
        self._stage, self._step, self._size = 0, 1, len(self._left)
        self._end_stages()

    @property
    def _c_0(self) -> float:
        return max(4.0 * self._norm**2, 3.0)

    def request(self) -> IntArray:
        """A G-optimal design over the arms that are left."""
        design = self._own.g_optimal(self._left)
        dimension = round(design.value)  # the optimal value is the dimension of the span (Kiefer, Wolfowitz 1960)
        e = 0.5 * 2.0**-self._step
        wanted = self._c_0 * (2 + (6 + 0.5 * e) * dimension) / e**2 * math.log(5 * len(self._left) / self._delta())
        total = max(math.ceil(wanted), fewest_samples(design.weights, self.config.epsilon))
        counts = np.zeros(self._own.arms, dtype=np.int64)
        counts[self._left] = apportion(design.weights, total)
        return counts

    def _delta(self) -> float:
        """Confidence of this round: shares 6 / (pi^2 k^2) add up to 1 over k = 1, 2, ..."""
        shares = (6 / math.pi**2) ** 2 / ((self._stage + 1) * self._step) ** 2
        return self.config.delta / self.context.agents * shares

    def observe_batch(self, counts: IntArray, means: FloatArray) -> Outbox:
        """Estimate and drop, and move to the next stage when it is time."""
        self.pulled(counts)
        self._left = self._drop(counts, means)
        self._step += 1
        self._end_stages()
        if len(self._left) == 1:
            self.stop(self._left[0])
        self.round += 1
        return []

    def _drop(self, counts: IntArray, means: FloatArray) -> list[int]:
        """The arms that stay, by least squares within the span of those that were left."""
        left = pairs_of(self._own.gram[np.ix_(self._left, self._left)], 1)
        estimates = left.least_squares(counts[None, self._left], means[None, self._left])[0]
        return [self._left[place] for place in self._kept(estimates)]

    def _end_stages(self) -> None:
        while 1 < len(self._left) <= max(1, int(self._dimension) >> self._stage):
            self._stage, self._step, self._size = self._stage + 1, 1, len(self._left)

    def _kept(self, estimates: FloatArray) -> list[int]:
        return [int(place) for place in np.flatnonzero(estimates.max() - estimates < 2.0**-self._step)]


class IndAlba(Alba):
    """One agent's ALBA."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self._code: PublicCodeAlba | None = None
        if context.config.constants == "public_code":
            self._code = PublicCodeAlba(self._own, self._norm, self._c_0, context.rng)

    def request(self) -> IntArray:
        if self._code is None:
            return super().request()
        return self._code.draw(self._left, self._step, math.log(5 * self._size**2 / (2 * self._delta())))

    def _drop(self, counts: IntArray, means: FloatArray) -> list[int]:
        if self._code is None:
            return super()._drop(counts, means)
        return self._code.kept(self._left, self._step, counts, means)


class IndPolyAlba(Alba):
    """One agent's PolyALBA: stage 0 looks for d arms."""

    def _kept(self, estimates: FloatArray) -> list[int]:
        if self._stage > 0:
            return super()._kept(estimates)
        order = np.argsort(-estimates, kind="stable")
        ahead = estimates[order[0]] - estimates[order[self._dimension]] >= 2.0**-self._step
        return sorted(order[: self._dimension].tolist()) if ahead else list(range(len(estimates)))


ALGORITHM = Algorithm(
    name="ind_alba",
    agent=IndAlba,
    server=None,
    config=AlbaConfig,
    summary="Every agent finds its best arm alone, with G-optimal designs that halve the dimension.",
    reference="Tao et al. 2018, ALBA; baseline IndALBA of Du et al. 2023",
    needs=NEEDS,
    knows=("parameter_norm",),
    counts=SILENT,
    metrics=PURE_EXPLORATION,
    cites=("tao2018best", "du2023collaborative"),
)

POLY = replace(
    ALGORITHM,
    name="ind_poly_alba",
    agent=IndPolyAlba,
    config=PolyAlbaConfig,
    summary="Every agent finds d good arms alone, then the best of them by ALBA.",
    reference="Du et al. 2021, PolyALBA; baseline IndPolyALBA of Du et al. 2023",
    cites=("du2021combinatorial", "du2023collaborative"),
)
