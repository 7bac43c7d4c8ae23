import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from coband.simulator.experiments.statistics.estimates import (
    bands,
    bootstrap_means,
    estimate,
    interval,
    mean,
    paired_difference,
    percentile_interval,
    unpaired_difference,
    wilson,
)
from coband.simulator.experiments.statistics.numerals import bounds, column, evidence


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20), st.floats(0.5, 0.999))
def test_the_interval_is_students(values: list[float], level: float) -> None:
    found = interval(values, level)
    error = stats.sem(values)
    quantile = stats.t.ppf(0.5 * (1 + level), len(values) - 1)
    expected = (np.mean(values) - quantile * error, np.mean(values) + quantile * error)
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-6)


def test_one_value_has_no_interval() -> None:
    single = estimate([4.0])
    assert (single.mean, single.interval, single.count) == (4.0, None, 1)


def test_equal_values_have_an_interval_of_length_zero() -> None:
    assert interval([2.0, 2.0, 2.0]) == (2.0, 2.0)


def test_pairs_are_those_of_one_place() -> None:
    assert paired_difference([3.0, 1.0, 2.0], [1.0, 2.0, 3.0]) == estimate([2.0, -1.0, -1.0])


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="no values"):
        mean([])
    with pytest.raises(ValueError, match=r"level\(=95\) must lie between 0 and 1"):
        interval([1.0, 2.0], 95)
    with pytest.raises(ValueError, match="2 values cannot be paired with 1"):
        paired_difference([1.0, 2.0], [1.0])


def test_wilson_against_scipy() -> None:
    for successes, trials in ((0, 10), (3, 10), (10, 10), (1, 1), (97, 200)):
        found = wilson([1] * successes + [0] * (trials - successes))
        expected = stats.binomtest(successes, trials).proportion_ci(method="wilson")
        assert found == pytest.approx((expected.low, expected.high), abs=1e-12)
    with pytest.raises(ValueError, match="must be 0 or 1"):
        wilson([0, 0.5])
    with pytest.raises(ValueError, match="no values"):
        wilson([])


def test_the_unpaired_interval_is_welchs() -> None:
    first, second = [1.0, 4.0, 2.5, 3.0], [2.0, 9.0, 5.0, 7.0, 4.0, 6.5]
    found = unpaired_difference(first, second)
    expected = stats.ttest_ind(first, second, equal_var=False).confidence_interval(0.95)
    assert found.interval == pytest.approx((expected.low, expected.high))
    assert (found.mean, found.count) == (pytest.approx(np.mean(first) - np.mean(second)), 4)
    assert unpaired_difference([1.0], second).interval is None
    assert unpaired_difference([2.0, 2.0], [1.0, 1.0]).interval == (1.0, 1.0)


def test_bands_are_the_intervals_of_columns() -> None:
    values = np.random.default_rng(2).normal(size=(5, 4))
    found = bands(values)
    expected = [interval(column.tolist()) for column in values.T]
    assert list(zip(*(side.tolist() for side in found), strict=True)) == [pytest.approx(one) for one in expected]
    assert bands(values[:1]) is None


def test_the_bootstrap_resamples_the_values() -> None:
    draws = bootstrap_means([1.0, 2.0, 6.0], np.random.default_rng(0), 20_000)
    assert draws.mean() == pytest.approx(3.0, abs=0.05)
    assert draws.std() == pytest.approx(np.std([1.0, 2.0, 6.0]) / np.sqrt(3), abs=0.05)
    assert (draws.min(), draws.max()) == (1.0, 6.0)
    assert percentile_interval(np.arange(101.0)) == pytest.approx((2.5, 97.5))


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([0.27865, 0.060993, 0.03724, None], ["0.2787", "0.0610", "0.0372", "-"]),
        ([109.2, 60.7, 0.0], ["109.2", "60.7", "0.0"]),
        ([123456.0, 7.4], ["123,456", "7"]),
        ([-1234.5, 10.0], ["-1,234", "10"]),
        ([0.0, None], ["0", "-"]),
        ([], []),
    ],
)
def test_numbers_of_a_column_have_the_same_decimals(values: list[float | None], shown: list[str]) -> None:
    assert column(values) == shown


def test_numbers_for_readers_have_no_exponent_and_no_negative_zero() -> None:
    shown = [evidence(one) for one in (0.754, 20.4, 187.0, 1234.0, 12345.0)]
    assert shown == ["0.75", "20", "190", "1,200", "> 10,000"]
    assert bounds([-0.3, 82.0]) == "0 to 82"
