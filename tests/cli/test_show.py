"""``coband show``, and ``latest`` wherever a run is expected."""

import json
import re
import shutil
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest

from coband.simulator.analysis import frames
from coband.simulator.analysis.comparison import listing
from coband.simulator.cli.main import main
from coband.simulator.cli.show import TABLES
from coband.simulator.experiments.store.files import latest, runs_below
from coband.simulator.experiments.store.store import StoreError
from tests.analysis.traces import runs
from tests.cli.fake_cli import Program
from tests.experiments.runs.fake_runs import perform, results_of, started, wait_until

SWEEP = """
name: tiny
seed: 7
replications: 2
agents: {count: 3}
schedule: {kind: rounds, turns: 5}
problem: {kind: contextual, arms: {kind: ball, dimension: 3, count: 8}, reward: {kind: cosine}, noise: 0.1}
algorithms:
  - {algorithm: async_kernel_ucb, label: Async, kernel: {kind: gaussian, gamma: 1.0}, alpha: 0.1, threshold: 0.5}
grid: {agents.count: [3, 4], "algorithms.Async.threshold": [0.5, 2.0]}
"""
TUNING = SWEEP.replace("grid:", "tuning: {on: regret, replications: 2}\ngrid:")


def test_a_run_is_shown_as_at_its_end(coband: Program) -> None:
    _, printed, _ = coband("run", "x.yaml", "--workers", 1)
    assert coband("show", "runs/fake-0001") == (0, printed, "")
    assert coband("show", "latest") == (0, printed, "")


def test_json_is_what_results_json_holds(coband: Program) -> None:
    coband("run", "x.yaml", "--workers", 1)
    status, output, errors = coband("show", "latest", "--json")
    assert (status, errors) == (0, "")
    assert json.loads(output) == json.loads(Path("runs/fake-0001/results.json").read_text())


def test_tables_for_papers_and_spreadsheets(coband: Program) -> None:
    _, printed, _ = coband("run", "x.yaml", "--workers", 1)
    header, first = (re.split(r"  +", line) for line in printed.splitlines()[:2])
    _, latex, _ = coband("show", "latest", "--format", "latex")
    assert f"{' & '.join(first)} \\\\\n" in latex
    status, markdown, errors = coband("show", "latest", "--format", "markdown")
    assert (status, errors) == (0, "")
    assert [line.strip("| ").split(" | ") for line in markdown.splitlines()[:3:2]] == [header, first]
    assert coband("show", "latest", "--format", "csv")[1].splitlines()[0] == ",".join(header)
    chosen = coband("show", "latest", "--columns", f"{header[1]},{header[0]}")[1].splitlines()
    assert chosen[:3] == [f"| {header[1]} | {header[0]} |", "| ---: | --- |", f"| {first[1]} | {first[0]} |"]
    assert coband("show", "latest", "--columns", "x")[2].startswith(
        f"coband: the table has no column 'x'; it has {header[0]}"
    )
    for name in TABLES.split(", "):
        status, output, errors = coband("show", "latest", "--table", name, "--format", "csv")
        assert (status, errors) == (0, "")
        found = pd.read_csv(StringIO(output))
        assert found.columns[0] in ("label", "first", "measure")
        assert len(found) > 0 or name in ("parameters", "failures", "fields")
    assert TABLES.split(", ") == list(listing.TABLES)
    assert coband("show", "latest", "--table", "words")[1].startswith("| measure | best | sentence |\n| --- |")
    assert coband("show", "latest", "--json", "--format", "csv")[2].startswith("coband: give either --json, or")


@pytest.mark.parametrize("text", ["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(1)", "\t=1", "\r=1", "\n=1"])
def test_csv_has_no_formulas(text: str) -> None:
    """A spreadsheet would execute a text that begins so; numbers stay numbers, also where they are texts."""
    written = frames.written(pd.DataFrame({"label": [text, "a=b"], "value": ["-2.5e-05", -1.5]}), "csv")
    assert [list(row) for row in pd.read_csv(StringIO(written), dtype=str, lineterminator="\n").to_numpy()] == [
        [f"'{text}", "-2.5e-05"],
        ["a=b", "-1.5"],
    ]


def test_texts_that_a_format_would_take_for_its_own() -> None:
    found = pd.DataFrame({"label": ["=A1|_", None], "number": [0.123456789, float("nan")]})
    assert frames.written(found, "csv") == "label,number\n'=A1|_,0.123456789\n,\n"
    assert frames.written(found, "markdown").splitlines()[2:] == ["| =A1\\|_ | 0.123457 |", "|  |  |"]
    assert "=A1|\\_ & 0.123457 \\\\\n &  \\\\\n" in frames.written(found, "latex")


@pytest.mark.parametrize("text", [SWEEP, TUNING])
def test_a_sweep_is_shown_as_at_its_end(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tiny.yaml").write_text(text)
    for command in (["sweep", "tiny.yaml", "--workers", "1"], ["show", "latest"]):
        with pytest.raises(SystemExit) as ended:
            main(command)
        assert ended.value.code == 0
    printed, again = capsys.readouterr().out.split("sweep directory: runs/tiny-0001\n")[:2]
    assert printed
    assert printed == again


def test_a_run_that_goes_on_is_shown_as_far_as_it_is(coband: Program, tmp_path: Path) -> None:
    out = tmp_path / "runs" / "on"
    with started(out, workers=1, mischief=((1, "endless"),), turns=5000, count=1, labels=("Often",)) as process:
        wait_until(lambda: results_of(out) == 1 and any(out.glob("jobs/*-00001.sqlite")), process)
        status, output, errors = coband("show", "latest")
    assert status == 0
    assert output.splitlines()[1].startswith("Often  1")
    assert errors.startswith("running, or killed: 1 of ")


def test_the_latest_run_is_that_which_was_started_last(tmp_path: Path) -> None:
    for name in ("b", "a", "deep/er/c"):
        perform(tmp_path / "runs" / name, replications=1, turns=2)
    found = [str(one.relative_to(tmp_path)) for one in runs_below(tmp_path)]
    assert found == ["runs/a", "runs/b", "runs/deep/er/c"]
    assert latest(tmp_path) == tmp_path / "runs/deep/er/c"
    shutil.rmtree(tmp_path / "runs/deep")
    assert latest(tmp_path) == tmp_path / "runs/a"
    said = r"there is no run below .*nowhere, so there is no latest one\. Run a scenario"
    with pytest.raises(StoreError, match=said):
        latest(tmp_path / "nowhere")


def test_a_directory_that_is_called_latest_has_precedence(coband: Program, tmp_path: Path) -> None:
    perform(tmp_path / "runs/new", replications=1, turns=2)
    perform(tmp_path / "latest", replications=2, turns=2)
    assert coband("show", "latest")[1].endswith("run directory: latest\n")


@pytest.mark.parametrize(
    "words",
    [
        ["trace", "stats", "latest"],
        ["trace", "show", "latest", "--limit", "1"],
        ["trace", "waits", "latest"],
        ["trace", "diff", "latest", "latest"],
        ["compare", "latest"],
        ["show", "latest", "--bibtex"],
    ],
)
def test_latest_everywhere(words: list[str], coband: Program, tmp_path: Path) -> None:
    perform(tmp_path / "runs/new", replications=1, turns=2)
    named = coband(*(word.replace("latest", "runs/new") for word in words))
    assert named[0] == 0
    assert coband(*words) == named


def test_there_is_no_latest_run(coband: Program) -> None:
    status, output, errors = coband("show", "latest")
    assert (status, output) == (2, "")
    assert errors == (
        "coband: there is no run below runs, so there is no latest one. Run a scenario, or give its path.\n"
    )


def test_a_run_prints_each_entry_once(coband: Program, tmp_path: Path) -> None:
    runs.perform(runs.STAR, tmp_path / "run", "schedule.turns=2", only=("Async", "One", "Sync"))
    code, printed, _ = coband("show", str(tmp_path / "run"), "--bibtex")
    assert code == 0
    for key in ("inproceedings{li2023asynchronous,", "inproceedings{li2022communication,", "software{coband,"):
        assert printed.count(f"@{key}") == 1
    assert "dubey2020kernel" not in printed
