"""The families of delays that a scenario offers: maximum likelihood, fit, and intervals of their parameters.

Intervals are those of the basic parametric bootstrap: the estimates of samples drawn from the fitted distribution lie
around it as it lies around the truth. Scales and shapes are compared by their ratios, locations by their differences.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import digamma, polygamma

from coband.simulator.arrays import FloatArray
from coband.simulator.core.randomness.distributions import (
    BaseDistribution,
    Exponential,
    Gamma,
    LogNormal,
    Pareto,
    ShiftedExponential,
    Uniform,
)

LEVEL = 0.95
RESAMPLES = 300
CLOSE = 4.0
"""A family with fewer parameters is taken if its criterion is larger by no more than this. A shift raises the
likelihood of exponential values by an exponential amount, so that the criterion alone would find one in 37 %."""
NARROW = 0.02
"""Values whose deviation is smaller than this share of their mean are taken for a constant."""

Parameters = dict[str, float]


@dataclass(frozen=True)
class Family:
    """One family.

    Attributes:
        fit: values (n,) -> parameters of maximum likelihood, None if the family cannot have given these values.
        arguments: parameters -> shapes, location and scale there.
        locations: parameters that shift the distribution; the others are scales and shapes.
    """

    made: type[BaseDistribution]
    fit: Callable[[FloatArray], Parameters | None]
    scipy: Any
    arguments: Callable[[Mapping[str, float]], tuple[float, ...]]
    locations: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        return str(self.made.model_fields["kind"].default)

    def likelihood(self, parameters: Mapping[str, float], values: FloatArray) -> float:
        """The logarithm of the likelihood."""
        return float(np.sum(self.scipy.logpdf(values, *self.arguments(parameters))))

    def distance(self, parameters: Mapping[str, float], values: FloatArray) -> float:
        """Of Kolmogorov and Smirnov, the largest between the two distribution functions."""
        found, steps = self.scipy.cdf(np.sort(values), *self.arguments(parameters)), np.arange(len(values) + 1)
        return float(np.max(np.maximum(steps[1:] / len(values) - found, found - steps[:-1] / len(values))))


@dataclass(frozen=True)
class Fitted:
    """A distribution with intervals.

    Attributes:
        intervals: of each parameter, at 95 %.
        aic: Akaike's criterion, 2 k - 2 log L.
        distance: of Kolmogorov and Smirnov, between the values and the fitted distribution.
        p: share of samples of the fitted distribution that are further from theirs; small: the family does not fit.
        runner_up: of the other families that with the smallest criterion, and by how much it is larger.
    """

    kind: str
    parameters: Parameters
    intervals: dict[str, tuple[float, float]]
    aic: float
    distance: float
    p: float
    count: int
    runner_up: tuple[str, float] | None = None


def _uniform(x: FloatArray) -> Parameters | None:
    return {"low": float(x.min()), "high": float(x.max())}


def _exponential(x: FloatArray) -> Parameters | None:
    return {"rate": 1.0 / float(x.mean())}


def _shifted(x: FloatArray) -> Parameters | None:
    shift = float(x.min())
    return {"shift": shift, "rate": 1.0 / (float(x.mean()) - shift)}


def _gamma(x: FloatArray) -> Parameters | None:
    """Newton's method for log k - digamma(k) = log mean - mean log (Minka 2002)."""
    if x.min() <= 0:
        return None
    gap = math.log(float(x.mean())) - float(np.log(x).mean())
    if gap <= 1e-12:
        return None
    k = (3 - gap + math.sqrt((gap - 3) ** 2 + 24 * gap)) / (12 * gap)
    for _ in range(20):
        step = (math.log(k) - float(digamma(k)) - gap) / (1 / k - float(polygamma(1, k)))
        k = max(k - step, k / 10)
    return {"shape": k, "scale": float(x.mean()) / k}


def _lognormal(x: FloatArray) -> Parameters | None:
    if x.min() <= 0:
        return None
    logs = np.log(x)
    return {"median": float(np.exp(logs.mean())), "sigma": float(logs.std())}


def _pareto(x: FloatArray) -> Parameters | None:
    if x.min() <= 0:
        return None
    least = float(x.min())
    return {"minimum": least, "shape": len(x) / float(np.log(x / least).sum())}


FAMILIES = (
    Family(Uniform, _uniform, stats.uniform, lambda p: (p["low"], p["high"] - p["low"]), ("low", "high")),
    Family(Exponential, _exponential, stats.expon, lambda p: (0, 1 / p["rate"])),
    Family(ShiftedExponential, _shifted, stats.expon, lambda p: (p["shift"], 1 / p["rate"]), ("shift",)),
    Family(Gamma, _gamma, stats.gamma, lambda p: (p["shape"], 0, p["scale"])),
    Family(LogNormal, _lognormal, stats.lognorm, lambda p: (p["sigma"], 0, p["median"])),
    Family(Pareto, _pareto, stats.pareto, lambda p: (p["shape"], 0, p["minimum"]), ("minimum",)),
)


def best(values: FloatArray, seed: int = 0) -> Fitted:
    """The family with the smallest criterion of Akaike, or a simpler one that is close; a constant where values hardly
    differ.

    Args:
        values: (n,), n > 0, none negative.
    """
    mean, deviation = float(values.mean()), float(values.std())
    if deviation <= NARROW * mean or len(values) < 3:
        half = 0.0 if len(values) < 2 else 1.96 * deviation / math.sqrt(len(values))
        return Fitted("constant", {"value": mean}, {"value": (mean - half, mean + half)}, -math.inf, 0, 1, len(values))
    fits = [(2 * len(found) - 2 * family.likelihood(found, values), family, found) for family, found in _fits(values)]
    least = min(criterion for criterion, *_ in fits)
    close = [item for item in fits if item[0] <= least + CLOSE]
    criterion, family, parameters = min(close, key=lambda item: (len(item[2]), item[0]))
    others = [(other.kind, theirs - criterion) for theirs, other, _ in fits if other is not family]
    distance = family.distance(parameters, values)
    intervals, p = _bootstrap(family, parameters, len(values), distance, np.random.default_rng(seed))
    runner_up = min(others, key=lambda item: item[1], default=None)
    return Fitted(family.kind, parameters, intervals, criterion, distance, p, len(values), runner_up)


def _fits(values: FloatArray) -> list[tuple[Family, Parameters]]:
    found = [(family, family.fit(values)) for family in FAMILIES]
    return [(family, parameters) for family, parameters in found if parameters is not None]


def _bootstrap(
    family: Family, parameters: Parameters, count: int, distance: float, rng: np.random.Generator
) -> tuple[dict[str, tuple[float, float]], float]:
    """Intervals of the parameters, and the share of samples that are further from their own fit."""
    distribution = family.made(**parameters)
    drawn: dict[str, list[float]] = {name: [] for name in parameters}
    further = 0
    for _ in range(RESAMPLES):
        sample = distribution.draw(rng, count)
        found = family.fit(sample)
        assert found is not None
        further += family.distance(found, sample) >= distance
        for name, value in found.items():
            drawn[name].append(value)
    tails = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    intervals = {}
    for name, value in parameters.items():
        low, high = (float(bound) for bound in np.quantile(drawn[name], tails))
        located = name in family.locations
        ends = (2 * value - high, 2 * value - low) if located else (value * value / high, value * value / low)
        intervals[name] = (max(0.0, min(value, ends[0])), max(value, ends[1]))
    return intervals, (1 + further) / (1 + RESAMPLES)
