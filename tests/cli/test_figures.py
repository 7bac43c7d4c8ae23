"""``coband figures`` on the small scenarios of one paper."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from coband.simulator.cli import figures as module
from coband.simulator.cli import workers as command
from coband.simulator.experiments.runs.workers import InProcess
from coband.simulator.experiments.scenario import shipped
from tests.cli.test_sweep import GRID, PLAIN, Coband


@pytest.fixture
def coband(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Coband:
    monkeypatch.chdir(tmp_path)
    texts = {"small/one": PLAIN, "small/grid": GRID, "small/one_quick": PLAIN}
    graph = "agents: {count: 2}\nnetwork: {topology: {kind: edge_list, file: none.csv}}"
    texts["small/absent"] = PLAIN.replace("agents: {count: 2}", graph)
    found = {}
    for name, text in texts.items():
        found[name] = tmp_path / f"{name.replace('/', '-')}.yaml"
        found[name].write_text(text)
    monkeypatch.setattr(shipped, "paths", lambda: found)
    monkeypatch.setattr(module, "PAPERS", ("small",))
    monkeypatch.setattr(command, "pool_of", lambda workers, cluster, options: InProcess())
    return Coband(capsys)


def test_what_is_behind_the_figures_runs_once(coband: Coband) -> None:
    status, listed, err = coband("figures", "--list")
    assert err == ""
    assert status == 0
    assert [line.split()[0] for line in listed.splitlines() if line.startswith("small/")] == ["small/one", "small/grid"]
    assert "left out: small/absent: " in listed
    assert not Path("runs").exists()

    status, out, err = coband("figures", "--format", "svg")
    assert status == 0
    assert "small/grid, 2 of 2" in err
    for name in ("one", "grid"):
        place = Path("runs/figures/small") / name
        assert (place / "report.html").exists()
        assert (place / "regret.svg").exists()
        assert str(place) in out
    results = json.loads(Path("runs/figures/small/grid/results.json").read_text())
    assert len(results["results"]) == 4
    finished = {file: file.stat().st_mtime_ns for file in Path("runs").rglob("done/**/*.json.gz")}
    assert len(finished) == 3 + 12

    assert coband("figures", "small/one", "--format", "svg")[0] == 0
    assert {file: file.stat().st_mtime_ns for file in Path("runs").rglob("done/**/*.json.gz")} == finished


def test_a_slip_is_told(coband: Coband) -> None:
    status, _, err = coband("figures", "small/on")
    assert status == 2
    assert "there is no paper or figure 'small/on'; did you mean small/one?" in err
