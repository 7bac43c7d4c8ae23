"""Scenario files as runs: what their sections for sweeps mean there."""

from pathlib import Path

import pytest

from coband.simulator.experiments.runs.study import SelectionError, load_run
from coband.simulator.experiments.scenario.loading import loads
from coband.simulator.scenario_errors import ScenarioError

TEXT = """\
name: small
replications: 2
agents: {count: 2}
schedule: {kind: rounds, turns: 3}
problem: {kind: contextual, arms: {kind: ball, dimension: 2, count: 3}, reward: {kind: cosine}}
algorithms:
  - {algorithm: kernel_ucb, label: K}
"""
TUNED = TEXT + "grid: {algorithms.K.alpha: [1, 4]}\ntuning: {replications: 3}\n"
ONE_POINT = "algorithms.K.alpha=4"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "small.yaml"


def test_until_is_part_of_a_run(file: Path) -> None:
    file.write_text(TEXT + "until: {half_width: 1, max_replications: 9}\n")
    study = load_run(file)
    assert study.until is not None
    assert (study.numbers, list(study.possible_replications)) == ((0, 1), list(range(9)))
    loads(study.text)
    again = file.with_name("again.yaml")
    again.write_text(study.text)
    assert load_run(again).until == study.until
    assert load_run(file, ["until=null"]).until is None
    assert load_run(file, replications=[4]).until is None


def test_a_replication_that_there_is_not(file: Path) -> None:
    file.write_text(TEXT)
    with pytest.raises(SelectionError) as caught:
        load_run(file, replications=[0, 99])
    assert str(caught.value) == (
        "there is no replication 99: the scenario has 2 replications, counted from 0; with --replications 100 it has "
        "this one too."
    )
    assert load_run(file, ["replications=100"], replications=[99]).numbers == (99,)


def test_a_grid_is_a_sweep(file: Path) -> None:
    file.write_text(TUNED)
    with pytest.raises(ScenarioError) as caught:
        load_run(file)
    assert str(caught.value) == (
        f"{file}:8:8: grid: this scenario has 2 points: run them with `coband sweep {file}`, or one of them with "
        "--set algorithms.K.alpha=1 --set tuning=null"
    )


def test_one_point_of_a_tuned_grid_is_refused_but_for_single_jobs(file: Path) -> None:
    file.write_text(TUNED)
    with pytest.raises(ScenarioError) as caught:
        load_run(file, [ONE_POINT])
    assert str(caught.value) == (
        f"{file}:9:1: tuning: the best parameters are chosen among the points of a grid by `coband sweep {file}`; this "
        "is one of them: to run it alone, add --set tuning=null"
    )
    assert load_run(file, [ONE_POINT, "tuning=null"]).numbers == (0, 1)
    assert load_run(file, [ONE_POINT], replications=[1_000_001]).numbers == (1_000_001,)
