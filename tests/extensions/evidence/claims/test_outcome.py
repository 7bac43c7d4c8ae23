"""What findings come to: verdicts, settings, and how many replications a claim still needs."""

import math
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from coband.extensions.evidence.claims.condition import Finding
from coband.extensions.evidence.claims.outcome import Outcome, fails_of, holds_of, pursued, verdicts
from coband.extensions.evidence.claims.pages import in_words
from coband.extensions.evidence.e_values import ENOUGH, Evidence, Requirement

NO = -9.0


def outcome(replications: int, *evidence: Evidence, settings: bool = False, **fields: Any) -> Outcome:
    """An outcome with one finding for each piece of evidence, all at one setting, or each at its own."""
    findings = [
        Finding("", 1.0, None, None, replications, one, (), str(number) if settings else "")
        for number, one in enumerate(evidence)
    ]
    return Outcome("paper/claim", "full", findings, replications, 0.0, **fields)


def test_a_claim_that_seems_true_needs_what_its_slowest_condition_needs() -> None:
    assert outcome(10, Evidence(2.0, NO, needed=20), Evidence(1.0, NO, needed=50)).missing == 40


def test_what_speaks_for_a_condition_does_not_refute_the_claim() -> None:
    """Evidence against one of two conditions counts half."""
    found = outcome(10, Evidence(NO, 2.0, needed=40), Evidence(9.0, NO, needed=4))
    assert found.missing == math.ceil(30 * (math.log(80) - 2.0) / (math.log(40) - 2.0))


def test_replications_go_to_the_conditions_on_which_a_verdict_hangs() -> None:
    def of(*evidence: Evidence, **more: Any) -> dict[int, int | None]:
        return pursued(outcome(10, *evidence).findings, **more)

    clear, open_ = Evidence(9.0, NO, needed=10), Evidence(1.0, NO, needed=50)
    soon, late = Evidence(NO, 2.0, needed=20), Evidence(NO, 1.0, needed=40)
    assert of(clear, open_) == {1: 50}
    assert list(of(clear, soon, late)) == [1]
    assert list(of(clear, soon, late, cost=lambda place, count: -place)) == [2]
    assert of(Evidence(NO, 2.0), open_) == {0: None, 1: 50}  # nobody knows how many, so all of them
    assert of(clear, Evidence(0.0, 0.0, needed=None)) == {1: None}
    nearly = Evidence(NO, ENOUGH + 0.1)  # it would be enough if there were no other condition
    assert of(clear, nearly, open_) == {1: 11}
    assert of(clear, Evidence(NO, ENOUGH + math.log(3)), open_) == {1: 10}
    assert of(Evidence(0.5, NO, 2.0, needed=30), Evidence(0.5, NO, ENOUGH, needed=40)) == {0: 30}
    assert of(Evidence(0.5, NO, 2.0, needed=30), Evidence(0.5, NO, 3.0, needed=40)) == {0: 30, 1: 40}  # they are alike
    given = replace(outcome(10, open_).findings[0], given=True)
    assert pursued([*outcome(10, soon, late).findings, given]).keys() == {0, 2}
    assert pursued([*outcome(1, soon).findings, given]) == {0: 20, 1: 50}  # some of all come first


@pytest.mark.parametrize("truth", ["holds", "fails"])
def test_few_verdicts_are_wrong_where_conditions_stop_apart(truth: str) -> None:
    """Three conditions that hardly hold, or hardly fail, on correlated numbers; the cheapest go on, up to 80."""
    rng, wrong, studies = np.random.default_rng(7), 0, 300
    for _ in range(studies):
        x = 0.6 * rng.normal(size=(1, 80)) + 0.8 * rng.normal(size=(3, 80)) + (0.02 if truth == "holds" else -0.02)
        counts = [5, 5, 5]
        found = cache(lambda place, n, x=x: Requirement(x[place, :n].tolist()).evidence())
        while min(counts) < 80:
            part = [Finding("", 0.0, None, None, n, found(place, n)) for place, n in enumerate(counts)]
            if (fails_of(part) if truth == "holds" else holds_of(part)) >= math.log(20):
                wrong += 1
                break
            goes_on = pursued(part, lambda place, count: (place + 1) * count)
            if all(counts[place] == 80 for place in goes_on):
                break
            counts = [min(80, n + 5) if place in goes_on else n for place, n in enumerate(counts)]
    assert wrong <= 0.05 * studies


def test_all_conditions_have_to_hold_and_one_that_fails_is_enough() -> None:
    good, bad = Evidence(9.0, NO), Evidence(NO, 9.0)
    assert outcome(5, good, Evidence(5.0, NO)).holds == 5.0
    assert outcome(5, good, bad).holds == NO
    assert outcome(5, good, bad).fails == pytest.approx(9.0 - math.log(2))


@pytest.mark.parametrize(("quantifier", "expected"), [("any", "holds"), ("all", "does not hold")])
def test_one_setting_of_several(quantifier: Any, expected: str) -> None:
    """Any: the mean of what speaks for it at each; all: the mean of what speaks against it."""
    found = outcome(5, Evidence(9.0, NO), Evidence(NO, 9.0), settings=True, quantifier=quantifier)
    assert verdicts([found]) == [expected]
    assert found.nearest[1] == pytest.approx(9.0 - math.log(2))


def test_a_claim_is_refuted_only_if_it_fails_at_every_setting() -> None:
    untried = outcome(5, Evidence(NO, 9.0), Evidence(0.0, 0.0), settings=True, quantifier="any")
    assert verdicts([untried]) == ["undecided"]
    assert verdicts([outcome(5, Evidence(NO, 9.0), Evidence(NO, 8.0), settings=True, quantifier="any")]) == [
        "does not hold"
    ]


def test_a_difference_that_does_not_matter() -> None:
    clear, unclear = 2 * ENOUGH, 0.5
    assert verdicts([outcome(9, Evidence(unclear, NO, clear))]) == ["no practical difference"]
    assert verdicts([outcome(9, Evidence(clear, NO, clear + 1))]) == ["holds"]  # a small difference, but less
    assert verdicts([outcome(9, Evidence(NO, clear + 1, clear))]) == ["no practical difference"]
    assert verdicts([outcome(9, Evidence(unclear, NO, unclear))]) == ["undecided"]


def test_no_verdict_is_published_on_less_than_twenty() -> None:
    assert verdicts([outcome(9, Evidence(math.log(20.1), NO))]) == ["holds"]
    assert verdicts([outcome(9, Evidence(math.log(19.9), NO))]) == ["undecided"]


def test_what_has_more_replications_counts_at_every_setting() -> None:
    old = outcome(9, Evidence(1.0, NO), Evidence(NO, 1.0), settings=True, quantifier="any")
    fresh = [replace(one, count=count) for one, count in zip(old.findings, (20, 3), strict=True)]
    found = replace(old, findings=fresh, replications=3).joined(old)
    assert [one.count for one in found.findings] == [20, 9]
    assert found.replications == 9


@pytest.mark.parametrize(("quantifier", "leading"), [("any", ["0"]), ("all", ["1"])])
def test_where_one_setting_is_enough_the_nearest_goes_on(quantifier: Any, leading: list[str]) -> None:
    """One setting at which it seems to hold, two at which it seems not to; the soonest of those alike decides."""
    toward, against = Evidence(2.0, NO, needed=60), (Evidence(NO, 2.0, needed=20), Evidence(NO, 1.0, needed=50))
    found = outcome(10, toward, *against, settings=True, quantifier=quantifier)
    assert (found.one_is_enough, found.leading) == (True, leading)
    assert found.missing == (50 if quantifier == "any" else 10)
    unclear = outcome(10, toward, *(Evidence(NO, log_e) for log_e in (2.0, 1.0)), settings=True, quantifier="all")
    assert (unclear.leading, unclear.missing) == (["1", "2"], None)
    certain = outcome(10, Evidence(NO, 2.0, needed=20), *against, settings=True, quantifier="any")
    assert (certain.one_is_enough, certain.leading) == (False, ["0", "1", "2"])


def test_a_setting_whose_presupposition_seems_false_does_not_lead() -> None:
    against = Evidence(NO, 9.0)
    found = outcome(10, against, Evidence(1.0, 2.0, needed=11), against, Evidence(2.0, 1.0, needed=90))
    rows = [replace(one, setting=str(at // 2), given=bool(at % 2)) for at, one in enumerate(found.findings)]
    found = replace(found, findings=rows, quantifier="all")
    assert (found.one_is_enough, found.leading, found.missing) == (True, ["1"], 80)


@pytest.mark.parametrize(
    ("quantifier", "parts", "words"),
    [
        ("any", [(NO, NO, 6.0)] * 3, "no practical difference"),
        ("any", [(NO, 2.0, None)] * 3, "undecided"),
        ("any", [(NO, 9.0, None)] * 2 + [(NO, 3.9, None)], "does not hold at any of three settings"),
        ("all", [(NO, 9.0, None)] + [(9.0, NO, None)] * 2, "holds at D >= 1; does not hold at D = 0"),
        ("all", [(NO, 4.0, None)] * 3, "does not hold"),
    ],
)
def test_words_of_a_verdict_say_no_more_than_it(
    quantifier: str, parts: list[tuple[float, float, float | None]], words: str
) -> None:
    """Evidence for several settings may be enough together, and for none of them alone."""
    findings = [
        Finding("", 1.0, None, None, 9, Evidence(holds, fails, same), (), f"D = {number}")
        for number, (holds, fails, same) in enumerate(parts)
    ]
    found = Outcome("paper/claim", "full", findings, 9, 0.0, quantifier=quantifier)  # type: ignore[arg-type]
    claim: Any = SimpleNamespace(quantifier=quantifier, at_equal=None)
    (verdict,) = verdicts([found])
    assert in_words(found, claim, verdict) == words
