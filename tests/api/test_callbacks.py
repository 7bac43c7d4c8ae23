"""Callbacks, pulls and exporters, from Python."""

from __future__ import annotations

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
    assert heard.points == [(row["label"], row["regret"]) for row in whole.summary]
    with pytest.warns(coband.RunWarning, match="stopped by a callback: enough.*: 3 finished jobs are kept"):
        part = coband.run(study, workers=1, out=tmp_path / "part", callbacks=[Heard(3)])
    assert (part.status, len(part.results)) == ("stopped", 3)


def test_pulls_are_those_of_the_run_with_and_without_a_trace(tmp_path: Path) -> None:
    study = {**STUDY, "replications": 2}
    runs = {level: coband.run(study, trace=level, workers=1, out=tmp_path / level) for level in ("off", "protocol")}
    tables = {level: run.pulls_of(workers=1) for level, run in runs.items()}
    assert list(tables["off"]) == list(tables["protocol"])
    names = ["label", "replication", "agent", "turn", "time", "arm", "pulls", "reward", "regret"]
    assert tables["off"].columns == names
    for row in runs["off"].results:
        mine = tables["off"].where(label=row["label"], replication=row["replication"])
        assert len(mine) == row["turns"]
        assert mine["regret"].sum() == pytest.approx(row["regret"])
        assert mine["reward"].sum() == pytest.approx(row["reward"])
    chosen = runs["protocol"].events(label="Async", replication=1, event="choose")["value"]
    assert tables["off"].where(label="Async", replication=1)["arm"].tolist() == chosen.tolist()
    with pytest.raises(coband.RunError, match="no label"):
        runs["off"].pulls_of("Asynch")


def test_pulls_in_batches_have_the_regret_of_their_arms(tmp_path: Path) -> None:
    run = coband.run(
        "cope_kb/fixed_budget_same_quick", replications=1, only="CoKernelFB", workers=1, out=tmp_path / "b"
    )
    table, (row,) = run.pulls_of(workers=1), list(run.results)
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


def test_tensorboard_has_every_job(done: coband.Run, tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX", reason="needs tensorboardX (the extra tensorboard)")
    from tensorboardX.proto.event_pb2 import Event

    place = done.to_tensorboard(tmp_path / "logs")
    files = sorted(place.rglob("events.out.tfevents.*"))
    assert len(files) == len(done.results)
    raw, found = next(file for file in files if "Async" in str(file) and "replication-0" in str(file)).read_bytes(), []
    while raw:  # records: length, its checksum, data, their checksum
        length = int.from_bytes(raw[:8], "little")
        found.append(Event.FromString(raw[12 : 12 + length]))
        raw = raw[16 + length :]
    values = [(value.tag, event.step, value.simple_value) for event in found for value in event.summary.value]
    curve = done.series.where(label="Async", replication=0)
    expected = list(zip(curve["turn"].tolist(), curve["regret"].tolist(), strict=True))
    got = [(step, value) for tag, step, value in values if tag == "regret"]
    assert [step for step, _ in got] == [step for step, _ in expected]
    assert [value for _, value in got] == pytest.approx([value for _, value in expected], rel=1e-5)
    with pytest.raises(coband.RunError, match="is not empty, and an export overwrites nothing"):
        done.to_tensorboard(place)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_mlflow_has_every_job(done: coband.Run, tmp_path: Path) -> None:
    mlflow: Any = pytest.importorskip("mlflow", reason="needs mlflow-skinny (the extra mlflow)")
    pytest.importorskip("sqlalchemy", reason="needs sqlalchemy (the extra mlflow)")
    pytest.importorskip("alembic", reason="needs alembic (the extra mlflow)")
    uri = done.to_mlflow(tmp_path / "tracked")
    client = mlflow.MlflowClient(tracking_uri=uri)
    home = client.get_experiment_by_name(done.name)
    runs = [run for run in client.search_runs([home.experiment_id]) if "coband.label" in run.data.tags]
    assert len(runs) == len(done.results)
    tags = {(run.data.tags["coband.label"], int(run.data.tags["coband.replication"])): run for run in runs}
    for row in done.results:
        run = tags[row["label"], row["replication"]]
        assert run.data.tags["coband.fingerprint"] == row["fingerprint"]
        assert run.data.metrics["regret"] == pytest.approx(row["regret"])
        assert run.data.metrics["reward"] == pytest.approx(row["reward"])
        assert run.data.params["agents.count"] == "3"
    history = client.get_metric_history(tags["Async", 0].info.run_id, "regret")
    curve = done.series.where(label="Async", replication=0)
    expected = list(zip(curve["turn"].tolist(), curve["regret"].tolist(), strict=True))
    assert sorted((one.step, one.value) for one in history) == expected
