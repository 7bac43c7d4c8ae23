"""Reproductions of claims about a small scenario."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from coband.simulator.analysis.claims.claim import PlacedClaim
from coband.simulator.analysis.claims.outcome import Outcome, verdicts
from coband.simulator.analysis.claims.progress import Seconds, StudyProgress
from coband.simulator.analysis.claims.reading import read_claim
from coband.simulator.analysis.claims.reproduction import Reproduction, Stopped
from coband.simulator.analysis.claims.samples import SampleError
from coband.simulator.experiments.runs import driver
from coband.simulator.experiments.runs.workers import InProcess
from coband.simulator.experiments.scenario.input_problems import ScenarioError
from coband.simulator.experiments.sweep.result_cache import ResultCache

SCENARIO = """\
name: small
seed: 3
replications: 1
agents: {count: 2}
schedule: {kind: rounds, turns: 20}
problem:
  kind: contextual
  arms: {kind: ball, dimension: 2, count: 3}
  reward: {kind: cosine}
algorithms:
  - {algorithm: one_kernel_ucb, label: One}
  - {algorithm: n_kernel_ucb, label: N}
grid:
  schedule.turns: [10, 20]
"""
CLAIM = """\
title: sharing needs messages
where: nowhere
statement: A server that shares all points needs messages; agents that learn alone need none.
studies: {scenario: small.yaml}
replications: {first: 3, most: 6}
conditions:
"""
AT = "at: {schedule.turns: 20}"


def positive(label: str, at: str = f", {AT}", study: str = "") -> str:
    """The condition that a label sends something."""
    return f"  - {{kind: value, of: scalars, term: {{label: {label}{at}{study}}}, at_least: 1}}\n"


TRUE, FALSE = positive("One"), positive("N")
AFTER_20, AFTER_10 = "{label: One, at: {schedule.turns: 20}}", "{label: One, at: {schedule.turns: 10}}"
OPEN = f"  - {{kind: difference, of: regret, first: {AFTER_20}, second: {AFTER_10}, relation: greater, by: 1}}\n"


def placed(folder: Path, text: str, name: str = "claim") -> PlacedClaim:
    """A claim beside the scenario that it is about."""
    (folder / "small.yaml").write_text(SCENARIO)
    file = folder / f"{name}.yaml"
    file.write_text(text)
    return read_claim(file)


class Counted(InProcess):
    """Counts the jobs that it runs."""

    jobs = 0

    def submit(self, *arguments: Any, **named: Any) -> Any:
        """Run the job at once."""
        self.jobs += 1
        return super().submit(*arguments, **named)


def reproduced(folder: Path, *claims: PlacedClaim, **options: Any) -> tuple[list[Outcome], int]:
    pool = Counted()
    reproduction = Reproduction(claims, folder / "out", pool, **options)
    reproduction.run()
    return reproduction.outcomes(), pool.jobs


def test_a_true_claim_holds_and_a_false_one_does_not(tmp_path: Path) -> None:
    claims = [placed(tmp_path, CLAIM + condition, name) for name, condition in (("true", TRUE), ("false", FALSE))]
    outcomes, jobs = reproduced(tmp_path, *claims)
    assert verdicts(outcomes) == ["holds", "does not hold"]
    assert [one.replications for one in outcomes] == [3, 3]
    assert jobs == 6  # one job for each label, at the one point that claims are about
    assert all(one.cpu_hours > 0 for one in outcomes)


def test_one_false_condition_is_enough(tmp_path: Path) -> None:
    outcomes, _ = reproduced(tmp_path, placed(tmp_path, CLAIM + TRUE + FALSE))
    assert verdicts(outcomes) == ["does not hold"]


def test_jobs_that_two_claims_need_run_once_and_never_again(tmp_path: Path) -> None:
    claims = [placed(tmp_path, CLAIM + TRUE, name) for name in ("one", "two")]
    first, jobs = reproduced(tmp_path, *claims)
    again, more = reproduced(tmp_path, *claims)
    assert (jobs, more) == (3, 0)
    assert [one.fingerprints for one in first] == [one.fingerprints for one in again]
    (variants,) = first[0].fingerprints.values()
    assert [len(prints) for prints in variants.values()] == [3]


def test_a_claim_runs_the_variants_that_it_is_about_alone(tmp_path: Path) -> None:
    """Two claims share a study; what one of them still needs is not run for the other."""
    more = CLAIM.replace("first: 3, most: 6", "first: 5, most: 5")
    claims = [placed(tmp_path, CLAIM + TRUE, "three"), placed(tmp_path, more + FALSE, "five")]
    outcomes, jobs = reproduced(tmp_path, *claims)
    assert ([one.replications for one in outcomes], jobs) == ([3, 5], 8)
    prints = [prints for one in outcomes for prints in one.fingerprints.values()]
    lengths = [{label: len(found) for label, found in variants.items()} for variants in prints]
    assert lengths == [{"One [turns=20]": 3}, {"N [turns=20]": 5}]


def test_the_claim_that_costs_least_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claims = [placed(tmp_path, CLAIM + condition, name) for name, condition in (("dear", TRUE), ("cheap", FALSE))]
    costs = {"One": 50.0, "N": 1.0}

    def seconds(progress: StudyProgress, number: int, key: Seconds) -> float:
        return costs[progress.study.sweep.variants[number].entry] if progress.done(number) else 0.0

    monkeypatch.setattr(StudyProgress, "seconds", seconds)
    order: list[str] = []
    Reproduction(claims, tmp_path / "out", Counted()).run(lambda outcome: order.append(outcome.claim))
    assert [name.rpartition("/")[2] for name in order] == ["cheap", "dear"]


def test_an_open_claim_runs_all_its_replications(tmp_path: Path) -> None:
    claim = placed(tmp_path, CLAIM + OPEN)
    outcomes, jobs = reproduced(tmp_path, claim)
    (outcome,) = outcomes
    if verdicts(outcomes) == ["undecided"]:
        assert (outcome.replications, jobs) == (6, 12)
        assert outcome.needed is None or outcome.needed > 3
    else:
        assert 3 <= outcome.replications <= 6


def test_replications_that_others_needed_count(tmp_path: Path) -> None:
    """A verdict may be tried at any time."""
    greedy = placed(tmp_path, CLAIM.replace("first: 3, most: 6", "first: 5, most: 5") + TRUE, "greedy")
    reproduced(tmp_path, greedy)
    outcomes, jobs = reproduced(tmp_path, placed(tmp_path, CLAIM + TRUE))
    assert (jobs, outcomes[0].replications) == (0, 5)


def test_without_budget_nothing_is_decided_and_the_reason_is_said(tmp_path: Path) -> None:
    reproduction = Reproduction([placed(tmp_path, CLAIM + TRUE)], tmp_path / "out", Counted(), budget=1e-9)
    reproduction.run()
    (outcome,) = reproduction.outcomes()
    assert verdicts([outcome]) == ["not run"]
    assert "budget" in outcome.reason


def test_the_rest_of_the_budget_is_not_spent_on_what_it_cannot_pay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the first replication it is known that the next ones take longer than there is time."""
    claim = placed(tmp_path, CLAIM + TRUE)
    monkeypatch.setattr(StudyProgress, "left", lambda self, numbers, end, start, key: 7200.0 if self.done(0) else 0.0)
    pool = Counted()
    reproduction = Reproduction([claim], tmp_path / "out", pool, budget=1)
    began = time.monotonic()
    reproduction.run()
    assert time.monotonic() - began < 60
    (outcome,) = reproduction.outcomes()
    assert pool.jobs <= 1
    assert "the budget ended before 3 replications" in outcome.reason


def test_a_budget_is_of_time_and_costs_are_of_computing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A replication that took an hour on a busy machine but computed for nine minutes."""
    claim = placed(tmp_path, CLAIM.replace("first: 3, most: 6", "first: 6, most: 6") + OPEN)
    reproduction = Reproduction([claim], tmp_path / "out", Counted(), budget=0.5)
    times = {"wall_seconds": 3600.0, "cpu_seconds": 540.0}
    reading = StudyProgress.read

    def read(self: StudyProgress, cache: ResultCache) -> None:
        reading(self, cache)
        for variant in self.study.sweep.variants:
            for sample in self.found(variant.number).values():
                sample.record.update(times)

    monkeypatch.setattr(StudyProgress, "read", read)
    reproduction.run()
    (outcome,) = reproduction.outcomes()
    assert outcome.reason == "the budget ended before 6 replications, which take about 1.5 CPU hours more"
    assert outcome.cpu_hours == pytest.approx(2 * 0.15)


def test_an_interrupted_reproduction_keeps_what_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claim = placed(tmp_path, CLAIM + TRUE)
    pool = Counted()
    submit = pool.submit

    def interrupted(*arguments: Any, **named: Any) -> Any:
        if pool.jobs == 2:
            raise KeyboardInterrupt
        return submit(*arguments, **named)

    monkeypatch.setattr(pool, "submit", interrupted)
    with pytest.raises(Stopped):
        Reproduction([claim], tmp_path / "out", pool).run()
    outcomes, jobs = reproduced(tmp_path, claim)
    assert jobs == 1
    assert verdicts(outcomes) == ["holds"]


def test_a_job_that_breaks_off_is_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claim = placed(tmp_path, CLAIM + TRUE)

    class Broken(driver._Driver):
        def _settle(self, key: Any, result: Any) -> None:
            from coband.simulator.experiments.runs.job import Outcome as JobOutcome
            from coband.simulator.experiments.runs.work import JobResult

            super()._settle(key, JobResult(JobOutcome("failed", None, "Traceback\nZeroDivisionError: by zero")))

    monkeypatch.setattr(driver, "_Driver", Broken)
    outcomes, _ = reproduced(tmp_path, claim)
    assert verdicts(outcomes) == ["not run"]
    assert "ZeroDivisionError" in outcomes[0].reason


def test_a_claim_that_nobody_can_run_says_why(tmp_path: Path) -> None:
    text = "title: t\nwhere: w\nstatement: s\nnot_run: its data are under a licence\n"
    outcomes, jobs = reproduced(tmp_path, placed(tmp_path, text))
    assert (verdicts(outcomes), jobs, outcomes[0].reason) == (["not run"], 0, "its data are under a licence")


def test_sizes_change_the_study(tmp_path: Path) -> None:
    studies = "studies: {scenario: small.yaml, quick: {grid: null, schedule.turns: 3}, toy: {agents.count: 1}}"
    text = CLAIM.replace("studies: {scenario: small.yaml}", studies)
    claim = placed(tmp_path, text + positive("One", ""))
    outcomes, _ = reproduced(tmp_path, claim, size="quick")
    assert verdicts(outcomes) == ["holds"]
    assert claim.claim.studies["main"].settings("full") == ()
    assert claim.claim.studies["main"].settings("toy") == ("grid=null", "schedule.turns=3", "agents.count=1")


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        (positive("Two"), r"has no Two \(turns = 20\); there are One"),
        (positive("One", ", at: {schedule.turns: 7}"), "turns = 7"),
    ],
)
def test_a_term_that_means_nothing_is_refused_before_anything_runs(
    tmp_path: Path, condition: str, message: str
) -> None:
    with pytest.raises(SampleError, match=message):
        Reproduction([placed(tmp_path, CLAIM + condition)], tmp_path / "out", Counted())


def test_a_term_that_means_two_variants_says_which(tmp_path: Path) -> None:
    outcomes, _ = reproduced(tmp_path, placed(tmp_path, CLAIM + positive("One", "")))
    assert verdicts(outcomes) == ["not run"]
    assert "means 2 variants of the study, not one: One [turns=10]; One [turns=20]" in outcomes[0].reason


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (CLAIM.replace("where: nowhere\n", "") + TRUE, "where is missing"),
        (CLAIM + TRUE.replace("value", "hope"), "claim.yaml:7"),
        (CLAIM.replace("first: 3", "first: 9") + TRUE, "first"),
        (CLAIM, "conditions"),
        (
            CLAIM + positive("One", study=", study: other"),
            "names study other",
        ),
    ],
)
def test_mistakes_in_a_claim_are_reported_with_their_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        placed(tmp_path, text)
