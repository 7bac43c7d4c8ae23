from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from coband.simulator.analysis.fit.families import FAMILIES, Family, best
from coband.simulator.core.randomness.distributions import (
    BaseDistribution,
    Constant,
    Exponential,
    Gamma,
    LogNormal,
    Pareto,
    ShiftedExponential,
    Uniform,
)

KNOWN = [
    Uniform(low=0.5, high=2.0),
    Exponential(rate=3.0),
    ShiftedExponential(shift=0.2, rate=2.0),
    Gamma(shape=3.0, scale=0.1),
    LogNormal(median=0.05, sigma=0.5),
    Pareto(minimum=0.3, shape=2.5),
]


@pytest.mark.parametrize("truth", KNOWN, ids=lambda truth: truth.kind)
def test_a_known_distribution_is_recovered_within_its_intervals(truth: BaseDistribution) -> None:
    found = best(truth.draw(np.random.default_rng(3), 1500))
    assert found.kind == truth.kind  # type: ignore[attr-defined]
    assert found.p > 0.02
    for name, (low, high) in found.intervals.items():
        assert low <= getattr(truth, name) <= high
        assert low <= found.parameters[name] <= high
        assert high - low < 0.4 * getattr(truth, name)


def test_intervals_cover_as_often_as_they_say() -> None:
    """Of 40 samples, intervals at 95 % miss the truth in about two; more than seven have a probability of 0.1 %."""
    truth, missed = ShiftedExponential(shift=0.2, rate=2.0), {"shift": 0, "rate": 0}
    for seed in range(40):
        found = best(truth.draw(np.random.default_rng(seed), 60), seed)
        for name in missed:
            if name in found.intervals:
                low, high = found.intervals[name]
                missed[name] += not low <= getattr(truth, name) <= high
    assert max(missed.values()) <= 7


def test_the_distance_is_that_of_scipy() -> None:
    values = KNOWN[1].draw(np.random.default_rng(2), 100)
    expected = stats.kstest(values, stats.expon(0, 1 / 3).cdf).statistic
    assert FAMILIES[1].distance({"rate": 3.0}, values) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.kind)
def test_estimates_have_the_largest_likelihood(family: Family) -> None:
    """No parameters nearby are likelier."""
    truth = next(known for known in KNOWN if isinstance(known, family.made))
    values = truth.draw(np.random.default_rng(1), 300)
    found = family.fit(values)
    assert found is not None

    for name in found:
        for factor in (0.99, 1.01):
            nearby = {**found, name: found[name] * factor}
            assert family.likelihood(nearby, values) <= family.likelihood(found, values) + 1e-9


def test_gamma_agrees_with_scipy() -> None:
    values = Gamma(shape=2.0, scale=0.7).draw(np.random.default_rng(5), 400)
    found = next(family.fit(values) for family in FAMILIES if family.made is Gamma)
    shape, _, scale = stats.gamma.fit(values, floc=0)
    assert found is not None
    np.testing.assert_allclose([found["shape"], found["scale"]], [shape, scale], rtol=1e-4)


def test_values_that_hardly_differ_are_a_constant() -> None:
    assert best(Constant(value=0.3).draw(np.random.default_rng(0), 50)).parameters == {"value": pytest.approx(0.3)}
    nearly = best(np.random.default_rng(0).normal(0.3, 0.002, 500))
    assert nearly.kind == "constant"
    assert nearly.intervals["value"][0] < 0.3 < nearly.intervals["value"][1]
    assert best(np.zeros(30)).parameters == {"value": 0.0}


def test_zeros_leave_only_families_that_have_them() -> None:
    values = np.concatenate([np.zeros(3), Exponential(rate=1.0).draw(np.random.default_rng(0), 200)])
    assert best(values).kind in ("exponential", "shifted_exponential", "uniform")
