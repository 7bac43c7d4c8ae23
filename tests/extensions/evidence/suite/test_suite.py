"""Suites: frozen files, equal tuning, seeds that nobody can choose, and ranks as far as they are known."""

import json
import re
import shlex
import shutil
import sys
from collections.abc import Callable
from contextlib import nullcontext, suppress
from importlib.metadata import EntryPoint, PathDistribution
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from click.testing import CliRunner

from coband.extensions.evidence.suite import scores, verification
from coband.extensions.evidence.suite import suites as suites_module
from coband.extensions.evidence.suite.scores import Entrant, misfit, present, ranked, table
from coband.extensions.evidence.suite.shipped import HERE, compact, packed, unpacked
from coband.extensions.evidence.suite.submission import (
    Candidate,
    Outcome,
    Runner,
    Submission,
    SubmissionError,
    eligible,
    origin_of,
    read,
)
from coband.extensions.evidence.suite.suites import ALONE, CENTRAL, Definition, Suite, SuiteError, suite, suites
from coband.extensions.evidence.suite_command import suite as command
from coband.simulator.cli.main import cli, main
from coband.simulator.cli.options import BadInput
from coband.simulator.core.nodes.context import UndeclaredKnowledge
from coband.simulator.core.wire import accounting
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.runs import address
from coband.simulator.experiments.runs.executor import InProcess
from coband.simulator.experiments.store.directory import RunDirectory
from coband.simulator.experiments.store.files import StorageError
from tests.versions import at_least

PART = HERE.parent / "results" / "core-1" / "full-population.json"
"""Results of one scenario."""
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
  quick: {candidates: 2, tuning: 1, replications: 8, settings: [schedule.turns=10]}
  full: {candidates: 3, tuning: 2, replications: 4}
scenarios: {ideal: linear, lossy: linear}
"""
SCENARIO = """# What `it` asks.
name: tiny
seed: 3
agents: {count: 3}
schedule: {kind: rounds, turns: 20}
problem: {kind: contextual, arms: {kind: ball, dimension: 3, count: 6}, reward: {kind: linear}, noise: 0.1}
algorithms:
  - {algorithm: n_kernel_ucb, label: Alone}
"""


def tiny(folder: Path) -> Suite:
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
        pool.shutdown()


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
    assert present(found, parts[:1]) == ["ideal"]


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
    assert rows["coop_kernel_ucb"].remark.startswith("does not fit: cannot run on")
    assert misfit("mine", "mine: mine needs fixed arms") == "does not fit: needs fixed arms"


def test_the_time_of_other_seeds_puts_nothing_on_the_front(ran: tuple[Suite, Submission]) -> None:
    found, submission = ran
    slower = submission.model_copy(deep=True)
    for test in slower.tests["ideal"].values():
        test.values["simulated_time"] = [one + 100 for one in test.values["simulated_time"]]
    rows = [
        row for row in table(found, "ideal", [slower, submission]) if row.metric and row.name not in (ALONE, CENTRAL)
    ]
    front = {number: {row.name[:-4] for row in rows if row.pareto and number in row.name} for number in ("(1)", "(2)")}
    assert front["(1)"] == front["(2)"] != set()


@pytest.mark.parametrize("label", [ALONE, CENTRAL])
def test_without_a_reference_there_is_no_score(ran: tuple[Suite, Submission], label: str) -> None:
    """Without Alone no place either, which compares submissions."""
    found, submission = ran
    broken = submission.model_copy(deep=True)
    broken.tests["ideal"][label] = Outcome(failure="a mistake")
    rows = {row.name: row for row in table(found, "ideal", [broken])}
    assert (rows["fed_lin_ucb"].score, rows["fed_lin_ucb"].remark) == (None, "the references broke off")
    assert (rows["fed_lin_ucb"].rank is None) == (label == ALONE)


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
    checked = verification.verify(found, lying, 8, tmp_path / _made(tmp_path, "b"), pool, seed=1)
    assert [one.same for one in checked] == [True] * 4 + [False] * 4
    for test in (test for tests in lying.tests.values() for test in tests.values()):
        test.fingerprints = [f"{one}, with other numbers" for one in test.fingerprints]
    (checked,) = verification.verify(found, lying, 1, tmp_path / _made(tmp_path, "c"), pool, seed=1)
    assert not checked.same
    pool.shutdown()
    lying.tests["ideal"]["dis_lin_ucb"].chosen = {"threshold": 77.0}
    said = " ".join(verification.contradictions(found, lying))
    assert "are not those that tuning found best" in said
    assert "the seed is" in said


@pytest.mark.parametrize(
    ("ended", "raised"), [(KeyboardInterrupt, KeyboardInterrupt), (StorageError("no room"), SubmissionError)], ids=str
)
def test_what_was_stopped_has_neither_broken_off_nor_differs(
    ran: tuple[Suite, Submission], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ended: Any, raised: Any
) -> None:
    def stop(*_: Any) -> None:
        raise ended

    monkeypatch.setattr(RunDirectory, "take", stop)
    found, submission = ran
    with pytest.raises(raised):
        run(found, ["dis_lin_ucb"], tmp_path / "jobs")
    with pytest.raises(raised):
        verification.verify(found, submission, 1, tmp_path / _made(tmp_path, "a"), InProcess(), seed=1)


def test_a_private_search_is_found(ran: tuple[Suite, Submission], tmp_path: Path) -> None:
    """Settings of one's own stand in the place of a public one, with the seed that follows from them."""
    found, submission = ran
    forged = submission.model_copy(deep=True)
    test = forged.tests["ideal"]["fed_lin_ucb"]
    mine = {"alpha": 0.0123, "threshold": 0.0456}
    test.candidates[1] = Candidate(settings=mine, mean=0.0, fingerprints=["x"])
    test.chosen = mine
    forged = forged.model_copy(update={"seed": forged.expected_seed})
    assert list(verification.contradictions(found, forged)) == [
        f"ideal, fed_lin_ucb: {mine} was tried, which is none of the public settings"
    ]
    test.candidates = []
    assert len(said := list(verification.contradictions(found, forged))) == 2
    assert "are not those that tuning found best" in said[0]
    assert said[1] == "ideal, fed_lin_ucb: the 2 public settings were not tried once each, in their order"
    boasting = submission.model_copy(update={"knows": submission.knows | {"fed_lin_ucb": ["horizon"]}})
    assert list(verification.contradictions(found, boasting)) == [
        "fed_lin_ucb is told nothing beside arms and rewards here, and horizon in the file"
    ]
    hiding = submission.model_copy(deep=True)
    hiding.unfit["ideal"]["fed_lin_ucb"] = "too slow"
    assert list(verification.contradictions(found, hiding)) == [
        "ideal: fed_lin_ucb fits here, and in the file it does not: too slow"
    ]
    short = submission.model_copy(deep=True)
    short.tests["ideal"]["fed_lin_ucb"].fingerprints.pop()
    short.tests["lossy"]["fed_lin_ucb"].candidates[0].fingerprints.append("x")
    assert list(verification.contradictions(found, short)) == [
        "ideal, fed_lin_ucb: not every number has 8 replications",
        "lossy, fed_lin_ucb: not every setting was tried in 1 replications",
    ]


def test_tuning_chooses_nothing_that_makes_fewer_pulls(ran: tuple[Suite, Submission]) -> None:
    """Who waits has little regret; where the aim is to stop early, few pulls are no reason."""
    found, submission = ran
    test = submission.model_copy(deep=True).tests["ideal"]["fed_lin_ucb"]
    world, (first, second) = found.world("ideal"), test.candidates
    assert first.pulls == second.pulls == 30
    first.mean, first.pulls = 0.0, 20.0
    assert eligible(world, test.candidates) == [second]
    assert eligible(world.model_copy(update={"error": ("wrong", 0.05)}), test.candidates) == [first, second]
    first.pulls = None
    assert eligible(world, test.candidates) == [first, second]


def test_tuning_runs_again(ran: tuple[Suite, Submission], tmp_path: Path) -> None:
    """A mean of tuning that was made up, and a setting that is said to have broken off, are found."""
    found, submission = ran
    for name, mean in (("made-up", 0.0), ("hidden", None)):
        lying = submission.model_copy(deep=True)
        for one in (one for tests in lying.tests.values() for test in tests.values() for one in test.candidates):
            one.mean = mean
        checked = verification.verify(found, lying, 6, tmp_path / _made(tmp_path, name), InProcess(), seed=2)
        assert [one.same for one in checked] == [False] * 3 + [True] * 3
        assert all(one.part.endswith("of tuning") for one in checked[:3])


def test_what_is_said_to_have_broken_off_runs_again(
    ran: tuple[Suite, Submission], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody has no score, instead of a bad one, by saying so: with the default settings, or after tuning."""
    found, submission = ran
    hiding = submission.model_copy(deep=True)
    for test in hiding.tests["ideal"].values():
        test.failure = "out of memory"
    assert "ideal, Alone: it broke off, and has numbers" in verification.contradictions(found, hiding)
    for test in hiding.tests["ideal"].values():
        test.values, test.fingerprints = {}, []
    hiding.tests["ideal"]["fed_lin_ucb"].candidates = []
    hiding.tests.pop("lossy")

    def said(name: str) -> dict[str, bool]:
        checked = verification.verify(found, hiding, 100, tmp_path / _made(tmp_path, name), InProcess(), seed=1)
        return {one.label: one.same for one in checked if one.part == "breaking off"}

    labels = [ALONE, CENTRAL, "dis_lin_ucb", "fed_lin_ucb"]
    assert said("lies") == dict.fromkeys(labels, False)

    def broken(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(Registry.installed().algorithms["fed_lin_ucb"].agent, "choose", broken)
    assert said("true") == dict.fromkeys(labels, False) | {"fed_lin_ucb": True}
    hiding.tests["ideal"]["dis_lin_ucb"].candidates = [Candidate(settings={}, mean=None, fingerprints=[])]
    assert "dis_lin_ucb" not in said("in tuning")


def test_defaults_alone_are_excused_where_older_code_had_no_ranges(ran: tuple[Suite, Submission]) -> None:
    found, submission = ran
    older = submission.model_copy(deep=True)
    test = older.tests["lossy"]["dis_lin_ucb"]
    test.candidates = test.candidates[:1]
    test.chosen = {}
    older = older.model_copy(update={"seed": older.expected_seed})
    (said,) = verification.contradictions(found, older)
    assert said == "lossy, dis_lin_ucb: the 2 public settings were not tried once each, in their order"
    assert not list(verification.differences(found, older))
    older = older.model_copy(update={"coband": "0.0.1 abc"})
    older = older.model_copy(update={"seed": older.expected_seed})
    assert not list(verification.contradictions(found, older))
    assert list(verification.differences(found, older))[1:] == [
        "dis_lin_ucb: candidates of an older rule: 1, now 2 (lossy)"
    ]
    older.algorithms["dis_lin_ucb"], older.knows["fed_lin_ucb"] = "coband 0.0.1", ["delays"]
    older = older.model_copy(update={"seed": older.expected_seed})
    assert not list(verification.contradictions(found, older))
    expected = ["dis_lin_ucb is coband", "fed_lin_ucb is told n"]
    assert [one[:21] for one in verification.differences(found, older)][1:3] == expected
    alone = older.tests["lossy"][ALONE]
    alone.candidates, alone.chosen = alone.candidates[:1], {}
    older = older.model_copy(update={"seed": older.expected_seed})
    assert list(verification.contradictions(found, older)) == [
        "lossy, Alone: the 2 public settings were not tried once each, in their order"
    ]


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
    assert ranked([entrant("a", [9.0] * 3), entrant("b", [5.0] * 3)]) == {"a": (1, 2), "b": (1, 2)}, "no certainty"
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
    tests[CENTRAL].values["samples_per_agent"] = [14.0 + 0.01 * number for number in range(20)]
    found = {row.name: row for row in table(core, "exploration", [submission])}
    assert found["right"].score is None
    assert (found["right"].remark, found["right"].interval) == ("Central is worse than Alone", None)


def test_what_was_tuned_stands_beside_each_algorithm(ran: tuple[Suite, Submission]) -> None:
    found, submission = ran
    rows = {row.name: row for row in table(found, "ideal", [submission])}
    assert rows["dis_lin_ucb"].settings == "2: alpha, threshold"
    assert rows[CENTRAL].settings == "2: alpha"
    few = submission.model_copy(deep=True)
    few.tests["ideal"]["dis_lin_ucb"].candidates = [Candidate(settings={}, mean=1.0, fingerprints=["x"])]
    rows = {row.name: row for row in table(found, "ideal", [few])}
    assert rows["dis_lin_ucb"].settings == "1: defaults"


def test_what_would_not_start_today_does_not_fit(ran: tuple[Suite, Submission]) -> None:
    """An older version found in a run what is now found before it; nothing else is read in another way."""
    found, submission = ran
    old = submission.model_copy(deep=True)
    refused = {"coop_kernel_ucb": Outcome(failure="there is no graph"), "fed_lin_ucb": Outcome(failure="a mistake")}
    old.tests["ideal"] |= refused
    old.unfit["ideal"].clear()
    said = {row.name: row.remark for row in table(found, "ideal", [old])}
    assert said["coop_kernel_ucb"].startswith("does not fit: cannot run on network.topology star")
    assert said["fed_lin_ucb"] == "broke off: a mistake"


def test_exploration_constants_that_are_not_tuned_are_named() -> None:
    told = Path("docs/howto/suite.md").read_text(encoding="utf-8").split("## Limits of core-1")[1].split("Only")[0]
    keys = {key for world in suite("core-1").definition.worlds.values() for key in world.tuned}
    for name, algorithm in Registry.installed().algorithms.items():
        defaults = [field.default for key, field in algorithm.config.model_fields.items() if key in keys]
        assert (f"`{name}`" in told) == any(isinstance(one, str) for one in defaults), name


def test_two_submissions_stand_beside_each_other(ran: tuple[Suite, Submission]) -> None:
    found, submission = ran
    names = [row.name for row in table(found, "ideal", [submission, submission])]
    assert {"dis_lin_ucb (1)", "dis_lin_ucb (2)"} <= set(names)


def test_a_table_of_results_has_all_that_ranks_need(ran: tuple[Suite, Submission]) -> None:
    found, submission = ran
    (again,) = unpacked(packed([submission]))
    assert again == compact(submission) == compact(again)
    assert table(found, "ideal", [again]) == table(found, "ideal", [submission])


def test_of_the_same_code_the_result_of_most_settings_stands(ran: tuple[Suite, Submission]) -> None:
    found, submission = ran
    few = submission.model_copy(deep=True)
    few.tests["ideal"]["dis_lin_ucb"].candidates.pop()
    few.tests["ideal"] = {label: few.tests["ideal"][label] for label in (ALONE, CENTRAL, "dis_lin_ucb")}
    few.tests.pop("lossy")
    rows = [row for row in table(found, "ideal", [few, submission]) if row.name.startswith("dis_lin_ucb")]
    assert [(row.name, row.tried) for row in rows] == [("dis_lin_ucb", 2), ("dis_lin_ucb", 0)]
    assert (rows[1].remark, rows[1].rank) == ("is here from a results file that tried more settings", None)
    few.algorithms["dis_lin_ucb"] = "mine 1.0 0123"
    for scenario, names in {"ideal": ["dis_lin_ucb (1)", "dis_lin_ucb (2)"], "lossy": ["dis_lin_ucb (2)"]}.items():
        rows = table(found, scenario, [few, submission])
        assert sorted(row.name for row in rows if "dis_lin_ucb" in row.name) == names


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


def test_other_packages_are_told_only_what_they_declare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In no setting and no replication, whatever they do with the refusal."""
    agent, heard = Registry.installed().algorithms["dis_lin_ucb"].agent, []
    before = agent.__init__

    def sly(self: Any, context: Any) -> None:
        before(self, context)
        for ask in (
            lambda: context.horizon,
            lambda: context.count_turns(),
            lambda: context.sharing.common("pulls", list[float]),
        ):
            with suppress(UndeclaredKnowledge):
                heard.append(ask())

    monkeypatch.setattr(agent, "__init__", sly)
    monkeypatch.setattr(suites_module, "is_own", lambda name: name != "dis_lin_ucb")
    submission = run(tiny(tmp_path / "tiny"), ["dis_lin_ucb"], tmp_path / "jobs", ("ideal",))
    assert (heard, submission.tests["ideal"]["dis_lin_ucb"].failure) == ([], "")


def test_a_plugin_is_known_by_its_package_and_its_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However it was installed, and also where its classes are coband's."""
    module = tmp_path / "plug_in_of_a_suite.py"
    module.write_text("import numpy\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    point: Any = EntryPoint("gp_ucb", "plug_in_of_a_suite:ALGORITHM", "coband.algorithms")
    (tmp_path / "METADATA").write_text("Name: plug-in\nVersion: 0.3\n")
    vars(point)["dist"] = PathDistribution(tmp_path)
    monkeypatch.setattr(suites_module, "installed", lambda group: [point])
    before = origin_of("gp_ucb")
    assert before.startswith("plug-in 0.3 ")
    monkeypatch.setattr(address.metadata, "version", lambda name: "0.0")
    assert origin_of("gp_ucb") == before
    module.write_text("import numpy as np\n")
    assert origin_of("gp_ucb") != before


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    listed = CliRunner().invoke(command, ["list"])
    assert listed.exit_code == 0
    assert "core-1, digest" in listed.output
    assert "stragglers" in listed.output
    found = json.loads(CliRunner().invoke(command, ["rank", "--json", "--alone", str(PART)]).output)
    assert list(found) == ["population"]
    shown = CliRunner().invoke(command, ["rank", "--alone", str(PART)]).output
    assert "population:" in shown
    assert "ideal:" not in shown
    assert "12: alpha, threshold" in shown
    wrong = tmp_path / "wrong.json"
    wrong.write_text("{}")
    with pytest.raises(SystemExit) as ended:
        main(["suite", "rank", str(wrong)])
    assert ended.value.code == 2
    assert "is not a results file of `coband suite run`" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["suite", "rank", str(tmp_path / "none.json")])
    assert capsys.readouterr().err.endswith("is not a results file of `coband suite run`: No such file or directory\n")
    with pytest.raises(SystemExit):
        main(["suite", "run", "--quick", "--algorithm", "lin_ucb", "--scenario", "ideal", "--out", str(wrong / "here")])
    assert "cannot be written: Not a directory. Choose another place with --out DIR.\n" in capsys.readouterr().err

    def interrupted(self: Runner) -> Submission:
        raise KeyboardInterrupt

    monkeypatch.setattr(Runner, "run", interrupted)
    with pytest.raises(SystemExit) as ended:
        main(["suite", "run", "--quick", "--algorithm", "lin_ucb", "--out", str(tmp_path / "kept")])
    assert (ended.value.code, "/kept, and the same command goes on\n" in capsys.readouterr().err) == (130, True)
    shutil.rmtree(tmp_path)


def _of_part(change: Callable[[dict[str, Any]], object]) -> str:
    document = json.loads(PART.read_text())
    change(document)
    return json.dumps(document)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda one: one["tests"].clear(), "it has no scenario"),
        (lambda one: one["tests"].update(elsewhere={}), "core-1 has no scenario 'elsewhere'"),
        (lambda one: one["tests"]["population"].pop(CENTRAL), "population does not have Alone, Central, "),
        (lambda one: one["tests"]["population"].update(mine={}), "once each and nothing else"),
        (lambda one: one["tests"]["population"][ALONE]["values"].pop("bits"), "population, Alone: there are not as"),
        (lambda one: one["tests"]["population"][ALONE]["fingerprints"].pop(), "simulated_time as fingerprints"),
        (
            lambda one: one["tests"]["population"][ALONE]["values"].update(bits=[float("nan")]),
            "tests.population.Alone.values.bits.0: Input should be a finite number",
        ),
        (lambda one: one.update(seed="x"), "seed: Input should be a valid integer"),
        (None, "Invalid JSON: EOF while parsing"),
    ],
)
def test_a_file_that_no_run_writes_is_refused(change: Any, said: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text(PART.read_text()[:-90] if change is None else _of_part(change))
    for name in ("rank", "verify"):
        with pytest.raises((BadInput, SubmissionError), match=re.escape(said)) as caught:
            command.main([name, str(file)], standalone_mode=False)
        assert str(caught.value).startswith(str(file))


def test_what_breaks_off_is_said_and_can_be_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the scenario that the run has written, and the replication, which is one of tuning."""

    def broken(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Registry.installed().algorithms["dis_lin_ucb"].agent, "choose", broken)
    monkeypatch.setattr("coband.simulator.cli.options.pool", lambda **_: nullcontext(InProcess()))
    monkeypatch.setattr(suites_module, "suite", lambda _: tiny(tmp_path / "tiny"))
    out = ["--out", str(tmp_path / "out")]
    shown = CliRunner().invoke(command, ["run", "--quick", "--algorithm", "dis_lin_ucb", "--scenario", "ideal", *out])
    assert shown.exit_code == 1
    assert "\ndis_lin_ucb broke off: ZeroDivisionError\n" in shown.output
    (again,) = re.findall("to see it again: coband (run .+)", shown.output)
    shown = CliRunner().invoke(cli, [*shlex.split(again), "--out", str(tmp_path / "again")])
    assert shown.exit_code == 1
    assert "dis_lin_ucb#checked, replication 1000000, failed: ZeroDivisionError" in shown.output


def test_places_need_no_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    shown = CliRunner().invoke(command, ["rank", "--alone", str(PART)])
    assert (shown.exit_code, "fed_lin_ucb" in shown.output) == (0, True)


def test_a_scenario_that_cannot_run_here_is_named_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounting, "installed", lambda: False)
    said = "the scenario privacy cannot run here: messages.privacy is accounted for by dp-accounting, which is not"
    with pytest.raises(SuiteError, match=said):
        run(suite("core-1"), ["dis_lin_ucb"], tmp_path / "jobs", ("ideal", "privacy"))
    submission = read(PART)
    (tmp_path / "mine.json").write_text(
        submission.model_copy(update={"tests": {"privacy": submission.tests["population"]}}).model_dump_json()
    )
    monkeypatch.setattr(Submission, "gap", lambda *_: "")
    with pytest.raises(SuiteError, match=said):
        command.main(["verify", str(tmp_path / "mine.json")], standalone_mode=False)
    assert not (tmp_path / "jobs").exists()


def test_files_of_two_versions_are_told_apart(tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text(_of_part(lambda one: one.update(sha256="0" * 64)))
    with pytest.raises(BadInput, match=r"population.json: core-1 full, digest d6.*other.json: .* digest 0{16}\."):
        command.main(["rank", str(PART), str(other)], standalone_mode=False)


def test_the_command_says_differences_and_fails_for_contradictions(tmp_path: Path) -> None:
    verify = ["--replications", "1", "--seed", "5", "--workers", "1"]
    shown = CliRunner().invoke(command, ["verify", str(PART), *verify])
    assert shown.exit_code == 0 or not at_least("numpy", "2.4"), "other libraries have other last bits"
    assert "sw_lin_ucb: candidates of an older rule: 1, now 12 (population)" in shown.output
    assert "1 results again (--seed 5)" in shown.output
    forged = read(PART)
    forged.tests["population"]["fed_lin_ucb"].candidates[3].settings = {"alpha": 0.0123}
    forged.write(tmp_path / "forged.json")
    shown = CliRunner().invoke(command, ["verify", str(tmp_path / "forged.json"), *verify])
    assert shown.exit_code == 1
    assert "{'alpha': 0.0123} was tried, which is none of the public settings" in shown.output


def test_an_algorithm_that_is_not_installed_is_no_matter_of_a_scenario() -> None:
    said = r"no algorithm 'gp_ucbb' is installed; the nearest names are gp_ucb, \w+, \w+; a"
    with pytest.raises(BadInput, match=said):
        command.main(["run", "--quick", "--algorithm", "gp_ucbb"], standalone_mode=False)
