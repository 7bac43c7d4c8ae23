"""A stored run again: the same fingerprints without changes, paired differences with them."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import coband
from coband.simulator.cli.main import exit_status
from coband.simulator.experiments.statistics.estimates import paired_difference

SCENARIO = """
name: small
seed: 3
replications: 3
agents: {count: 3, compute: {kind: exponential, rate: 2}}
schedule: {kind: rounds, turns: 6}
network: {latency: {kind: exponential, rate: 2}, loss: 0.2}
problem: {kind: contextual, arms: {kind: ball, dimension: 2, count: 4}, reward: {kind: cosine}}
algorithms:
  - {algorithm: async_lin_ucb, label: Async, gamma_u: 1.5, gamma_d: 1.5}
  - {algorithm: lin_ucb, label: Alone}
"""


@pytest.fixture
def first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("small.yaml").write_text(SCENARIO)
    assert exit_status(["run", "small.yaml", "--workers", "1", "--out", "runs/first"]) == 0
    return Path("runs/first")


def again(*words: str) -> int:
    return exit_status(["run", *words, "--workers", "1"])


def regrets(run: Path, label: str) -> list[float]:
    (entry,) = (one for one in json.loads((run / "results.json").read_text())["results"] if one["label"] == label)
    return [record["regret"] for record in entry["replications"]]


@pytest.mark.parametrize("name", ["runs/first", "latest"])
def test_without_changes_fingerprints_are_the_same(name: str, first: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert again(name) == 0
    *_, said = capsys.readouterr().out.splitlines()
    assert said == f"all 6 fingerprints are those of {first}"
    assert regrets(Path("runs/small-0001"), "Async") == regrets(first, "Async")


def test_a_change_is_shown_by_paired_differences(first: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert again("runs/first", "--set", "network.loss=0", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["against"] == str(first)
    assert {one.partition(",")[0] for one in found["other_fingerprints"]} == {"Async"}
    differences = {(one["label"], one["measure"]): one for one in found["differences"]}
    one = differences["Async", "regret"]
    expected = paired_difference(regrets(Path("runs/small-0001"), "Async"), regrets(first, "Async"))
    assert (one["mean"], one["paired"], one["n"]) == (pytest.approx(expected.mean), True, 3)
    assert one["ci95_t"] == pytest.approx(expected.interval)
    assert differences["Alone", "regret"]["mean"] == 0.0
    assert {"scalars", "messages", "simulated_time"} <= {measure for label, measure in differences if label == "Async"}

    assert again("runs/first", "--set", "network.loss=0") == 0
    shown = capsys.readouterr().out
    assert "first and small-0002 also differ in network.loss." in shown
    assert "fingerprints" not in shown
    rows = [line.split() for line in shown.splitlines() if line.startswith("Async")]
    assert any(row[1] == "messages" and row[-2:] == ["3", "pairs"] for row in rows)
    assert shown.splitlines()[-1].startswith("before: runs/first; difference: ")


def test_another_seed_is_another_world(first: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert again("runs/first", "--seed", "9") == 0
    shown = capsys.readouterr().out
    assert "met different worlds (they differ in seed)" in shown
    assert "3, unpaired" in shown


def test_a_part_of_a_scenario_is_run_again_as_that_part(first: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert again("small.yaml", "--only", "Alone", "--replication", "2", "--out", "part") == 0
    capsys.readouterr()
    assert again("part") == 0
    assert "all 1 fingerprints are those of part" in capsys.readouterr().out
    assert len(regrets(Path("runs/small-0001"), "Alone")) == 1
    assert again("part", "--replications", "2", "--only", "Async") == 0
    shown = capsys.readouterr().out
    new = "Async, replication 0; Async, replication 1"
    assert f"2 jobs that part does not have, or has not finished, were not compared: {new}" in shown
    assert "fingerprints are those" not in shown
    assert len(regrets(Path("runs/small-0002"), "Async")) == 2


def test_other_fingerprints_are_named(first: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with closing(sqlite3.connect(first / "run.sqlite")) as connection, connection:
        connection.execute("UPDATE jobs SET result = json_set(result, '$.fingerprint', 'x') WHERE replication = 1")
    assert again("runs/first") == 1
    shown = capsys.readouterr().out
    assert "2 of 6 fingerprints are not those of runs/first: Async, replication 1; Alone, replication 1" in shown


def test_what_is_no_run_is_a_scenario_or_refused(first: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    Path("empty").mkdir()
    assert again("empty") == 2
    assert (
        "is a directory without a run.sqlite; give a scenario file, or the directory of a run"
        in capsys.readouterr().err
    )
    assert again("runs/first/run.sqlite") == 2
    assert "run.sqlite: is the store of a run; give its directory" in capsys.readouterr().err
    assert exit_status(["sweep", "small.yaml", "--set", "grid={agents.count: [2, 3]}", "--out", "s"]) == 0
    capsys.readouterr()
    assert again("s") == 2
    assert capsys.readouterr().err == "coband: s is a sweep; `coband sweep s/scenario.yaml` runs it again.\n"
    with closing(sqlite3.connect("s/run.sqlite")) as store, store:
        store.execute(
            "UPDATE meta SET value = json_set(json_remove(value, '$.points'), '$.objectives', 1) WHERE key = 'manifest'"
        )
    assert again("s") == 2
    assert "s is the search of a frontier; it was made by `" in capsys.readouterr().err
    shutil.rmtree("runs")
    shutil.rmtree("s")
    assert again("latest") == 2
    assert "there is no run below runs" in capsys.readouterr().err


def test_from_python(first: Path) -> None:
    run = coband.load(first)
    options: dict[str, Any] = {"workers": 1, "progress": False}
    for given in (run, str(first), first):
        assert coband.run(given, **options).results["fingerprint"].tolist() == run.results["fingerprint"].tolist()
    changed = coband.run(run, set={"network.loss": 0}, **options)
    with pytest.warns(coband.RunWarning, match=r"also differ in network\.loss"):
        found = changed.compare(run)
    assert set(found.query("paired")["n"]) == {3}
    shutil.rmtree("runs")
    with pytest.raises(coband.RunError, match="there is no run below runs"):
        coband.run("latest", **options)
