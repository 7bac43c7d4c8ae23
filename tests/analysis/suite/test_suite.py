"""Suites: frozen files, equal tuning, seeds that nobody can choose, ranks as far as they are known, and the page."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from click.testing import CliRunner

from coband.simulator.analysis.suite import scores, verification
from coband.simulator.analysis.suite.page import page
from coband.simulator.analysis.suite.scores import Entrant, ranked, table
from coband.simulator.analysis.suite.submission import Outcome, Runner, Submission, read
from coband.simulator.analysis.suite.suites import ALONE, CENTRAL, Definition, Suite, SuiteError, suite, suites
from coband.simulator.cli.main import main
from coband.simulator.cli.options import BadInput
from coband.simulator.cli.suite import suite as command
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.runs.workers import InProcess

TINY = """
name: tiny
sha256: ''
worlds:
  linear:
    given: {kernel: {kind: linear}, lam: 1}
    tuned: {alpha: 0.1..1}
    alone: {algorithm: n_kernel_ucb}
    central: {algorithm: one_kernel_ucb}
    metric: regret_per_agent
sizes:
  quick: {candidates: 2, tuning: 1, replications: 8, settings: [schedule.turns=30]}
  full: {candidates: 3, tuning: 2, replications: 4}
scenarios: {ideal: linear, lossy: linear}
"""
SCENARIO = """# What it asks.
name: tiny
seed: 3
agents: {count: 3}
schedule: {kind: rounds, turns: 20}
problem: {kind: contextual, arms: {kind: ball, dimension: 3, count: 6}, reward: {kind: linear}, noise: 0.1}
algorithms:
  - {algorithm: n_kernel_ucb, label: Alone}
"""


def tiny(folder: Path) -> Suite:
    """A suite of two scenarios that takes a second."""
    folder.mkdir(exist_ok=True)
    (folder / "ideal.yaml").write_text(SCENARIO)
    (folder / "lossy.yaml").write_text(SCENARIO + "network: {loss: 0.3}\n")
    found = Suite(Definition.model_validate(yaml.safe_load(TINY)), folder)
    frozen = found.definition.model_copy(update={"sha256": found.digest})
    return Suite(frozen, folder)


def run(found: Suite, names: list[str], place: Path, scenarios: tuple[str, ...] = ()) -> Submission:
    pool = InProcess()
    try:
        return Runner(found, names, scenarios or list(found.definition.scenarios), "quick", place, pool).run()
    finally:
        pool.close()


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Suite, Submission]:
    place = tmp_path_factory.mktemp("suite")
    found = tiny(place / "tiny")
    return found, run(found, ["dis_lin_ucb", "fed_lin_ucb", "coop_kernel_ucb"], place / "jobs")


def test_shipped_suites_are_what_was_frozen() -> None:
    """A change of a file, or of a default that it relies on, is a new version: give the suite a new name."""
    for name in suites():
        suite(name).check()


def test_a_change_of_a_file_or_of_a_rule_is_noticed(tmp_path: Path) -> None:
    found = tiny(tmp_path / "tiny")
    (tmp_path / "tiny" / "ideal.yaml").write_text(SCENARIO.replace("count: 6", "count: 7"))
    with pytest.raises(SuiteError, match="is not what was frozen"):
        Suite(found.definition, found.folder).check()
    tiny(tmp_path / "tiny")
    more = found.definition.sizes["quick"].model_copy(update={"candidates": 9})
    sizes = {**found.definition.sizes, "quick": more}
    with pytest.raises(SuiteError, match="Give it a new name"):
        Suite(found.definition.model_copy(update={"sizes": sizes}), found.folder).check()


def test_everybody_has_the_same_budget_and_seeds_follow_from_what_is_submitted(ran: tuple[Suite, Submission]) -> None:
    found, submission = ran
    budget = found.definition.sizes["quick"]
    for tests in submission.tests.values():
        assert {len(one.candidates) for one in tests.values()} == {budget.candidates}
        assert all(len(one.fingerprints) == budget.replications for one in tests.values())
        assert all(len(set(one.fingerprints)) == budget.replications for one in tests.values())
    assert submission.seed == submission.expected_seed
    other = submission.model_copy(update={"coband": "another"})
    assert other.expected_seed != submission.seed
    assert "cannot run on network.topology star" in submission.unfit["ideal"]["coop_kernel_ucb"]


def test_scenarios_can_be_run_one_after_the_other(ran: tuple[Suite, Submission], tmp_path: Path) -> None:
    """Each part is a submission; where a scenario was not run there is nothing to read."""
    found, whole = ran
    parts = [run(found, ["dis_lin_ucb"], tmp_path / "jobs", (one,)) for one in ("ideal", "lossy")]
    assert [list(one.tests) for one in parts] == [["ideal"], ["lossy"]]
    assert parts[0].seed != parts[1].seed
    assert parts[0].tests["ideal"]["dis_lin_ucb"].candidates == whole.tests["ideal"]["dis_lin_ucb"].candidates
    for name in ("ideal", "lossy"):
        assert [row.name for row in table(found, name, parts)].count("dis_lin_ucb") == 1
    assert table(found, "lossy", parts[:1]) == []
    text = page(found, parts[:1])
    assert '<section id="ideal"' in text
    assert '<section id="lossy"' not in text


def test_central_pays_for_nothing_and_knows_everything(ran: tuple[Suite, Submission]) -> None:
    _, submission = ran
    ideal, lossy = submission.tests["ideal"], submission.tests["lossy"]
    assert ideal[CENTRAL].fingerprints == lossy[CENTRAL].fingerprints
    means = {label: np.mean(one.values["regret_per_agent"]) for label, one in ideal.items()}
    assert means[CENTRAL] < means["dis_lin_ucb"] < means[ALONE]


def test_scores_are_ratios_of_differences(ran: tuple[Suite, Submission]) -> None:
    found, submission = ran
    rows = {row.name: row for row in table(found, "ideal", [submission])}
    tests = submission.tests["ideal"]
    m = {label: np.mean(one.values["regret_per_agent"]) for label, one in tests.items()}
    expected = (m[ALONE] - m["fed_lin_ucb"]) / (m[ALONE] - m[CENTRAL])
    assert rows["fed_lin_ucb"].score == pytest.approx(expected)
    assert (rows[ALONE].score, rows[CENTRAL].score) == (0, pytest.approx(1))
    assert rows["coop_kernel_ucb"].remark.startswith("does not fit")


def test_a_submission_is_verified_and_lies_are_found(ran: tuple[Suite, Submission], tmp_path: Path) -> None:
    found, submission = ran
    file = tmp_path / "mine.json"
    submission.write(file)
    stored = read(file)
    assert stored == submission
    assert not list(verification.contradictions(found, stored))
    pool = InProcess()
    checked = verification.verify(found, stored, 4, tmp_path / _made(tmp_path, "a"), pool, seed=1)
    assert len(checked) == 4
    assert all(one.same for one in checked)
    lying = stored.model_copy(deep=True)
    for tests in lying.tests.values():
        for test in tests.values():
            test.values["regret_per_agent"] = [0.5 * one for one in test.values["regret_per_agent"]]
    checked = verification.verify(found, lying, 4, tmp_path / _made(tmp_path, "b"), pool, seed=1)
    assert not any(one.same for one in checked)
    pool.close()
    lying.tests["ideal"]["dis_lin_ucb"].chosen = {"threshold": 77.0}
    said = " ".join(verification.contradictions(found, lying))
    assert "are not those that tuning found best" in said
    assert "the seed is" in said


def _made(place: Path, name: str) -> str:
    (place / name).mkdir()
    return name


def entrant(name: str, values: Any, group: int = 0) -> Entrant:
    return Entrant(name, group, np.asarray(values, float), np.zeros(len(values)))


def test_places_are_given_only_where_they_are_known() -> None:
    rng = np.random.default_rng(0)
    base = rng.normal(size=30)
    found = ranked(
        [
            entrant("a", base),
            entrant("b", base + 1 + 0.1 * rng.normal(size=30)),
            entrant("c", base + rng.normal(size=30)),
        ]
    )
    assert found["b"] == (3, 3)
    assert found["a"][1] == 2
    twins = ranked([entrant(name, base + shift) for name, shift in (("a", 1), ("b", 1), ("c", 0), ("d", 1))])
    assert twins == {"a": (2, 4), "b": (2, 4), "c": (1, 1), "d": (2, 4)}
    wrong = 0
    for _ in range(200):
        alike = ranked([entrant(str(k), rng.normal(size=20), group=k % 2) for k in range(4)])
        wrong += any(place != (1, 4) for place in alike.values())
    assert wrong <= 10, f"{wrong} of 200 studies without differences have ranks"


def test_wrong_answers_have_no_place() -> None:
    rows = {"fast": [1.0] * 20, "right": [5.0] * 20}
    wrong = {"fast": [1.0] * 12 + [0.0] * 8, "right": [0.0] * 20}
    kept = {one: [0.0] * 20 for one in scores.MEASURED}
    tests = {
        label: Outcome(
            values={"samples_per_agent": rows[label], "error": wrong[label], **kept}, fingerprints=["x"] * 20
        )
        for label in rows
    }
    for label, mean in ((ALONE, 10.0), (CENTRAL, 2.0)):
        values = {"samples_per_agent": [mean] * 20, "error": [0.0] * 20, **kept}
        tests[label] = Outcome(values=values, fingerprints=["x"] * 20)
    core = suite("core-1")
    submission = Submission(
        suite="core-1",
        sha256=core.digest,
        size="quick",
        coband="",
        algorithms={"fast": "", "right": ""},
        knows={},
        seed=0,
        tests={"exploration": tests},
        unfit={"exploration": {}},
    )
    found = {row.name: row for row in table(core, "exploration", [submission])}
    assert found["fast"].score is None
    assert found["fast"].remark == "wrong answers: 12 of 20"
    assert not found["fast"].rank
    assert found["right"].rank == (1, 1)
    assert found["right"].score == pytest.approx(5 / 8)


def test_two_submissions_stand_on_one_page(ran: tuple[Suite, Submission]) -> None:
    found, submission = ran
    text = page(found, [submission, submission])
    assert text == page(found, [submission, submission])
    assert "dis_lin_ucb (1)" in text
    assert "dis_lin_ucb (2)" in text
    assert "What it asks." in text
    assert "http" not in text.replace("http-equiv", "")


def test_whoever_reads_what_is_not_declared_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = Registry.installed()
    algorithm = registry.algorithms["dis_lin_ucb"]
    before = algorithm.agent.__init__

    def curious(self: Any, context: Any) -> None:
        before(self, context)
        assert context.horizon == 30

    monkeypatch.setattr(algorithm.agent, "__init__", curious)
    found = tiny(tmp_path / "tiny")
    submission = run(found, ["dis_lin_ucb"], tmp_path / "jobs")
    assert "context.horizon, which its algorithm does not declare" in submission.tests["ideal"]["dis_lin_ucb"].failure
    (row,) = (row for row in table(found, "ideal", [submission]) if row.name == "dis_lin_ucb")
    assert row.remark.startswith("broke off")
    assert row.score is None


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    listed = CliRunner().invoke(command, ["list"])
    assert listed.exit_code == 0
    assert "core-1, digest" in listed.output
    assert "stragglers" in listed.output
    wrong = tmp_path / "wrong.json"
    wrong.write_text("{}")
    with pytest.raises(SystemExit) as ended:
        main(["suite", "rank", str(wrong)])
    assert ended.value.code == 2
    assert "is no results file of `coband suite run`" in capsys.readouterr().err
    shutil.rmtree(tmp_path)


def test_an_algorithm_that_is_not_installed_is_no_matter_of_a_scenario() -> None:
    with pytest.raises(
        BadInput, match=r"no algorithm 'gp_ucbb' is installed; the nearest names are gp_ucb, \w+, \w+; a"
    ):
        command.main(["run", "--quick", "--algorithm", "gp_ucbb"], standalone_mode=False)
