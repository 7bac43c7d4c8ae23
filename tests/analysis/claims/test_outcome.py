"""How many replications a claim still needs."""

from __future__ import annotations

from coband.simulator.analysis.claims.conditions import Finding
from coband.simulator.analysis.claims.outcome import Outcome
from coband.simulator.experiments.statistics.evidence import Evidence


def outcome(replications: int, *evidence: Evidence) -> Outcome:
    findings = [Finding("", 1.0, None, None, replications, one) for one in evidence]
    return Outcome("paper/claim", "full", findings, 1, replications, 0.0)


def test_a_claim_that_seems_true_needs_what_its_slowest_condition_needs() -> None:
    assert outcome(10, Evidence(0.01, 0.99, 20), Evidence(0.1, 0.9, 50)).needed == 50


def test_what_speaks_for_a_condition_does_not_refute_the_claim() -> None:
    assert outcome(10, Evidence(0.99, 0.01, 40), Evidence(0.0, 1.0, 4)).needed == 40


def test_nothing_is_said_where_the_estimate_has_been_passed() -> None:
    assert outcome(80, Evidence(0.99, 0.01, 40)).needed is None
