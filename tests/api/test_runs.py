"""Runs from Python: the same as on the command line, and everything that can be read from them."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import coband
from coband.simulator.cli.main import main
from coband.simulator.experiments.runs.status import Status
from coband.simulator.experiments.scenario.overrides import to_yaml
from coband.simulator.terminal import progress
from tests.api.conftest import STUDY

ROOT = Path(__file__).parents[2]


def command(*words: object) -> None:
    with pytest.raises(SystemExit) as ended:
        main(list(map(str, words)))
    assert ended.value.code == 0


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def same(one: coband.Run, other: coband.Run) -> bool:
    """Whether two runs have equal results but for the time that they took."""
    return all(
        left.drop(columns=["wall_seconds", "cpu_seconds"], errors="ignore").equals(
            right.drop(columns=["wall_seconds", "cpu_seconds"], errors="ignore")
        )
        for left, right in ((one.results, other.results), (one.details, other.details))
    )


def test_a_run_is_that_of_the_command_line(done: coband.Run, tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(to_yaml(STUDY))
    command("run", tmp_path / "study.yaml", "--workers", 1, "--out", tmp_path / "other")
    other = coband.load(tmp_path / "other")
    assert len(done.results) == 4
    assert same(done, other)
    assert files(done.path) == files(other.path)
    assert (done.path / "scenario.yaml").read_text() == (other.path / "scenario.yaml").read_text()
    assert done.manifest["command"] == ["coband", "run", str(done.path / "scenario.yaml")]
    assert done.scenario.labels == ["Async", "Alone"]


def test_a_sweep_is_that_of_the_command_line(tmp_path: Path) -> None:
    scenario = coband.Scenario.from_dict(STUDY).with_(grid={"algorithms.Async.threshold": [0.1, 0.9]}, replications=1)
    sweep = coband.sweep(scenario, workers=1, out=tmp_path / "one")
    scenario.to_yaml(tmp_path / "study.yaml")
    command("sweep", tmp_path / "study.yaml", "--workers", 1, "--out", tmp_path / "other")
    other = coband.load(tmp_path / "other")
    assert isinstance(other, coband.Sweep)
    assert same(sweep, other)
    assert list(sweep.parameters) == ["entry", "phase", "environment", "threshold"]
    asynchronous = sweep.results.query("entry == 'Async'")
    assert asynchronous["threshold"].tolist() == [0.1, 0.9]
    regret = sweep.summary.xs("regret", level="measure").join(sweep.parameters).query("threshold == 0.1")
    assert regret[["mean", "n"]].to_numpy().tolist() == [[asynchronous["regret"].iloc[0], 1]]
    with pytest.raises(coband.RunError, match="nothing was tuned"):
        assert sweep.best
    with pytest.raises(coband.RunError, match=r"holds results already; go on with resume=True, or .* out=DIR"):
        coband.sweep(scenario, workers=1, out=tmp_path / "one")
    again = coband.sweep(scenario, workers=1, out=tmp_path / "one", resume=True)
    assert same(sweep, again)


def test_the_best_parameters(tmp_path: Path) -> None:
    grid = {"algorithms.Async.threshold": [0.1, 1.0]}
    tuned = {**STUDY, "trace": "off", "grid": grid, "tuning": {"on": "regret", "replications": 1}}
    sweep = coband.sweep(tuned, workers=1, replications=2, out=tmp_path / "tuned")
    line = sweep.best.set_index("entry").loc["Async"]
    assert line["threshold"] in ("0.1", "1.0")
    assert (line["candidates"], line["on"], line["tuning_n"], line["fresh_n"]) == (2, "regret", 1, 2)
    assert set(sweep.results["phase"]) == {"fresh", "tuning"}


def test_new_runs_go_where_the_command_line_puts_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(coband.RunError, match="there is no run below runs, so there is no latest one"):
        coband.load("latest")
    small = coband.Scenario.from_dict(STUDY).with_(replications=1, trace="off")
    made = [coband.run(small, workers=1, only="Alone") for _ in range(2)]
    assert [run.path for run in made] == [Path("runs/study-0001"), Path("runs/study-0002")]
    assert coband.runs()["path"].tolist() == ["runs/study-0002", "runs/study-0001"]
    assert [coband.load("latest").path, coband.Run("latest").path] == [made[1].path] * 2
    assert made[0].compare("latest").equals(made[0].compare(made[1]))
    assert coband.runs()[["kind", "status", "labels"]].to_numpy().tolist() == [["run", "finished", 1]] * 2
    assert len(coband.runs("nowhere")) == 0
    with pytest.raises(coband.RunError, match="is not empty, and a run overwrites nothing"):
        coband.run(small, workers=1, out=made[0].path)
    with pytest.raises(coband.RunError, match="is not a run: there is no"):
        coband.load("nowhere")


def test_the_tables_of_a_run(done: coband.Run) -> None:
    entry = json.loads((done.path / "results.json").read_text())["results"][0]
    first = entry["replications"][0]
    measures = ["regret", "scalars", "messages", "rounds", "simulated_time"]
    job = ["label", "replication"]
    assert list(done.results) == [*job, "algorithm", "turns", *measures, "wall_seconds", "fingerprint"]
    assert {**done.results.iloc[0], **done.details.iloc[0]}.items() >= {
        name: first[name] for name in (*measures, "fingerprint", "uplink_scalars", "seed")
    }.items()
    assert not set(done.results) & set(done.details) - set(job)
    expected = [entry["mean"]["regret"], *entry["ci95"]["regret"], 2]
    assert done.summary.loc["Async", "regret"].tolist() == expected
    assert done.summary.loc["Async"].index.tolist() == measures
    uplink = done.estimates("uplink_scalars", "turns")
    assert uplink.loc["Async", "mean"].to_dict() == {"uplink_scalars": entry["mean"]["uplink_scalars"], "turns": 18}
    with pytest.raises(coband.RunError, match=r"no number 'uplink' was reported; there is .*, uplink_scalars,"):
        done.estimates("uplink")
    mine = "label == 'Async' and replication == 0"
    assert done.series.query(mine)[["turn", "regret"]].iloc[-1].tolist() == [18, first["regret"]]
    for table in (done.ledger, done.fields):
        assert table.query(mine)["scalars"].sum() == first["scalars"] > 0
    assert done.agents.query("label == 'Async' and replication == 1")["turns"].tolist() == [6, 6, 6]
    assert (len(done.failures), list(done.failures)) == (0, [*job, "kind", "error"])


def test_events_and_their_causes(done: coband.Run) -> None:
    delivered = done.events("label = ? AND replication = 0 AND event = 'deliver' AND node = 'server'", "Async")
    assert set(delivered["node"]) == {"server"}
    assert str(delivered["cause"].dtype) == "Int64"
    counted = done.sql("SELECT count(*) AS n FROM trace WHERE event = 'deliver' AND node = 'server'")
    assert counted["n"].tolist() == [len(done.events("event = 'deliver' AND node = 'server'"))]
    causes = done.why(delivered.iloc[0])
    assert causes.events["event"].iloc[-1] == "turn"
    assert causes.sentence.startswith(f"event {delivered['seq'][0]} goes back to turn")
    assert causes.sentence in repr(causes)
    event = delivered["seq"][0]
    assert done.why(event, label="Async", replication=0).events.equals(causes.events)
    with pytest.raises(coband.RunError, match=r"choose label= \(Async, Alone\) and replication= \(0, 1\)"):
        done.why(3)
    with pytest.raises(coband.RunError, match="only reading is allowed"):
        done.sql("DELETE FROM jobs")
    with pytest.raises(coband.RunError, match=r"the condition 'evnt = 3' is wrong: no such column: evnt; columns are"):
        done.events("evnt = 3")


def test_a_run_without_a_trace_says_so(tmp_path: Path) -> None:
    run = coband.run(STUDY, workers=1, replications=1, trace="off", out=tmp_path / "run")
    with pytest.raises(coband.RunError, match=r"kept no trace .* Run the scenario again with trace= protocol"):
        run.events()


def test_a_comparison_is_that_of_the_command_line(done: coband.Run, capsys: pytest.CaptureFixture[str]) -> None:
    command("compare", done.path, "--json")
    expected = json.loads(capsys.readouterr().out)
    for one in expected["differences"]:
        found = done.compare(measure=one["measure"], intervals="all").loc["Async", "Alone"].to_dict()
        kept = ("mean", "n", "relative", "paired", "verdict")
        assert {key: found[key] for key in kept if not pd.isna(found[key])} == {
            key: one[key] for key in kept if one[key] is not None
        }
        assert [found["low"], found["high"]] == one["ci95_t"]
    words = done.words()
    assert words["sentence"].to_dict() == {one["measure"]: one["sentence"] for one in expected["rankings"]}
    assert list(done.compare(against="Alone").index) == [("Async", "Alone")]
    with pytest.raises(coband.RunError, match="there is no label 'Nobody'"):
        done.compare(against="Nobody")
    with pytest.raises(coband.RunError, match="labels cannot be compared by 'regrets', only by regret, scalars,"):
        done.compare(measure="regrets")


def test_labels_that_differ_in_pulls_are_compared_at_equal_pulls(tmp_path: Path) -> None:
    waiting = {**STUDY["algorithms"][0], "algorithm": "approx_dis_kernel_ucb", "label": "Sync"}
    slow = {"schedule": {"kind": "renewal", "think": 1, "duration": 15}, "network": {"latency": 2}, "trace": "off"}
    study = {**STUDY, **slow, "algorithms": [waiting, STUDY["algorithms"][1]]}
    run = coband.run(study, workers=1, out=tmp_path / "run")
    fewest = run.results.groupby("replication")["turns"].min().mean()
    regret, turns = (run.compare(measure=name).loc["Sync", "Alone"] for name in ("regret", "turns"))
    assert regret["at_pulls"] == fewest < run.results["turns"].mean()
    assert pd.isna(turns["at_pulls"])
    assert list(run.summary.loc["Sync"].index[:2]) == ["regret", "turns"]
    assert turns["better"] in turns["verdict"] == "Alone higher over the whole run"
    assert run.words().loc["regret", "sentence"].endswith(f"at equal pulls ({fewest:.0f} on average).")


def test_figures(done: coband.Run) -> None:
    from matplotlib import pyplot

    titles = {x: done.plot.regret(x=x).axes[0].get_xlabel() for x in ("turns", "time", "scalars")}
    assert titles == {"turns": "turns", "time": "simulated time", "scalars": "scalars sent"}
    _, axis = pyplot.subplots()
    assert done.plot.regret(ax=axis, x="turns", label="Alone") is axis
    assert [text.get_text() for text in axis.get_legend().get_texts()] == ["Alone"]
    ends = [float(line.get_ydata()[-1]) for line in axis.lines if len(line.get_ydata())]
    assert ends == pytest.approx([done.summary.loc["Alone", "regret"]["mean"]])
    with pytest.raises(coband.RunError, match="nothing to draw for progress"):
        done.plot.progress()  # all are equally fast
    assert done.plot.regret()._repr_png_().startswith(b"\x89PNG")
    assert len(done.plot.results().axes) > 1
    assert set(done.plot.frame("regret", x="time").columns) == {"x", "label", "at", "mean", "low", "high", "n"}
    wrong = {
        "there is no row with x=nothing; its values are turns": lambda: done.plot.regret(x="nothing"),
        "there is no row with label=X; its values are": lambda: done.plot.regret(label="X"),
        "there is no panel 'x'; the panels are results": lambda: done.plot.frame("x"),
        "regret has 3 drawings, and axes have room for one; choose by x": lambda: done.plot.regret(ax=axis),
    }
    for said, attempt in wrong.items():
        with pytest.raises(coband.RunError, match=said):
            attempt()
    with pytest.raises(AttributeError, match="there is no panel 'foo'; the panels are results, sensitivity"):
        done.plot.foo  # noqa: B018
    pyplot.close("all")


def test_the_report_is_that_of_the_command_line(done: coband.Run, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("mine")
    with pytest.raises(coband.RunError, match=r"out=, or replace it with force=True\."):
        done.report(out=tmp_path / "a.html")
    file = done.report(out=tmp_path / "a.html", force=True)
    command("report", done.path, "--out", tmp_path / "b.html")
    assert file.read_bytes() == (tmp_path / "b.html").read_bytes()


def test_other_runs_may_be_given_as_directories(done: coband.Run, tmp_path: Path) -> None:
    copy = shutil.copytree(done.path, tmp_path / "copy")
    found = done.compare(copy)
    assert found.equals(done.compare(str(copy)))
    assert found.equals(done.compare(coband.load(copy)))
    with pytest.raises(coband.RunError, match="is not a run"):
        done.compare(tmp_path / "nothing")


def test_a_run_is_shown_as_the_command_line_shows_it(done: coband.Run, capsys: pytest.CaptureFixture[str]) -> None:
    command("show", done.path)
    assert f"{done!r}\n" == capsys.readouterr().out
    page = done._repr_html_()
    assert page.startswith("<table")
    assert page.endswith(f"<p>run directory: {done.path}</p>")


def test_bad_requests(tmp_path: Path) -> None:
    said = "no algorithm or label 'Asynk' in this scenario; did you mean Async"
    with pytest.raises(coband.ScenarioError, match=said):
        coband.run(STUDY, only="Asynk")
    with pytest.raises(coband.ScenarioError, match=r"run them with coband\.sweep"):
        coband.run({**STUDY, "grid": {"agents.count": [2, 3]}})
    for workers in (0, 1.5, float("nan"), "2"):
        with pytest.raises(coband.RunError, match=rf"workers={workers!r}: at least one is needed, a whole number\."):
            coband.run(STUDY, workers=workers)  # type: ignore[arg-type]
    said = r"callbacks: <built-in function print> is not a coband\.Callback; derive a class"
    with pytest.raises(TypeError, match=said):
        coband.run(STUDY, callbacks=[print], out=tmp_path / "none")  # type: ignore[list-item]
    assert not (tmp_path / "none").exists()
    said = "'n_kernel_ucbb' is not a known algorithm; did you mean n_kernel_ucb"
    with pytest.raises(coband.ScenarioError, match=said):
        coband.run(STUDY, algorithms="n_kernel_ucbb")
    with pytest.raises(TypeError, match=r"a scenario is a file, a name, .*, not list$"):
        coband.run([STUDY])  # type: ignore[arg-type]
    with pytest.raises(coband.RunError, match="workers= or cluster=, not both"):
        coband.sweep(STUDY, workers=2, cluster="tcp://nowhere:1")
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_keeps_what_is_finished_and_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(self: Any, status: Status) -> None:
        if status.state == "running" and status.ended == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(progress.Bar, "changed", interrupt)
    monkeypatch.setattr("coband.simulator.experiments.runs.driver.LOOK_SECONDS", 0.0)
    with pytest.raises(KeyboardInterrupt, match=r"1 finished jobs are kept in .*; coband.load\('.*run'\) reads them"):
        coband.run(STUDY, workers=1, out=tmp_path / "run")
    run = coband.load(tmp_path / "run")
    assert (run.status, len(run.results)) == ("interrupted", 1)


def test_jobs_that_break_off_are_in_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from coband.agents.alone.n_kernel_ucb import NKernelUCB

    def break_off(self: Any, *given: Any) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(NKernelUCB, "choose", break_off)
    with pytest.warns(coband.RunWarning, match="2 of 4 jobs broke off"):
        run = coband.run(STUDY, workers=1, out=tmp_path / "run", progress=False)
    assert (run.status, len(run.results)) == ("failed", 2)
    assert run.failures[["label", "kind"]].drop_duplicates().to_numpy().tolist() == [["Alone", "failed"]]
    assert "ZeroDivisionError: a bug" in run.failures["error"][0]


SCRIPT = """
import numpy  # before coband, so that its BLAS is not the pinned one
import coband
run = coband.run("study.yaml", workers=2, out="run")
print(sorted(run.results["fingerprint"]))
sweep = coband.sweep("study.yaml", workers=2, out="sweep")
print(sorted(sweep.results["fingerprint"]))
"""


def test_a_script_needs_no_guard_and_no_order_of_imports(done: coband.Run, tmp_path: Path) -> None:
    """Worker processes are new ones, as on Windows, and do not import the script."""
    (tmp_path / "study.yaml").write_text(to_yaml(STUDY))
    (tmp_path / "script.py").write_text(SCRIPT)
    unpinned = {key: value for key, value in os.environ.items() if not key.startswith(("OPENBLAS_", "OMP_", "MKL_"))}
    command, environment = [sys.executable, "script.py"], {**unpinned, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    warned = [line for line in ended.stderr.splitlines() if " jobs" not in line]  # but for the progress of a slow run
    assert (ended.returncode, warned) == (0, [])
    assert ended.stdout.splitlines() == [str(sorted(done.results["fingerprint"]))] * 2
