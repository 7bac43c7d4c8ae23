import json
from pathlib import Path
from typing import Any

import pytest

from coband.simulator.experiments.runs import executor
from coband.simulator.experiments.runs.executor import InProcess
from coband.simulator.experiments.runs.status import EntryStatus, Status
from coband.simulator.terminal import progress, results
from coband.simulator.terminal.progress import duration
from tests.cli.fake_cli import Program
from tests.experiments.sweep.sweeps import TEXT

PLAIN = TEXT.replace("  - {algorithm: deadly, label: D}\n", "").replace("replications: 2", "replications: 3")
GRID = PLAIN + "grid:\n  problem.noise: [0.1, 0.2]\n  algorithms.K.alpha: [1, 4]\n"


@pytest.fixture
def coband(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Program:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(executor, "Local", lambda workers: InProcess())
    monkeypatch.setattr("sys.argv", ["coband", "sweep", "small.yaml", "--out", "old"])
    Path("small.yaml").write_text(GRID)
    return Program(capsys)


SIZE = "small: 20 turns × 2 agents × 4 variants of 1 algorithm at 4 points × 3 replications = 480 pulls\n"


def test_a_line_for_each_variant(coband: Program) -> None:
    status, output, errors = coband("sweep", "small.yaml")
    lines = output.splitlines()
    assert status == 0
    assert errors == SIZE
    assert lines[0].split()[:6] == ["algorithm", "noise", "alpha", "n", "regret", "scalars"]
    assert [line.split()[:4] for line in lines[1:5]] == [
        ["K", noise, alpha, "3"] for noise in ("0.1", "0.2") for alpha in ("1", "4")
    ]
    assert lines[-1] == "sweep directory: runs/small-0001"


def test_best_parameters_are_shown_with_both_estimates(coband: Program) -> None:
    Path("small.yaml").write_text(GRID + "tuning: {replications: 2}\n")
    _, output, _ = coband("sweep", "small.yaml")
    lines = output.splitlines()
    assert "best parameters" in lines[0]
    assert lines[0].rstrip().endswith("regret when tuned  regret on fresh seeds")
    assert [line.split()[:2] for line in lines[1:3]] == [["K", "0.1"], ["K", "0.2"]]
    assert lines[1].endswith("(3)")
    assert "(2)" in lines[1]
    assert "the best of many looks better on the seeds that chose it than it is" in output


PHASES = ("tuning", "fresh")


def test_pulls_and_what_was_compared_are_shown_where_pulls_differ() -> None:
    spread = {"n": 2, "mean": 1.0, "ci95": None}
    line = {"entry": "K", "on": "regret", "candidates": 2, "context": {}, "chosen": {}} | dict.fromkeys(PHASES, spread)
    lines = [{**line, "pulls": {**spread, "mean": pulls}, "judged": "regret at equal pulls"} for pulls in (30.0, 20.0)]
    report: Any = {"best": lines, "results": [], "failures": []}
    table, *said = results.of_sweep(report, Path(), several_sizes=False)
    assert isinstance(table, results.TextTable)
    assert [table.header[-1], *(row[-1] for row in table.rows)] == ["pulls", "30 (2)", "20 (2)"]
    assert "numbers of pulls differ; means are of whole runs, but compared is regret at equal pulls" in said


def test_json_resume_and_status(coband: Program) -> None:
    status, output, errors = coband("sweep", "small.yaml", "--json")
    first = json.loads(output, parse_constant=pytest.fail)
    assert (status, errors) == (0, f"{SIZE}sweep directory: runs/small-0001\n")
    assert first == json.loads(Path("runs/small-0001/results.json").read_text())
    assert first["results"][0]["parameters"] == {"noise": "0.1", "alpha": "1"}
    assert json.loads(coband("sweep", "small.yaml", "--json", "--resume")[1]) == first
    assert "small has finished: 12 of 12 jobs" in coband("sweep", "--status", "runs/small-0001")[1]
    found = json.loads(coband("sweep", "--status", "runs/small-0001", "--json")[1])
    assert found["entries"]["K"]["kept"] == 12
    assert found["resume"] == "coband sweep small.yaml --resume --out runs/small-0001"


def test_going_on_otherwise_says_what_is_not_shown_any_more(coband: Program) -> None:
    file, again = Path("small.yaml"), ("sweep", "small.yaml", "--resume", "--out", "changed")
    said = "options or the code have changed since: what has finished and is no longer in it is kept in changed/done, "
    coband("sweep", "small.yaml", "--out", "changed", "--set", "schedule.turns=9")
    kept = set(Path("changed/done").rglob("*"))
    assert said in coband(*again)[2], "--set is forgotten"
    assert said not in coband(*again)[2]
    file.write_text(file.read_text().replace("alpha: [1, 4]", "alpha: [1, 4, 9]"))
    assert said not in coband(*again)[2], "points are added"
    assert said in coband(*again, "--replications", "2")[2]
    coband(*again)
    file.write_text(file.read_text().replace("seed: ", "seed: 1", 1))
    assert said in coband(*again)[2], "the scenario is another one"
    assert kept < set(Path("changed/done").rglob("*"))


def test_kept_traces_can_be_asked(coband: Program) -> None:
    coband("sweep", "small.yaml", "--trace", "protocol", "--out", "traced")
    chosen = ["--label", "K [noise=0.1, alpha=4]", "--replication", "2"]
    status, output, _ = coband("trace", "show", "traced", *chosen, "--event", "choose")
    assert status == 0
    assert len(output.splitlines()) == 2 + 40
    assert coband("trace", "why", "traced", "2", *chosen)[0] == 0
    assert "12 of 12" in coband("sweep", "--status", "traced")[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["small.yaml", "--out", "old"], "old holds results already; go on with --resume, or choose another"),
        (["small.yaml", "--resume", "--out", "full"], "full is not empty, and a run overwrites nothing."),
        (["small.yaml", "--resume"], "there is no runs/small-... to go on with; name the directory with --out"),
        (["--status", "full"], "full holds no run: there is no full/status.json."),
        ([], "give a scenario FILE, or --status DIR."),
        (["small.yaml", "--workers", "2", "--cluster", "tcp://x:1"], "give --workers or --cluster, not both."),
        (["nothing.yaml"], "nothing.yaml: there is no such file"),
        (["small.yaml", "--set", "problem.nois=1"], "--set problem.nois=1: problem.nois: unknown key; did you mean"),
    ],
)
def test_what_cannot_be_done_is_one_message(coband: Program, arguments: list[str], message: str) -> None:
    Path("full").mkdir()
    Path("full/file").touch()
    Path("old").mkdir()
    Path("old/lock").touch()
    status, output, errors = coband("sweep", *arguments)
    assert (status, output) == (2, "")
    assert message in errors
    assert not Path("runs").exists()


def test_validate_says_how_much_there_is_to_run(coband: Program) -> None:
    assert coband("validate", "small.yaml")[1] == (
        "small.yaml: ok (20 turns × 2 agents × 4 variants of 1 algorithm at 4 points × 3 replications = 480 pulls)\n"
    )
    Path("small.yaml").write_text(GRID + "tuning: {}\nuntil: {half_width: 1, max_replications: 9}\n")
    assert coband("validate", "small.yaml")[1] == (
        "small.yaml: ok (20 turns × 2 agents × 4 variants of 1 algorithm at 4 points × 5 replications = 800 pulls for "
        "tuning, then the best × 3 to 9 replications)\n"
    )


def test_some_algorithms_alone(coband: Program) -> None:
    more = GRID.replace(
        "grid:", "  - {algorithm: n_kernel_ucb, label: Other, kernel: {kind: gaussian, gamma: 1}}\ngrid:"
    )
    Path("small.yaml").write_text(more)
    whole = json.loads(coband("sweep", "small.yaml", "--json")[1])["results"]
    part = json.loads(coband("sweep", "small.yaml", "--json", "--only", "Other", "--out", "part")[1])["results"]
    assert [one["label"] for one in part] == [one["label"] for one in whole if one["label"].startswith("Other")]
    prints = {one["label"]: [record["fingerprint"] for record in one["replications"]] for one in whole}
    assert all(prints[one["label"]] == [record["fingerprint"] for record in one["replications"]] for one in part)
    status, _, errors = coband("sweep", "small.yaml", "--only", "Othre")
    assert (status, errors) == (2, "coband: no algorithm or label 'Othre' in this scenario; did you mean Other?\n")


def test_run_says_that_it_is_a_sweep(coband: Program) -> None:
    status, _, errors = coband("run", "small.yaml")
    assert status == 2
    assert "this scenario has 4 points: run them with `coband sweep small.yaml`" in errors


@pytest.mark.parametrize("command", ["run", "check"])
def test_run_and_check_do_not_pass_over_tuning(coband: Program, command: str) -> None:
    Path("small.yaml").write_text(GRID + "tuning: {replications: 2}\n")
    one = ["--set", "problem.noise=0.1", "--set", "algorithms.K.alpha=1"]
    status, _, errors = coband(command, "small.yaml", *one)
    assert status == 2
    assert "tuning: the best parameters are chosen among the points of a grid by `coband sweep small.yaml`" in errors


def test_run_goes_on_until_the_mean_is_known(coband: Program) -> None:
    Path("small.yaml").write_text(PLAIN + "until: {half_width: 1.5, max_replications: 30}\n")
    status, output, errors = coband("sweep", "small.yaml", "--json")
    assert (status, output) == (2, "")
    assert "small.yaml has neither grid: nor zip:, so there is one point: `coband run small.yaml` runs it" in errors
    _, output, _ = coband("sweep", "small.yaml", "--json", "--set", "grid={agents.compute: [0]}")
    swept = json.loads(output)["results"][0]
    run = json.loads(coband("run", "small.yaml", "--json", "--workers", "1")[1])["results"][0]
    assert 3 < len(run["replications"]) == len(swept["replications"])
    assert run["ci95"]["regret"] == swept["ci95"]["regret"]


def test_a_status_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    status = Status("s", state="killed", resume="coband sweep x --resume", process=7, host="h", started="now")
    status.workers, status.elapsed = "2 processes", 10.0
    status.entries = {"A": EntryStatus(10, 6, 1, 2, 8.0), "B": EntryStatus(4)}
    status.failures = [{"label": "A", "replication": 3, "kind": "failed", "error": "x\ny\n", "replay": "coband run"}]
    assert status.rate == 0.5
    assert status.seconds_left == pytest.approx((3 * 2 + 4 * 2) * 10 / 8)
    status.under_way = 1.5
    assert status.seconds_left == pytest.approx((3 * 2 + 4 * 2 - 1.5 * 2) * 10 / (8 + 1.5 * 2))
    status.under_way = 0.0
    progress.show_status(status)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "s was killed, or had no room to write how it ended: at least 7 of 14 jobs, 0.5/s, 1 failed"
    expected = ["A, replication 3, failed: y", "  to see it again: coband run", "to go on: coband sweep x --resume"]
    assert lines[-3:] == expected


def test_bars_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with progress.Bar("study") as view:
        view.changed(Status("study", elapsed=4.0, entries={"Async": EntryStatus(10, 4, 1, 0, 4.0)}))
    shown = capsys.readouterr().err
    assert "study" in shown
    assert "50%" in shown


@pytest.mark.parametrize(
    ("seconds", "text"), [(3.2, "3 s"), (61, "1 min 1 s"), (3700, "1 h 1 min"), (90_000, "1 d 1 h")]
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_sweep_that_was_killed_shows_what_is_finished(coband: Program) -> None:
    """Its driver had no time for results.json."""
    coband("sweep", "small.yaml", "--out", "run", "--quiet")
    whole = json.loads(coband("show", "run", "--json")[1])
    Path("run/results.json").unlink()
    status, output, _ = coband("show", "run")
    assert (status, len(output.splitlines())) == (0, 7)
    assert json.loads(coband("show", "run", "--json")[1])["results"] == whole["results"]
