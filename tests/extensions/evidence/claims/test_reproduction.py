"""Reproductions of claims about a small scenario."""

import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coband
from coband.extensions.evidence.claims import verification
from coband.extensions.evidence.claims.claim import PlacedClaim
from coband.extensions.evidence.claims.jobs import Stopped
from coband.extensions.evidence.claims.outcome import Outcome, verdicts
from coband.extensions.evidence.claims.pages import in_words
from coband.extensions.evidence.claims.progress import Seconds, StudyProgress
from coband.extensions.evidence.claims.reading import UnknownClaimError, chosen, read_claim
from coband.extensions.evidence.claims.reproduction import Reproduction
from coband.extensions.evidence.claims.results import OUTCOME
from coband.extensions.evidence.claims.samples import SampleError
from coband.extensions.evidence.e_values import Evidence
from coband.simulator.experiments.runs import driver
from coband.simulator.experiments.runs.executor import InProcess
from coband.simulator.experiments.store.recording import ResultCache
from coband.simulator.scenario_errors import ScenarioError

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
LONG = f"  - {{kind: share, of: turns, term: {{label: N, {AT}}}, at_least: 0.9}}\n"
"""Open for long."""


def placed(folder: Path, text: str, name: str = "claim") -> PlacedClaim:
    """A claim beside the scenario that it is about."""
    (folder / "small.yaml").write_text(SCENARIO)
    file = folder / f"{name}.yaml"
    file.write_text(text)
    return read_claim(file)


class Counted(InProcess):
    jobs = 0

    def submit(self, *arguments: Any, **named: Any) -> Any:
        self.jobs += 1
        return super().submit(*arguments, **named)


def reproduced(folder: Path, *claims: PlacedClaim, **options: Any) -> tuple[list[Outcome], int]:
    pool = Counted()
    reproduction = Reproduction(claims, folder / "out", pool, **options)
    reproduction.run()
    return reproduction.outcomes(), pool.jobs


def gone_on(folder: Path, known: Outcome, text: str) -> tuple[PlacedClaim, Outcome, int]:
    """A claim that goes on from the results file of another machine, its outcome, and how many jobs that took."""
    (folder / "elsewhere").mkdir()
    claim, pool = placed(folder, text), Counted()
    reproduction = Reproduction([claim], folder / "elsewhere", pool, earlier={known.claim: known})
    reproduction.run()
    (outcome,) = reproduction.outcomes()
    return claim, outcome, pool.jobs


def test_a_true_claim_holds_and_a_false_one_does_not(tmp_path: Path) -> None:
    """One false condition is enough."""
    given = {"true": TRUE, "false": FALSE, "both": TRUE + FALSE}
    outcomes, jobs = reproduced(tmp_path, *(placed(tmp_path, CLAIM + one, name) for name, one in given.items()))
    assert verdicts(outcomes) == ["holds", "does not hold", "does not hold"]
    assert [one.replications for one in outcomes] == [3, 3, 3]
    assert jobs == 6  # one job for each label, at the one point that claims are about
    assert all(one.cpu_hours > 0 for one in outcomes)


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

    def seconds(progress: StudyProgress, number: int, key: Seconds = "cpu_seconds") -> float:
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
        assert outcome.missing is None or outcome.missing > 0
    else:
        assert 3 <= outcome.replications <= 6


def test_a_condition_that_is_decided_runs_no_more(tmp_path: Path) -> None:
    """A claim may hang on one condition; what a results file says of each goes on from where that one is."""
    (before,), jobs = reproduced(tmp_path, placed(tmp_path, CLAIM + TRUE + LONG))
    assert (jobs, before.replications, [one.count for one in before.findings]) == (9, 3, [3, 6])
    (prints,) = before.fingerprints.values()
    assert {label: len(found) for label, found in prints.items()} == {"One [turns=20]": 3, "N [turns=20]": 6}
    known = replace(OUTCOME.validate_python(asdict(before)), origin={"git": "of before"})
    more, outcome, jobs = gone_on(tmp_path, known, CLAIM.replace("most: 6", "most: 8") + TRUE + LONG)
    assert (jobs, [len(one.rows) for one in outcome.findings]) == (2 + 2, [3, 8])
    (longer,) = outcome.fingerprints.values()
    assert [found[: len(prints[label])] for label, found in longer.items()] == list(prints.values())
    (tmp_path / "third").mkdir()
    even_more = placed(tmp_path, CLAIM.replace("most: 6", "most: 9") + TRUE + LONG)
    pool = Counted()
    Reproduction([even_more], tmp_path / "third", pool, earlier={outcome.claim: outcome}).run()
    assert pool.jobs == 2  # of the condition that is decided the next one, to know what it takes
    jobs_again = verification.sample([more], {outcome.claim: outcome}, 20, 1)
    verification.verify(jobs_again, tmp_path / "again", InProcess())
    assert len(jobs_again) == 3 + 8
    place = tmp_path / "elsewhere"
    assert not list(verification.disagreements([more], {outcome.claim: outcome}, jobs_again, place))
    lie = replace(outcome.findings[1], rows=[[1.0]] * 7 + [[0.0]])
    lie = replace(more.claim.conditions[1].judge(lie.rows), setting="")
    forged = replace(outcome, findings=[outcome.findings[0], lie])
    (found,) = verification.disagreements([more], {outcome.claim: forged}, jobs_again, place)
    assert "replication 7 gives other numbers" in found


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


def test_no_budget_is_spent_on_what_it_cannot_pay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


class Broken(driver._Driver):
    def _settle(self, key: Any, result: Any) -> None:
        from coband.simulator.experiments.runs.attempt import Outcome as JobOutcome

        super()._settle(key, JobOutcome("failed", None, "Traceback\nZeroDivisionError: by zero"))


def test_a_job_that_breaks_off_is_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claim = placed(tmp_path, CLAIM + TRUE)
    monkeypatch.setattr(driver, "_Driver", Broken)
    outcomes, _ = reproduced(tmp_path, claim)
    assert verdicts(outcomes) == ["not run"]
    assert "ZeroDivisionError" in outcomes[0].reason


def test_a_job_that_broke_off_takes_nothing_from_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (before,), _ = reproduced(tmp_path, placed(tmp_path, CLAIM + LONG))
    monkeypatch.setattr(driver, "_Driver", Broken)
    known = replace(before, origin={"git": "of before"})
    _, outcome, _ = gone_on(tmp_path, known, CLAIM.replace("most: 6", "most: 9") + LONG)
    assert "ZeroDivisionError" in outcome.reason
    assert outcome.findings == before.findings
    assert outcome.fingerprints == before.fingerprints


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
def test_a_term_that_means_nothing_is_refused_before_any_run(tmp_path: Path, condition: str, message: str) -> None:
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
        (CLAIM + positive("One", study=", study: other"), "names study other"),
    ],
)
def test_mistakes_in_a_claim_are_reported_with_their_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        placed(tmp_path, text)


SPACE = """open:
  turns: {set: [schedule.turns], values: [6, 12], why: nobody says}
"""


def spaced(folder: Path, quantifier: str, condition: str, more: str = "") -> PlacedClaim:
    """A claim about a study without a grid, at two numbers of turns."""
    text = CLAIM.replace("{scenario: small.yaml}", "{scenario: small.yaml, set: {grid: null}}")
    text = text.replace("conditions:", f"{SPACE}quantifier: {quantifier}\n{more}conditions:")
    return placed(folder, text + condition)


BETWEEN = "  - {kind: value, of: turns, term: One, at_least: 20, at_most: 30}\n"
"""True for 12 turns of each of two agents."""


@pytest.mark.parametrize(
    ("quantifier", "condition", "verdict", "words"),
    [
        ("any", BETWEEN, "holds", "holds at turns = 12; does not hold at turns = 6"),
        ("all", BETWEEN, "does not hold", "holds at turns = 12; does not hold at turns = 6"),
        ("any", BETWEEN.replace("30", "20"), "does not hold", "does not hold at any of two settings"),
        ("all", BETWEEN.replace("20", "1"), "holds", "holds at all of two settings"),
    ],
)
def test_what_is_open_is_tried(tmp_path: Path, quantifier: str, condition: str, verdict: str, words: str) -> None:
    claim = spaced(tmp_path, quantifier, condition)
    (outcome,), jobs = reproduced(tmp_path, claim)
    assert verdicts([outcome]) == [verdict]
    assert in_words(outcome, claim.claim, verdicts([outcome])[0]) == words
    assert jobs == 6


def test_tuning_chooses_for_each_label_on_seeds_of_its_own(tmp_path: Path) -> None:
    """The more scalars the better: twelve turns; the claim is then tried on its own seed."""
    space = SPACE.replace(
        "turns: {set: [schedule.turns], values: [6, 12]", "lam: {set: [algorithms.One.lam], values: [1, 9]"
    )
    more = "tuning: {by: regret, best: lowest, replications: 2}\n"
    text = CLAIM.replace("{scenario: small.yaml}", "{scenario: small.yaml, set: {grid: null}}")
    text = text.replace("conditions:", f"{space}quantifier: tuned\n{more}conditions:") + positive("One", "")
    claim = placed(tmp_path, text)
    (outcome,), jobs = reproduced(tmp_path, claim)
    assert jobs == 2 * 2 + 3
    (again,), more_jobs = reproduced(tmp_path, claim, earlier={outcome.claim: outcome})
    assert (again.chosen, more_jobs) == (outcome.chosen, 0)
    chosen = outcome.chosen["One"]["lam"]
    scores = {}
    for lam in (1, 9):
        changes = {"seed": 777_001, "replications": 2, "algorithms.One.lam": lam}
        run = coband.run(SCENARIO.partition("grid:")[0], set=changes, workers=1)
        scores[lam] = float(np.mean(run.results.query("label == 'One'")["regret"]))
    assert chosen == min(scores, key=lambda lam: scores[lam])
    assert in_words(outcome, claim.claim, "holds") == "holds tuned"


@pytest.mark.parametrize("text", ["quantifier: any\n", SPACE])
def test_a_quantifier_and_open_values_go_together(tmp_path: Path, text: str) -> None:
    with pytest.raises(ScenarioError, match="open values need quantifier"):
        placed(tmp_path, CLAIM.replace("conditions:", f"{text}conditions:") + TRUE)


@pytest.mark.parametrize("key", ["schedule.turns", "algorithms.Oen.lam"])
def test_what_no_label_is_tuned_by_is_refused(tmp_path: Path, key: str) -> None:
    text = f"{SPACE.replace('schedule.turns', key)}quantifier: tuned\n"
    with pytest.raises(ScenarioError, match=f"chooses for each label by itself, and {key} is not a key of a label"):
        placed(tmp_path, CLAIM.replace("conditions:", f"{text}conditions:") + TRUE)


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder / "mine").mkdir(parents=True)
    first, second = (placed(tmp_path / folder / "mine", CLAIM + TRUE).path for folder in ("a", "b"))
    assert len(chosen([str(first), str(first)])) == 1
    with pytest.raises(UnknownClaimError, match=r"a/mine/.* and .*b/mine/.* are both called mine/"):
        chosen([str(first), str(second)])


def test_a_claim_that_is_no_utf_8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "claim.yaml").write_bytes(b"title: \xff\n")
    with pytest.raises(ScenarioError, match="byte 0xff is not UTF-8"):
        read_claim(tmp_path / "claim.yaml")


@pytest.mark.parametrize(("forged", "jobs"), [(False, 2), (True, 7)])
def test_replications_on_file_count_only_with_their_fingerprints(tmp_path: Path, forged: bool, jobs: int) -> None:
    (before,), _ = reproduced(tmp_path, placed(tmp_path, CLAIM + LONG))
    prints = {
        study: {label: ["0" * 16 if forged else one for one in found] for label, found in variants.items()}
        for study, variants in before.fingerprints.items()
    }
    known = replace(before, fingerprints=prints, origin={"git": "of before"})
    _, outcome, ran = gone_on(tmp_path, known, CLAIM.replace("most: 6", "most: 7") + LONG)
    assert (ran, outcome.replications, len(outcome.findings[0].rows)) == (jobs, 7, 7)


@pytest.mark.parametrize("holds", [2.5, 0.5])
def test_evidence_without_its_numbers_is_a_factor_if_there_is_much_of_it(tmp_path: Path, holds: float) -> None:
    (before,), _ = reproduced(tmp_path, placed(tmp_path, CLAIM + OPEN))
    start = before.replications if holds > 1 else 0
    without = [replace(one, rows=(), evidence=Evidence(holds, -3.0)) for one in before.findings]
    known = replace(before, findings=without, origin={"git": "of before"})
    more, outcome, jobs = gone_on(tmp_path, known, CLAIM.replace("most: 6", "most: 9") + OPEN)
    (found,) = OUTCOME.validate_python(asdict(outcome)).findings
    later = more.claim.conditions[0].judge(found.rows).evidence
    assert (found.start, found.count) == (start, outcome.replications)
    assert found.rows
    assert jobs == 2 * (len(found.rows) + (start > 0))  # one of those on file runs again, for its fingerprint
    assert found.evidence.holds == pytest.approx(later.holds + (holds if start else 0.0))
    assert found.evidence.fails == pytest.approx(later.fails - (3.0 if start else 0.0))
    assert not list(verification.disagreements([more], {known.claim: outcome}, [], tmp_path / "elsewhere"))
