"""Conditions on samples made by hand."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError

from coband.extensions.evidence.claims.claim import Condition
from coband.extensions.evidence.claims.condition import Finding, Term
from coband.extensions.evidence.claims.samples import Sample, SampleError

RNG = np.random.default_rng(3)
ENOUGH = math.log(20)
ADAPTER: TypeAdapter[Any] = TypeAdapter(Condition)


def condition(**fields: Any) -> Any:
    return ADAPTER.validate_python(fields)


def judged(fields: Mapping[str, Any], **values: Sequence[float]) -> Finding:
    """The finding of a condition on labels with these values of the metric ``y``."""

    def find(term: Term) -> list[Sample]:
        key = term.label if not term.at else f"{term.label}{next(iter(term.at.values()))}"
        return [Sample({"y": value, "error": value}, []) for value in values[key]]

    return finding(condition(**fields), find)


def finding(one: Any, find: Callable[[Term], Sequence[Sample]]) -> Finding:
    return one.judge(one.rows(find))


def noisy(mean: float, count: int = 8) -> list[float]:
    return (mean + 0.1 * RNG.normal(size=count)).tolist()


def verdict(finding: Finding) -> str:
    if finding.evidence.holds >= ENOUGH:
        return "holds"
    return "fails" if finding.evidence.fails >= ENOUGH else "open"


A_AND_B = {"of": "y", "first": "A", "second": "B"}


@pytest.mark.parametrize(
    ("relation", "by", "expected"), [("less", 0, "holds"), ("less", 2, "fails"), ("greater", 0, "fails")]
)
def test_difference(relation: str, by: float, expected: str) -> None:
    found = judged({"kind": "difference", **A_AND_B, "relation": relation, "by": by}, A=noisy(1), B=noisy(2))
    assert verdict(found) == expected
    assert found.interval[0] < -1 < found.interval[1]
    assert found.count == 8


def test_a_difference_within_the_noise_is_open() -> None:
    values = [1.0, 2.0, 3.0, 4.0]
    found = judged({"kind": "difference", **A_AND_B, "relation": "less"}, A=values, B=[1.1, 1.9, 3.1, 3.9])
    assert verdict(found) == "open"


@pytest.mark.parametrize(
    ("limits", "expected"),
    [({"at_most": 0.6}, "holds"), ({"at_least": 0.6}, "fails"), ({"at_least": 0.4, "at_most": 0.6}, "holds")],
)
def test_ratio(limits: Mapping[str, float], expected: str) -> None:
    found = judged({"kind": "ratio", **A_AND_B, **limits}, A=noisy(5), B=noisy(10))
    assert verdict(found) == expected
    assert found.estimate == pytest.approx(0.5, rel=0.05)


def test_successes_in_all_replications_are_no_certainty() -> None:
    counts = {"kind": "difference", **A_AND_B, "relation": "less"}
    fields = {**counts, "of": "error"}
    assert verdict(judged(fields, A=[0.0] * 9, B=[0.0] * 9)) == "open"
    assert verdict(judged(fields, A=[0.0] * 4, B=[1.0] * 4)) == "open"
    assert verdict(judged(fields, A=[0.0] * 7, B=[1.0] * 7)) == "holds"
    assert verdict(judged(counts, A=[3.0] * 2, B=[7.0] * 2)) == "holds"  # counts that never vary


@pytest.mark.parametrize(("second", "expected"), [(10.1, "holds"), (12.0, "fails")])
def test_equality_within_a_margin(second: float, expected: str) -> None:
    assert verdict(judged({"kind": "equal", **A_AND_B, "margin": 0.1}, A=noisy(10), B=noisy(second))) == expected


def test_equality_is_not_shown_by_a_small_sample_alone() -> None:
    found = judged({"kind": "equal", **A_AND_B, "margin": 0.1}, A=[8.0, 12.0], B=[12.0, 8.0])
    assert verdict(found) == "open"


def test_one_wild_replication_does_not_decide_a_test_of_signs() -> None:
    fields = {"kind": "difference", **A_AND_B, "relation": "less"}
    low, high = [*noisy(1, 15), 500.0], noisy(2, 16)
    assert verdict(judged(fields, A=low, B=high)) == "open"
    assert verdict(judged({**fields, "test": "signs"}, A=low, B=high)) == "holds"


@pytest.mark.parametrize(("second", "margin", "same"), [(10.1, 0.05, True), (10.1, 0.005, False), (12.0, 0.05, False)])
def test_differences_within_the_margin_make_no_practical_difference(second: float, margin: float, same: bool) -> None:
    for fields in (
        {"kind": "difference", **A_AND_B, "relation": "less", "margin": margin},
        {"kind": "order", "of": "y", "ascending": ["A", "B"], "margin": margin},
    ):
        evidence = judged(fields, A=noisy(10, 12), B=noisy(second, 12)).evidence
        assert (evidence.same >= ENOUGH) == same
    assert judged({"kind": "ratio", **A_AND_B, "at_most": 2}, A=noisy(10), B=noisy(second)).evidence.same is None


def test_a_finding_follows_from_its_rows_alone() -> None:
    fields = {"kind": "order", "of": "y", "ascending": ["A", "B", "C"]}
    found = judged(fields, A=noisy(1), B=noisy(2), C=noisy(3))
    assert condition(**fields).judge(found.rows) == found


@pytest.mark.parametrize(("labels", "expected"), [(["A", "B", "C"], "holds"), (["A", "C", "B"], "fails")])
def test_order(labels: list[str], expected: str) -> None:
    found = judged({"kind": "order", "of": "y", "ascending": labels}, A=noisy(1), B=noisy(2), C=noisy(3))
    assert verdict(found) == expected


@pytest.mark.parametrize(("limits", "expected"), [({"at_least": 1, "at_most": 3}, "holds"), ({"at_most": 1}, "fails")])
def test_value(limits: Mapping[str, float], expected: str) -> None:
    assert verdict(judged({"kind": "value", "of": "y", "term": "A", **limits}, A=noisy(2))) == expected


@pytest.mark.parametrize(
    ("limits", "expected"), [({"at_least": 0.4, "at_most": 0.6}, "holds"), ({"at_least": 0.9}, "fails")]
)
def test_slope(limits: Mapping[str, float], expected: str) -> None:
    values = {f"A{n}": (np.sqrt(n) * np.exp(0.02 * RNG.normal(size=6))).tolist() for n in (10, 100, 1000)}
    fields = {"kind": "slope", "of": "y", "term": "A", "against": "agents.count", "over": [10, 100, 1000], **limits}
    found = judged(fields, **values)
    assert verdict(found) == expected
    assert found.estimate == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize(("right", "expected"), [(60, "holds"), (40, "fails"), (56, "open")])
def test_share(right: int, expected: str) -> None:
    values = [1.0] * right + [0.0] * (60 - right)
    assert verdict(judged({"kind": "share", "of": "y", "term": "A", "at_least": 0.9}, A=values)) == expected


def series(slope: float) -> list[Sample]:
    """Curves of regret that grow by ``slope`` a turn, with noise from one replication to another."""
    found = []
    for _ in range(6):
        own = slope + 0.01 * RNG.normal()
        found.append(Sample({}, [(turn, turn / 2, own * turn, 3 * turn) for turn in range(1, 101)]))
    return found


@pytest.mark.parametrize(("first", "second", "expected"), [(0.5, 1.0, "holds"), (1.0, 0.5, "fails")])
def test_below(first: float, second: float, expected: str) -> None:
    curves = {"A": series(first), "B": series(second)}
    for against in ("turns", "scalars", "times"):
        found = finding(
            condition(kind="below", first="A", second="B", against=against), lambda term: curves[term.label]
        )
        assert verdict(found) == expected
        assert found.estimate == pytest.approx(10 * 0.5 if expected == "holds" else -100 * 0.5, rel=0.15)


def test_curves_that_cross_are_not_below_each_other() -> None:
    rows = [(turn, turn, 0.2 * turn if turn < 50 else 3.0 * turn, turn) for turn in range(1, 101)]
    curves = {"A": [Sample({}, rows)] * 3, "B": series(1.0)[:3]}
    found = finding(condition(kind="below", first="A", second="B"), lambda term: curves[term.label])
    assert verdict(found) == "fails"


def test_only_replications_of_both_are_compared() -> None:
    found = judged({"kind": "difference", **A_AND_B, "relation": "less"}, A=[1.0, 1.0, 99.0], B=[2.0, 2.1])
    assert found.estimate == pytest.approx(-1.05)
    assert found.count == 2


def test_nothing_has_run() -> None:
    found = judged({"kind": "value", "of": "y", "term": "A", "at_most": 1}, A=[])
    assert (found.count, found.estimate, verdict(found)) == (0, None, "open")


def runs(term: Term) -> list[Sample]:
    """A makes 40 pulls and B 60 with twice the regret and the scalars per pull of A's; C makes as many with half."""
    pulls, slope = {"A": (40, 1.0), "B": (60, 2.0), "C": (60, 0.5)}[term.label]
    curve = [(turn, turn, slope * turn, slope * turn) for turn in range(10, pulls + 1, 10)]
    whole = dict.fromkeys(("regret", "scalars"), slope * pulls) | {"regret_per_agent": slope * pulls / 2}
    return [Sample({"turns": pulls, "energy": slope * pulls, **whole}, curve, 2)] * 2


CHOSEN = {"second": {"label": "C", "at": {"algorithms.C.alpha": 2, "n": 5}}}
FACED = {"second": {"label": "C", "at": {"algorithms.C.alpha": 2, "n": 6}}}


@pytest.mark.parametrize("of", ["regret", "regret_per_agent", "scalars"])
def test_labels_of_one_environment_are_compared_at_equal_pulls(of: str) -> None:
    """Values of algorithms are choices, whose order and number do not matter; other keys are what labels face."""
    first = {"label": "A", "at": {"n": 5, "algorithms.A.alpha": 1}}
    for pair, expected in (
        ({"first": "A", "second": "C"}, 2.0),
        ({"first": "B", "second": "C"}, 4.0),
        ({"first": first, **CHOSEN}, 2.0),
        ({"first": first, **FACED}, 4 / 3),
    ):
        assert finding(condition(kind="ratio", of=of, **pair, at_most=10), runs).estimate == pytest.approx(expected)


def test_who_makes_fewer_pulls_is_not_better_by_a_claim() -> None:
    """Neither at equal pulls nor, where no curve is stored, over whole runs."""
    for of, second, where in (("regret", "B", "at equal pulls .40 on average."), ("energy", "B", "over the whole run")):
        one = condition(kind="difference", of=of, first="A", second=second, relation="less")
        with pytest.raises(SampleError, match=f"^A has less {of} than B {where}, but makes fewer pulls; ask of"):
            one.rows(runs)


def test_an_unknown_metric_is_named_with_those_that_exist() -> None:
    with pytest.raises(SampleError, match=r"no metric z; there are y, error\."):
        judged({"kind": "value", "of": "z", "term": "A", "at_most": 1}, A=[1.0])


def test_growth_of_what_is_not_positive_has_no_exponent() -> None:
    fields = {"kind": "slope", "of": "y", "term": "A", "against": "n", "over": [1, 2], "at_most": 1}
    with pytest.raises(SampleError, match="not positive"):
        judged(fields, A1=[1.0], A2=[0.0])


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "ratio", **A_AND_B},
        {"kind": "value", "of": "y", "term": "A", "at_least": 2, "at_most": 1},
        {"kind": "equal", **A_AND_B, "margin": 2},
        {"kind": "order", "of": "y", "ascending": ["A"]},
        {"kind": "difference", **A_AND_B, "relation": "equal"},
        {"kind": "hope", "of": "y"},
        {"kind": "below", "first": "A", "second": "B", "start": 0},  # where nobody has pulled yet, all are equal
        {"kind": "below", "first": "A", "second": "B", "start": 0.9, "end": 0.3},
        {"kind": "slope", "of": "y", "term": "A", "against": "x", "over": [0, 1], "at_least": 1},
        {"kind": "slope", "of": "y", "term": "A", "against": "x", "over": [2, 2], "at_least": 1},
    ],
)
def test_conditions_without_meaning_are_refused(fields: Mapping[str, Any]) -> None:
    with pytest.raises(ValidationError):
        condition(**fields)


def test_equal_values_have_no_effect_size_even_where_their_mean_is_rounded() -> None:
    first, second = [181_862.4] * 20, [0.1] * 20
    assert float(np.std(np.subtract(first, second), ddof=1)) > 0
    found = judged({"kind": "difference", **A_AND_B, "relation": "greater"}, A=first, B=second)
    assert verdict(found) == "holds"
    assert found.effect is None
    assert judged({"kind": "difference", **A_AND_B, "relation": "greater"}, A=[3.0, 5.0], B=[1.0, 1.0]).effect == (
        pytest.approx(3 / np.sqrt(2))
    )
