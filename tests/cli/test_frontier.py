"""The command that searches for a frontier, and its messages."""

import json
from pathlib import Path

import pytest

import coband as api
from coband.simulator.experiments.runs import executor
from coband.simulator.experiments.runs.executor import InProcess
from tests.analysis.frontier.searches import TEXT
from tests.cli.fake_cli import Program

SMALL = "grid: {algorithms.Async.threshold: [0.3, 3]}\n"
FEW = ("--replications", "2", "--trials", "2")


@pytest.fixture
def coband(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Program:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(executor, "Local", lambda workers: InProcess())
    monkeypatch.setattr("sys.argv", ["coband", "frontier", "small.yaml", *FEW])
    Path("small.yaml").write_text(TEXT + SMALL)
    return Program(capsys)


def test_a_table_and_what_to_choose(coband: Program) -> None:
    status, output, errors = coband("frontier", "small.yaml", *FEW, "--at-most", "scalars=0", "--at-most", "regret=0")
    lines = output.splitlines()
    assert (status, errors) == (0, "")
    assert lines[0].split() == ["algorithm", "threshold", "standing", "regret", "scalars"]
    assert sorted(line.split()[0] for line in lines[1:4]) == ["Alone", "Async", "Async"]
    assert lines[6] == "under this network choose"
    assert lines[8].startswith("  for the best scalars: Alone (regret ")
    assert lines[10] == "  with scalars within 0 and regret within 0: nothing was found"
    assert lines[-1] == "search directory: runs/small-0001"


def test_json_resume_and_python_agree(coband: Program) -> None:
    first = json.loads(coband("frontier", "small.yaml", *FEW, "--json", "--out", "out")[1])
    assert json.loads(coband("frontier", "small.yaml", *FEW, "--json", "--out", "out", "--resume")[1]) == first
    found = api.Frontier("out")
    assert list(found.points["label"]) == [one["label"] for one in first["frontier"]["points"]]
    assert "small has finished" in coband("sweep", "--status", "out")[1]


def test_going_on_with_other_options_says_what_is_not_shown_any_more(coband: Program) -> None:
    said = "what has finished and is no longer in it is kept in out/done, and not shown"
    assert said not in coband("frontier", "small.yaml", *FEW, "--set", "schedule.turns=5", "--out", "out")[2]
    assert said in coband("frontier", "small.yaml", *FEW, "--resume", "--out", "out")[2]
    assert said not in coband("frontier", "small.yaml", *FEW, "--resume", "--out", "out")[2]


@pytest.mark.parametrize(("first", "second"), [("sweep", "frontier"), ("frontier", "sweep")])
def test_the_results_of_another_kind_of_study_are_not_replaced(coband: Program, first: str, second: str) -> None:
    few = {"sweep": (), "frontier": FEW}
    assert coband(first, "small.yaml", *few[first])[0] == 0
    place = Path("runs/small-0001")
    before = {file.name: file.read_bytes() for file in place.iterdir() if file.is_file()}
    for where in ((), ("--out", str(place))):
        status, output, errors = coband(second, "small.yaml", *few[second], "--resume", *where)
        assert (status, output) == (2, "")
        kind = {"sweep": "a sweep", "frontier": "the search of a frontier"}[first]
        assert f"{place} holds {kind}, whose results this would replace" in errors
    assert {file.name: file.read_bytes() for file in place.iterdir() if file.is_file()} == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--objectives", "regret,skalars"), "did you mean scalars"),
        (("--vary", "algorithms.Async.threshold=5..1"), "the first end must be below the second"),
        (("--vary", "agents.count=2,3"), "fix this key with --set"),
        (("--budget", "3"), "3 jobs are too few"),
        (("--at-most", "scalars"), "--at-most scalars: must be NAME=VALUE"),
        (("--at-most", "scalars=nan"), "--at-most scalars=nan: must be NAME=VALUE"),
        (
            ("--at-most", "skalars=3"),
            "'skalars' is not a number that is better when it is low or high; did you mean scalars",
        ),
        (("--only", "Nobody"), "no algorithm or label 'Nobody'"),
    ],
)
def test_bad_input_ends_with_one_message(coband: Program, arguments: tuple[str, ...], message: str) -> None:
    status, output, errors = coband("frontier", "small.yaml", *FEW, *arguments)
    assert (status, output) == (2, "")
    assert message in errors
    assert "Traceback" not in errors
    assert not Path("runs").exists()


def test_show_prints_the_search_again(coband: Program) -> None:
    status, printed, _ = coband("frontier", "small.yaml", *FEW, "--out", "runs/found")
    assert status == 0
    status, shown, _ = coband("show", "runs/found")
    assert (status, shown) == (0, printed)


def test_without_optuna_small_spaces_are_searched(coband: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    assert coband("frontier", "small.yaml", *FEW)[0] == 0
    status, _, errors = coband("frontier", "small.yaml", *FEW, "--vary", "algorithms.Async.threshold=0.1..9")
    assert status == 2
    assert "pip install 'coband[frontier]'" in errors


def test_an_algorithm_that_waits_while_others_pull_is_named(coband: Program) -> None:
    Path("waits.yaml").write_text(
        "name: waits\n"
        "agents: {count: 4, compute: 0.2, stragglers: {fraction: 0.25, slowdown: 60}}\n"
        "schedule: {kind: renewal, think: 0.1, duration: 20}\n"
        "problem: {kind: contextual, arms: {kind: ball, dimension: 3, count: 5}, reward: {kind: linear}, noise: 0.1}\n"
        "algorithms: [{algorithm: fed_lin_ucb, label: Fed}, {algorithm: dis_lin_ucb, label: Sync}]\n"
        "grid: {algorithms.Fed.threshold: [0.5, 2], algorithms.Sync.threshold: [0.01, 0.02]}\n"
    )
    status, output, _ = coband("frontier", "waits.yaml", *FEW)
    assert status == 0
    assert "not ranked, as they broke off or make less than half of the pulls of others: Sync\n" in output
