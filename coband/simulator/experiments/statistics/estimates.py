"""Means and confidence intervals over replications, and differences between algorithms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from coband.simulator.arrays import FloatArray

LEVEL = 0.95
RESAMPLES = 10_000


@dataclass(frozen=True)
class Estimate:
    """A mean over replications with its confidence interval.

    Attributes:
        mean: arithmetic mean.
        interval: (low, high); None for a single replication, which has no interval.
        count: number of replications.
    """

    mean: float
    interval: tuple[float, float] | None
    count: int


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean, (1/n) sum_i x_i.

    Raises:
        ValueError: no values.
    """
    if not len(values):
        raise ValueError("the mean of no values is not defined; give at least one.")
    return float(np.mean(values))


def interval(values: Sequence[float], level: float = LEVEL) -> tuple[float, float] | None:
    """Student-t confidence interval of the mean of independent, roughly normal values.

    m ± t_{(1 + level)/2, n - 1} · s / sqrt(n), where m is the mean, s² = sum_i (x_i - m)² / (n - 1) the sample variance
    and t_{p, k} the p-quantile of Student's distribution with k degrees of freedom.

    Args:
        values: one per replication, shape (n,).
        level: probability that the interval covers the expectation, in (0, 1).

    Returns:
        (low, high), or None for fewer than two values, whose variance cannot be estimated.

    Raises:
        ValueError: no values, or a level outside (0, 1).
    """
    if not 0 < level < 1:
        raise ValueError(f"level(={level}) must lie between 0 and 1, both excluded.")
    centre, count = mean(values), len(values)
    if count < 2:
        return None
    half_width = _t_quantile(count - 1, level) * float(np.std(values, ddof=1)) / float(np.sqrt(count))
    return centre - half_width, centre + half_width


def wilson(values: Sequence[float]) -> tuple[float, float]:
    """Wilson's score interval of a probability, from independent trials; it lies within [0, 1].

    (p + z^2/(2n) ± z sqrt(p (1 - p)/n + z^2/(4 n^2))) / (1 + z^2/n), where p is the share of ones among n trials and z
    the 0.975-quantile of the normal distribution (Wilson 1927).

    Args:
        values: 0 or 1 per replication, shape (n,).

    Raises:
        ValueError: no values, or a value other than 0 and 1.
    """
    if any(value not in (0, 1) for value in values):
        raise ValueError(f"values(={list(values)}) must be 0 or 1, one per replication.")
    share, n = mean(values), len(values)
    z = NormalDist().inv_cdf(0.5 * (1.0 + LEVEL))
    centre = share + z**2 / (2 * n)
    half_width = z * float(np.sqrt(share * (1.0 - share) / n + z**2 / (4.0 * n**2)))
    low, high = ((centre + side * half_width) / (1.0 + z**2 / n) for side in (-1, 1))
    return (0.0 if share == 0 else low), (1.0 if share == 1 else high)


def estimate(values: Sequence[float], level: float = LEVEL) -> Estimate:
    """The mean and its interval; see :func:`interval`."""
    return Estimate(mean(values), interval(values, level), len(values))


def paired_difference(first: Sequence[float], second: Sequence[float], level: float = LEVEL) -> Estimate:
    """Mean of first_r - second_r over replications r, with the Student-t interval of the differences.

    All algorithms of a comparison have the same arms and the same noise in replication r (common random numbers).
    Variation between worlds therefore cancels in the difference, and this interval is usually much narrower than the
    two separate intervals suggest.

    Args:
        first: one value per replication, shape (n,).
        second: the other algorithm's values for the same replications, in the same order.
        level: see :func:`interval`.

    Raises:
        ValueError: unequal numbers of values, or none.
    """
    if len(first) != len(second):
        counts = f"{len(first)} values cannot be paired with {len(second)}"
        raise ValueError(f"{counts}; give both for the same replications.")
    return estimate([one - other for one, other in zip(first, second, strict=True)], level)


def unpaired_difference(first: Sequence[float], second: Sequence[float], level: float = LEVEL) -> Estimate:
    """Difference of the means of two independent sets of replications, with Welch's interval.

    m1 - m2 ± t_{(1 + level)/2, k} sqrt(v1 + v2), where v_i = s_i^2 / n_i and, by Welch and Satterthwaite,
    k = (v1 + v2)^2 / (v1^2/(n1 - 1) + v2^2/(n2 - 1)).

    Args:
        first: shape (n1,).
        second: shape (n2,).
        level: see :func:`interval`.

    Returns:
        The estimate; its count is the smaller number of replications, and it has no interval if that is 1.

    Raises:
        ValueError: no values, or a level outside (0, 1).
    """
    centre, count = mean(first) - mean(second), min(len(first), len(second))
    if count < 2:
        return Estimate(centre, None, count)
    variances = [float(np.var(values, ddof=1)) / len(values) for values in (first, second)]
    total = sum(variances)
    if total == 0:
        return Estimate(centre, (centre, centre), count)
    freedom = total**2 / sum(v**2 / (len(x) - 1) for v, x in zip(variances, (first, second), strict=True))
    half_width = _t_quantile(freedom, level) * float(np.sqrt(total))
    return Estimate(centre, (centre - half_width, centre + half_width), count)


def bootstrap_means(values: Sequence[float], rng: np.random.Generator, resamples: int = RESAMPLES) -> FloatArray:
    """Means of samples drawn from the values with replacement (Efron 1979), shape (resamples,).

    Args:
        values: one per replication, shape (n,).
        rng: generator of the resamples.
        resamples: number of samples.
    """
    given = np.asarray(values, dtype=np.float64)
    drawn: FloatArray = given[rng.integers(len(given), size=(resamples, len(given)))].mean(axis=1)
    return drawn


def percentile_interval(draws: FloatArray) -> tuple[float, float]:
    """The bootstrap's percentile interval: a share of 0.025 of the draws lies below it, and as many above."""
    low, high = np.quantile(draws, [0.5 * (1.0 - LEVEL), 0.5 * (1.0 + LEVEL)])
    return float(low), float(high)


def bands(values: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """:func:`interval` of every column.

    Args:
        values: one row per replication, shape (n, points).

    Returns:
        (low, high), each of shape (points,), or None for fewer than two rows.
    """
    count = len(values)
    if count < 2:
        return None
    half_width = _t_quantile(count - 1, LEVEL) * values.std(axis=0, ddof=1) / np.sqrt(count)
    centre = values.mean(axis=0)
    return centre - half_width, centre + half_width


def _t_quantile(freedom: float, level: float) -> float:
    """The (1 + level)/2 quantile of Student's t distribution."""
    from scipy.special import stdtrit  # slow to import, and a single replication needs none

    return float(stdtrit(freedom, 0.5 * (1.0 + level)))
