"""Evidence against scipy's tests, and what several inequalities say together."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from coband.simulator.experiments.statistics.evidence import (
    STRICT,
    UNKNOWN,
    Requirement,
    adjusted,
    fieller,
    together,
)

RNG = np.random.default_rng(7)


@pytest.mark.parametrize("mean", [-1.0, 0.0, 0.3, 2.0])
def test_a_mean_is_judged_by_students_test(mean: float) -> None:
    values = (RNG.normal(size=8) + mean).tolist()
    found = Requirement(values).evidence()
    assert found.holds == pytest.approx(stats.ttest_1samp(values, 0.0, alternative="greater").pvalue)
    assert found.fails == pytest.approx(stats.ttest_1samp(values, 0.0, alternative="less").pvalue)


@pytest.mark.parametrize(("successes", "share"), [(0, 0.9), (7, 0.9), (10, 0.9), (10, 0.5)])
def test_a_share_is_judged_by_the_binomial_test(successes: int, share: float) -> None:
    found = Requirement([1.0] * successes + [0.0] * (10 - successes), share).evidence()
    assert found.holds == pytest.approx(stats.binomtest(successes, 10, share, alternative="greater").pvalue)
    assert found.fails == pytest.approx(stats.binomtest(successes, 10, share, alternative="less").pvalue)


def test_numbers_that_never_vary_decide_at_once() -> None:
    assert (Requirement([2.0, 2.0]).evidence().holds, Requirement([2.0, 2.0]).evidence().fails) == (0.0, 1.0)
    assert (Requirement([0.0, 0.0]).evidence().holds, Requirement([0.0, 0.0]).evidence().fails) == (1.0, 0.0)
    assert Requirement([0.0, 0.0], strict=False).evidence().holds == 0.0


def test_equal_zeros_and_ones_are_no_certainty() -> None:
    assert Requirement([0.0] * 9, coarse=True).evidence() == UNKNOWN
    assert Requirement([1.0] * 4, coarse=True).evidence().holds == pytest.approx(1 / 16)
    assert Requirement([-1.0] * 6, coarse=True).evidence().fails == pytest.approx(1 / 64)
    mixed = [1.0, 0.0, 1.0, 1.0]
    assert Requirement(mixed, coarse=True).evidence() == Requirement(mixed).evidence()


def test_one_replication_decides_nothing() -> None:
    assert Requirement([5.0]).evidence() == UNKNOWN
    assert not UNKNOWN.decided(0.05)


def test_all_inequalities_have_to_hold_and_one_that_fails_is_enough() -> None:
    good, bad = [1.0, 1.1, 0.9, 1.0], [-1.0, -1.1, -0.9, -1.2]
    both = together([Requirement(good), Requirement(bad)])
    assert both.holds == pytest.approx(Requirement(bad).evidence().holds)
    assert both.fails == pytest.approx(2 * Requirement(bad).evidence().fails)
    assert together([Requirement(good), Requirement(good)]).holds < 0.001


def test_the_number_of_replications_that_is_needed_gives_the_power() -> None:
    effect = 0.5
    sample = RNG.normal(size=30)
    sample = (sample - sample.mean()) / sample.std(ddof=1) + effect  # an effect of exactly 0.5 standard deviations
    needed = Requirement(sample.tolist()).evidence().needed
    assert needed is not None
    draws = RNG.normal(effect, 1.0, size=(4000, needed))
    rejected = [Requirement(row).evidence().holds <= STRICT for row in draws.tolist()]
    assert 0.74 < float(np.mean(rejected)) < 0.86


def test_nothing_decides_a_mean_at_the_border() -> None:
    assert Requirement([1.0, -1.0]).evidence().needed is None


def test_fiellers_interval_is_the_set_of_ratios_that_are_not_rejected() -> None:
    second = RNG.normal(10, 1, size=9)
    first = 0.4 * second + RNG.normal(0, 0.5, size=9)
    interval = fieller(first.tolist(), second.tolist())
    assert interval is not None
    for ratio in np.linspace(0.2, 0.6, 81):
        p = stats.ttest_1samp(first - ratio * second, 0.0).pvalue
        assert (interval[0] <= ratio <= interval[1]) == (p >= 0.05), ratio


def test_fiellers_interval_does_not_exist_for_a_denominator_that_may_be_zero() -> None:
    assert fieller([1.0, 2.0, 3.0], [-1.0, 1.0, 0.1]) is None
    assert fieller([1.0], [2.0]) is None


def test_fiellers_interval_covers() -> None:
    inside = 0
    for _ in range(1000):
        second = RNG.normal(5, 1, size=6)
        first = 2 * second + RNG.normal(0, 1, size=6)
        low, high = fieller(first.tolist(), second.tolist()) or (0.0, np.inf)
        inside += low <= 2 <= high
    assert 930 <= inside <= 970


def test_the_false_discovery_rate_is_controlled_as_in_scipy() -> None:
    p = [0.001, 0.2, 0.03, 0.03, 1.0, 0.0005]
    assert adjusted(p) == pytest.approx(stats.false_discovery_control(p, method="by"))
    assert adjusted([]) == []
