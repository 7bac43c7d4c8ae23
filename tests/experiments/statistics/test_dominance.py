"""Which points are not dominated: by means, and by paired tests."""

import numpy as np
import pytest
from scipy import stats

from coband.simulator.experiments.statistics.dominance import Values, non_dominated, standings

RNG = np.random.default_rng(4)
WORLDS = 5.0 * RNG.normal(size=12)


def point(regret: float, sent: float, spread: float = 0.1, replications: int = 12) -> Values:
    noise = spread * RNG.normal(size=replications)
    return {r: (regret + WORLDS[r] + noise[r], sent) for r in range(replications)}


def test_means_against_all_pairs() -> None:
    rows = RNG.integers(0, 6, size=(40, 3)).astype(float)

    def beats(one: np.ndarray, other: np.ndarray) -> bool:
        return bool((one <= other).all() and (one < other).any())

    assert non_dominated(rows) == [not any(beats(other, row) for other in rows) for row in rows]
    assert non_dominated(np.array([[1.0, 2.0], [1.0 + 1e-15, 2.0]])) == [True, True]


def test_paired_differences_decide_where_intervals_overlap() -> None:
    cheap, dear, worse = point(3.0, 10.0), point(1.0, 90.0), point(4.0, 20.0)
    assert np.std([value[0] for value in cheap.values()]) > 3  # worlds differ by more than the points
    found = standings([cheap, dear, worse])
    assert [one.verdict for one in found] == ["frontier", "frontier", "beaten"]
    assert [one.beaten_by for one in found] == [None, None, 0]


@pytest.mark.parametrize("missing", [False, True])
def test_points_are_paired_by_replication_whatever_came_first(missing: bool) -> None:
    cheap, dear, worse = point(3.0, 10.0), point(1.0, 90.0), point(4.0, 20.0)
    turned = {r: worse[r] for r in sorted(worse, key=lambda r: (5 * r) % 12) if not missing or r != 7}
    assert standings([cheap, dear, turned]) == standings([cheap, dear, {r: turned[r] for r in sorted(turned)}])
    assert [one.verdict for one in standings([cheap, dear, turned])] == ["frontier", "frontier", "beaten"]


def test_two_common_replications_are_enough_where_they_agree() -> None:
    good: Values = {0: (1.0, 1.0), 1: (1.0, 1.0), 2: (1.0, 1.0)}
    bad: Values = {0: (5.0, 5.0), 1: (5.0001, 5.0001)}
    assert [one.verdict for one in standings([good, bad])] == ["frontier", "beaten"]
    alone: Values = {0: (5.0, 5.0), 7: (5.0, 5.0)}
    assert [one.verdict for one in standings([good, alone])] == ["undecided", "undecided"]


def test_shares_that_agree_in_few_replications_are_no_certainty() -> None:
    """Errors are 0 or 1: a share of 0.7 gives two of two half of the time, and no error at all says little of which
    share is smaller; one in all of six has a chance of 1/64 where neither errs more often."""

    def verdicts(replications: int, errors: float) -> list[str]:
        right, wrong = (dict.fromkeys(range(replications), one) for one in ((0.0, 10.0), (errors, 20.0)))
        return [one.verdict for one in standings([right, wrong], coarse=[True, False])]

    assert verdicts(2, 1.0) == ["frontier", "undecided"]  # it sends less, as counts say
    assert verdicts(6, 0.0) == ["frontier", "undecided"]
    assert verdicts(6, 1.0) == ["frontier", "beaten"]


def test_what_the_replications_do_not_tell_is_undecided() -> None:
    found = standings([point(3.0, 10.0, spread=2.0), point(3.1, 20.0, spread=2.0)])
    assert found[0].verdict == "frontier"  # who sends less is not beaten by who sends more, whatever its regret
    assert found[1].verdict == "undecided"
    assert {one.verdict for one in standings([point(3, 1, replications=1), point(4, 2, replications=1)])} == {
        "undecided"
    }


def test_equal_points_do_not_beat_each_other() -> None:
    one = point(3.0, 10.0)
    assert [found.verdict for found in standings([one, one, point(5.0, 11.0)])] == ["frontier", "frontier", "beaten"]
    assert [found.verdict for found in standings([one])] == ["frontier"]
    assert standings([]) == []


@pytest.mark.parametrize("missing", [False, True])
def test_a_pair_by_students_tests(missing: bool) -> None:
    first, second = dict(point(3.0, 10.0, spread=1.0)), dict(point(3.6, 10.0, spread=1.0))
    if missing:
        del second[4]
    gains = np.array([np.subtract(second[r], first[r]) for r in second])
    p = max(stats.ttest_1samp(column, 0.0, alternative="greater").pvalue for column in gains.T)
    for level in (1 - 0.99 * p, 1 - 1.01 * p):
        verdict = standings([first, second], level)[1].verdict
        assert (verdict == "beaten") == (p <= 1 - level)


def test_a_rival_from_other_replications_costs_no_correction() -> None:
    searched = [point(3.0, 10.0), point(3.3, 11.0), *(point(9.0, 500.0 + i) for i in range(60))]
    values = {r: (WORLDS[r] + 3.0 + 0.05 * (-1) ** r, 10.0) for r in range(12)}
    near = {r: (WORLDS[r] + 3.0 + 0.05 * RNG.normal(), 11.0) for r in range(12)}
    near = {r: (v[0] + 0.06 - np.mean([near[i][0] - values[i][0] for i in near]), v[1]) for r, v in near.items()}
    others = [dict(one) for one in searched[2:]]
    alone = standings([values, near])[1].verdict
    assert alone == "beaten"
    assert standings([values, near, *others], other=searched)[1].verdict == "beaten"
    assert standings([values, near, *others])[1].verdict == "undecided"


def test_wrong_verdicts_are_rare() -> None:
    """Of points that are equal in regret nobody is shown to be beaten more often than the level allows."""
    wrong = 0
    for _ in range(200):
        first, second = point(3.0, 10.0, spread=1.0), point(3.0, 10.0, spread=1.0)
        wrong += any(one.verdict != "undecided" for one in standings([first, second]))
    assert wrong <= 0.1 * 200 + 2 * np.sqrt(0.1 * 0.9 * 200)  # two verdicts, each wrong in 5 % of cases
