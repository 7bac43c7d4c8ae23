"""Claims about two labels: one's count is less than the other's, beyond what chance explains."""

from typing import Any

import pytest

from coband.simulator.experiments.runs.expectations import Comparison, ExpectationError, compare, require
from tests.experiments.runs.fakes import FakeExpect, FakeScenario

CLAIM = FakeExpect("Often", "regret", less_than="Seldom")


def scenario(*expect: FakeExpect) -> Any:
    return FakeScenario(expect=expect)


def report(broken: dict[str, tuple[int, ...]] | None = None, **regrets: dict[int, float | None]) -> dict[str, Any]:
    """By label: the regret of each replication, and those that broke off."""
    return {
        "failures": [{"label": label, "replication": r} for label, of in (broken or {}).items() for r in of],
        "results": [
            {"label": label, "replications": [{"replication": r, "regret": value} for r, value in of.items()]}
            for label, of in regrets.items()
        ],
    }


def score(often: dict[int, float | None], seldom: dict[int, float | None]) -> Comparison:
    (found,) = compare(scenario(CLAIM), report(Often=often, Seldom=seldom))
    return found


def test_the_paired_difference_decides() -> None:
    """Replications differ by much more than the two labels do in each of them."""
    found = score({0: 10.0, 1: 100.0, 2: 1000.0}, {0: 11.0, 1: 101.5, 2: 1001.0})
    assert (found.holds, found.replication, found.got) == (True, None, pytest.approx(-3.5 / 3))
    assert found.expected == "less than Seldom's: difference < 0"
    assert found.interval[0] < -3.5 / 3 < found.interval[1] < 0


@pytest.mark.parametrize(
    ("often", "seldom", "word"),
    [
        ((1.0, 2.0, 3.0), (1.1, 2.0, 2.95), "undecided"),  # chance
        ((1.0, 2.0, 3.0), (1.0, 2.0, 3.0), "differs"),  # equal
        ((5.0, 6.0, 7.0), (1.0, 2.0, 3.1), "differs"),  # more
    ],
)
def test_what_chance_explains_does_not_hold(often: tuple[float, ...], seldom: tuple[float, ...], word: str) -> None:
    found = score(dict(enumerate(often)), dict(enumerate(seldom)))
    assert (found.holds, found.word) == (False, word)


def test_only_replications_of_both_are_compared() -> None:
    found = score({0: 1.0, 1: 900.0, 2: 2.0, 3: None}, {0: 5.0, 2: 6.1, 3: 1.0})
    assert (found.holds, found.got) == (True, pytest.approx(-4.05))
    assert not score({0: 1.0}, {1: 2.0}).holds


@pytest.mark.parametrize("label", ["Often", "Seldom"])
@pytest.mark.parametrize("claim", [CLAIM, FakeExpect("Often", "regret", at_most=9, of="mean")])
def test_nothing_is_shown_without_replications_that_broke_off(claim: FakeExpect, label: str) -> None:
    """Whether some or all of a label's did; the other one's replications finished."""
    whole = {"Often": {0: 1.0, 1: 1.1, 2: 1.2}, "Seldom": {0: 5.0, 1: 5.1, 2: 5.2}}
    for left in (1, 2, 0):
        regrets = whole | {label: {r: whole[label][r] for r in range(left)}}
        (found,) = compare(scenario(claim), report({label: tuple(range(left, 3))}, **regrets))
        assert found.holds == (claim is not CLAIM and label == "Seldom")
        assert found.open is False
    assert claim is not CLAIM or found.got is None
    assert not score({0: 1.0}, whole["Seldom"]).holds  # the others were not to be had for another reason


def test_a_label_of_which_nothing_finished_is_not_as_expected() -> None:
    (found,) = compare(scenario(FakeExpect("Often", "regret", at_most=9)), report({"Often": (0, 1)}))
    assert (found.got, found.holds, found.replication) == (None, False, None)


def test_replications_are_paired_by_their_numbers_whatever_came_first() -> None:
    found = score({2: 1000.0, 0: 10.0, 1: 100.0}, {1: 101.5, 2: 1001.0, 0: 11.0})
    assert (found.holds, found.got) == (True, pytest.approx(-3.5 / 3))


def test_a_single_replication_is_taken_as_it_is() -> None:
    found = score({0: 1.0}, {0: 1.5})
    assert (found.holds, found.interval) == (True, None)
    assert not score({0: 1.5}, {0: 1.0}).holds


def test_both_labels_must_run() -> None:
    assert compare(scenario(CLAIM), report(Often={0: 1.0})) == []
    require(scenario(CLAIM), ["Often", "Seldom"])
    with pytest.raises(ExpectationError, match="expect: says nothing about Often"):
        require(scenario(CLAIM), ["Often"])


def test_unknown_counts_are_named() -> None:
    with pytest.raises(ExpectationError, match="Often does not count 'regrets'; there is regret"):
        compare(scenario(FakeExpect("Often", "regrets", less_than="Seldom")), report(Often={0: 1.0}, Seldom={0: 2.0}))
