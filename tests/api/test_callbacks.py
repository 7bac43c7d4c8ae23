"""Callbacks, pulls and exporters, from Python."""

from pathlib import Path
from typing import Any

import pytest

import coband
from tests.api.conftest import STUDY


class Heard(coband.Callback):
    """Remembers, and stops after some jobs."""

    def __init__(self, after: int) -> None:
        self.after = after
        self.jobs: list[tuple[str, int]] = []
        self.points: list[tuple[str, float]] = []

    def on_job_end(self, job: coband.EndedJob) -> None:
        self.jobs.append((job.label, job.replication))
        assert job.record is not None
        if job.done == self.after:
            job.stop("enough")

    def on_point_end(self, point: coband.EndedPoint) -> None:
        self.points.append((point.label, point.mean("regret")))
        with pytest.raises(KeyError, match=r"no number 'regre'; there is seed, replication, turns, regret, reward,"):
            point.mean("regre")


def test_callbacks_hear_of_jobs_and_points_and_may_stop(tmp_path: Path) -> None:
    study = {**STUDY, "replications": 2}
    heard = Heard(99)
    whole = coband.run(study, workers=1, out=tmp_path / "whole", callbacks=[heard])
    assert heard.jobs == [("Async", 0), ("Alone", 0), ("Async", 1), ("Alone", 1)]
    assert heard.points == list(whole.summary["mean"].xs("regret", level="measure").items())
    with pytest.warns(coband.RunWarning, match="stopped by a callback: enough.*: 3 finished jobs are kept"):
        part = coband.run(study, workers=1, out=tmp_path / "part", callbacks=[Heard(3)])
    assert (part.status, len(part.results)) == ("stopped", 3)


def test_pulls_are_those_of_the_run_with_and_without_a_trace(tmp_path: Path) -> None:
    study = {**STUDY, "replications": 2}
    runs = {level: coband.run(study, trace=level, workers=1, out=tmp_path / level) for level in ("off", "protocol")}
    tables = {level: run.pulls for level, run in runs.items()}
    pulls = tables["off"]
    assert pulls.equals(tables["protocol"])
    assert list(pulls) == ["label", "replication", "agent", "turn", "time", "arm", "pulls", "reward", "regret"]
    job = ["label", "replication"]
    told = runs["off"].results.merge(runs["off"].details).set_index(job)
    sums = pulls.groupby(job).agg({"pulls": "sum", "regret": "sum", "reward": "sum"}).loc[told.index]
    assert sums.to_numpy() == pytest.approx(told[["turns", "regret", "reward"]].to_numpy())
    chosen = runs["protocol"].events("label = 'Async' AND replication = 1 AND event = 'choose'")["value"]
    assert pulls.query("label == 'Async' and replication == 1")["arm"].tolist() == chosen.tolist()


@pytest.mark.parametrize("delay", [1, {"kind": "exponential", "rate": 0.5}])
def test_pulls_whose_rewards_come_late_or_never_are_those_of_the_run(delay: Any, tmp_path: Path) -> None:
    """Agent 0 leaves before its last reward comes; rewards may overtake each other."""
    agents = {"count": 3, "reward_delay": delay, "leaves": {"kind": "times", "times": [[0, 3.5]]}}
    study = {**STUDY, "agents": agents, "schedule": {"kind": "rounds", "turns": 6}, "replications": 1}
    run = coband.run({**study, "algorithms": [{"algorithm": "lin_ucb"}]}, workers=1, out=tmp_path / "run")
    row, pulls = run.results.merge(run.details).iloc[0], run.pulls
    assert (len(pulls), row["outstanding"] > 0) == (row["turns"], True)
    for key in ("reward", "regret"):
        assert pulls[key].sum() == pytest.approx(row[key])
    by_turn = sorted(zip(pulls["agent"], pulls["turn"], pulls["regret"], strict=True))
    assert len({(agent, turn) for agent, turn, _ in by_turn}) == row["turns"]


def test_pulls_in_batches_have_the_regret_of_their_arms(tmp_path: Path) -> None:
    run = coband.run(
        "cope_kb/fixed_budget_same_quick", replications=1, only="CoKernelFB", workers=1, out=tmp_path / "b"
    )
    table, row = run.pulls, run.results.merge(run.details).iloc[0]
    assert table["pulls"].sum() == row["turns"]
    assert table["regret"].sum() == pytest.approx(row["regret"])
    assert (table["reward"] * table["pulls"]).sum() == pytest.approx(row["reward"])


def test_only_some_labels_of_a_sweep(tmp_path: Path) -> None:
    grid = {**STUDY, "replications": 1, "grid": {"algorithms.*.alpha": [0.1, 30]}}
    sweep = coband.sweep(grid, only="Alone", workers=1, out=tmp_path / "sweep")
    assert set(sweep.results["entry"]) == {"Alone"}
    assert len(sweep.results) == 2
    with pytest.raises(coband.ScenarioError, match="did you mean Alone"):
        coband.sweep(grid, only="Alon", workers=1, out=tmp_path / "other")
