"""Evidence from samples, and what several inequalities say together."""

import numpy as np
import pytest
from scipy import stats

from coband.extensions.evidence.e_values import ENOUGH, UNKNOWN, Evidence, Requirement, fieller, together
from coband.simulator.arrays import FloatArray
from coband.simulator.experiments.statistics.evidence import share_process, t_process

RNG = np.random.default_rng(7)


@pytest.mark.parametrize("mean", [-1.0, 0.0, 0.3, 2.0])
def test_a_mean_is_judged_by_the_process_of_students_statistic(mean: float) -> None:
    values = (RNG.normal(size=8) + mean).tolist()
    found, t = Requirement(values).evidence(), stats.ttest_1samp(values, 0.0).statistic
    assert found.holds == pytest.approx(float(t_process(t, 8)))
    assert found.fails == pytest.approx(float(t_process(-t, 8)))


@pytest.mark.parametrize(("successes", "share"), [(0, 0.9), (7, 0.9), (10, 0.9), (10, 0.5)])
def test_a_share_is_judged_by_its_successes(successes: int, share: float) -> None:
    found = Requirement([1.0] * successes + [0.0] * (10 - successes), share).evidence()
    assert found.holds == pytest.approx(share_process(successes, 10, share))
    assert found.fails == pytest.approx(share_process(10 - successes, 10, 1 - share))


def test_signs_are_of_what_is_not_zero() -> None:
    values = [1.0, 2.0, 0.0, 900.0, -1.0, 3.0]
    assert Requirement(values, test="signs").evidence().holds == pytest.approx(share_process(4, 5, 0.5))
    assert Requirement([0.0] * 9, test="signs").evidence().holds == 0.0


def test_equal_zeros_and_ones_are_no_certainty() -> None:
    assert Requirement([0.0] * 9, coarse=True).evidence().holds == 0.0
    assert Requirement([1.0] * 4, coarse=True).evidence().holds == pytest.approx(share_process(4, 4, 0.5))
    assert Requirement([-1.0] * 6, coarse=True).evidence().fails == pytest.approx(share_process(6, 6, 0.5))
    mixed = [1.0, 0.0, 1.0, 1.0]
    assert Requirement(mixed, coarse=True).evidence() == Requirement(mixed).evidence()


def test_one_replication_decides_nothing() -> None:
    assert Requirement([5.0]).evidence() == UNKNOWN


def test_all_inequalities_have_to_hold_and_one_that_fails_is_enough() -> None:
    good, bad = [1.0, 1.1, 0.9, 1.0], [-1.0, -1.1, -0.9, -1.2]
    one, other = Requirement(good).evidence(), Requirement(bad).evidence()
    both = together([Requirement(good), Requirement(bad)])
    assert both.holds == pytest.approx(other.holds)
    assert both.fails == pytest.approx(np.log(0.5 * (np.exp(one.fails) + np.exp(other.fails))))
    assert together([Requirement(good), Requirement(good)]).holds > np.log(20)
    assert together([Requirement(good)], [Requirement(good), Requirement(bad)]).same == pytest.approx(other.holds)


def test_about_as_many_replications_decide_as_is_forecast() -> None:
    sample = RNG.normal(size=30)
    sample = (sample - sample.mean()) / sample.std(ddof=1) + 0.4  # an effect of exactly 0.4 standard deviations
    needed = Requirement(sample.tolist()).evidence().needed
    assert needed is not None
    x = RNG.normal(0.4, 1.0, size=(2000, 400))
    n = np.arange(1, 401)
    mean = x.cumsum(axis=1) / n
    spread = np.sqrt((np.square(x).cumsum(axis=1) - n * mean**2) / np.maximum(n - 1, 1))[:, 1:]
    decided = (t_process(mean[:, 1:] * np.sqrt(n[1:]) / spread, n[1:]) >= ENOUGH).argmax(axis=1) + 2
    assert 0.6 * needed < np.median(decided) < 1.6 * needed


def test_parts_that_follow_one_another_multiply_and_are_seldom_wrong() -> None:
    first, second = RNG.normal(size=(4000, 6)), RNG.normal(size=(4000, 40))  # at the border, where any verdict is wrong

    def logs(x: FloatArray) -> FloatArray:
        n = np.arange(1, x.shape[1] + 1)
        mean = x.cumsum(axis=1) / n
        spread = np.sqrt((np.square(x).cumsum(axis=1) - n * mean**2)[:, 1:] / (n - 1)[1:])
        return np.asarray(t_process(mean[:, 1:] * np.sqrt(n[1:]) / spread, n[1:]))

    start = logs(first)[:, -1:]
    assert (start + logs(second) >= np.log(20)).any(axis=1).mean() < 0.05
    values = second[0, :9].tolist()
    before, later = Requirement(first[0].tolist()).evidence(), Requirement(values).evidence()
    both = later.after(before, 9, 6)
    assert both.holds == pytest.approx(before.holds + later.holds)
    assert both.fails == pytest.approx(before.fails + later.fails)
    assert later.after(Evidence(0.0, 0.0), 9, 6).needed == (later.needed or 0) + 6


def test_a_mean_at_the_border_needs_more_and_more() -> None:
    needs = [Requirement([1.0, -1.0] * half).evidence().needed or 10**9 for half in (2, 20, 200)]
    assert needs == sorted(needs)
    assert needs[-1] > 2000


def test_fiellers_interval_is_the_set_of_ratios_that_are_not_rejected() -> None:
    second = RNG.normal(10, 1, size=9)
    first = 0.4 * second + RNG.normal(0, 0.5, size=9)
    interval = fieller(first.tolist(), second.tolist())
    for ratio in np.linspace(0.2, 0.6, 81):
        p = stats.ttest_1samp(first - ratio * second, 0.0).pvalue
        assert (interval[0] <= ratio <= interval[1]) == (p >= 0.05), ratio


def test_fiellers_interval_does_not_exist_for_a_denominator_that_may_be_zero() -> None:
    assert fieller([1.0, 2.0, 3.0], [-1.0, 1.0, 0.1]) is None
    assert fieller([1.0], [2.0]) is None
