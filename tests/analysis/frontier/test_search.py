"""Searches find what an exhaustive grid finds, go on where they were interrupted, and report fresh numbers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("optuna", reason="pip install 'coband[frontier]'")

from coband.simulator.analysis.frontier.explorer import Everything, Proposed
from coband.simulator.analysis.frontier.finalists import ChoiceError, choose, compromise, finalists, layers
from coband.simulator.analysis.frontier.study import Search
from coband.simulator.experiments.runs.planner import FIRST_REPLICATION, Tally, Task, sent
from coband.simulator.experiments.statistics.dominance import non_dominated, standings
from coband.simulator.experiments.store.store import open_run
from coband.simulator.experiments.store.variants import variants
from coband.simulator.experiments.sweep.study import load_study
from tests.analysis.frontier.searches import GRID, TEXT, perform, search
from tests.experiments.sweep import sweeps
from tests.experiments.sweep.sweeps import fingerprints, result_cache

SMALL = "grid: {algorithms.Async.threshold: [0.1, 0.5, 2, 10], algorithms.Async.q: [0.03, 1]}\n"
NAMES = ("regret", "scalars")


def swept(folder: Path, more: str, replications: int) -> dict[str, Any]:
    """Label -> results of the whole grid by `coband sweep`."""
    file = folder / "grid.yaml"
    file.write_text(TEXT + more)
    study = load_study(file, [f"replications={replications}"])
    report = sweeps.perform(study, folder / "grid")
    return {entry["label"]: entry for entry in report.object["results"]}


def front(entries: dict[str, Any]) -> set[str]:
    """The labels that no other one beats in the means, by the definition."""
    means = {label: [one["mean"][name] for name in NAMES] for label, one in entries.items()}

    def beats(a: list[float], b: list[float]) -> bool:
        return all(x <= y for x, y in zip(a, b, strict=True)) and a != b

    return {label for label, mean in means.items() if not any(beats(other, mean) for other in means.values())}


def volume(entries: dict[str, Any], labels: set[str], every: dict[str, Any]) -> float:
    """The area that points beat, both objectives on the scale of asinh from their best (0) to their worst (1) value."""
    bent = np.arcsinh(np.array([[one["mean"][name] for name in NAMES] for one in every.values()]))
    low, width = bent.min(axis=0), np.ptp(bent, axis=0)
    points = [(np.arcsinh([entries[label]["mean"][name] for name in NAMES]) - low) / width for label in labels]
    area, height = 0.0, 1.0
    for across, up in sorted(map(tuple, points)):
        area, height = area + (1 - across) * max(0.0, height - up), min(height, up)
    return area


def test_a_search_that_may_try_everything_finds_the_frontier_of_the_grid(tmp_path: Path) -> None:
    grid = swept(tmp_path, SMALL, 3)
    study = search(tmp_path, SMALL, jobs=55, trials=2)
    assert all(isinstance(track.explorer, Everything) for track in study.tracks)
    report = perform(study, tmp_path / "out")
    found = {entry["label"]: entry for entry in report.object["results"] if entry["phase"] == "fresh"}
    assert front(found) == front(grid)
    assert {point["label"] for point in report.object["frontier"]["points"] if point["best_mean"]} == front(grid)
    assert fingerprints(report.object).items() >= fingerprints({"results": list(grid.values())}).items()


@pytest.mark.slow
def test_a_search_of_half_a_grid_comes_close_to_its_frontier(tmp_path: Path) -> None:
    grid = swept(tmp_path, GRID, 6)
    study = search(tmp_path, GRID, jobs=210, replications=6)
    assert isinstance(study.tracks[0].explorer, Proposed)
    report = perform(study, tmp_path / "out")
    tried = {one["label"] for one in report.object["frontier"]["candidates"]}
    assert len(tried) < 0.7 * len(grid)
    found = {entry["label"]: entry for entry in report.object["results"] if entry["phase"] == "fresh"}
    best = {point["label"] for point in report.object["frontier"]["points"] if point["best_mean"]}
    assert volume(found, best, grid) > 0.9 * volume(grid, front(grid), grid)
    both = sorted(best | front(grid))
    values = [{r["replication"]: [r[name] for name in NAMES] for r in grid[label]["replications"]} for label in both]
    beaten = {label for label, one in zip(both, standings(values), strict=True) if one.verdict == "beaten"}
    assert not beaten & best  # nothing of the grid is shown to beat what the search has found


def test_numbers_are_of_replications_that_chose_nothing(tmp_path: Path) -> None:
    report = perform(search(tmp_path, SMALL, jobs=40, replications=4, trials=2), tmp_path / "out")
    found = report.object["frontier"]
    assert report.status.done == report.status.total <= 40
    assert 1 < len(found["points"]) < len(found["candidates"]) == 9
    by_phase: dict[str, set[int]] = {"fresh": set(), "tuning": set()}
    for entry in report.object["results"]:
        by_phase[entry["phase"]] |= {record["replication"] for record in entry["replications"]}
    assert by_phase["fresh"] == set(range(4))
    assert by_phase["tuning"] == set(range(FIRST_REPLICATION, FIRST_REPLICATION + 4))
    for point in found["points"]:
        assert [point[part]["regret"]["n"] for part in ("fresh", "search")] == [4, 4]
    assert {choice["on"] for choice in found["choices"]} == {"regret", "scalars", "compromise"}
    with open_run(tmp_path / "out") as run:
        marked = {label for label, one in variants(run).items() if one.chosen}
        assert marked == {point["label"] for point in found["points"]}


class Stop:
    def __init__(self, after: int) -> None:
        self.after = after

    def changed(self, status: Any) -> None:
        if status.state == "running" and status.done >= self.after:
            raise KeyboardInterrupt

    def ended(self, end: Any) -> None: ...
    def failed(self, failure: Any) -> None: ...


@pytest.mark.parametrize("after", [6, pytest.param(20, marks=pytest.mark.slow)])
def test_an_interrupted_search_runs_nothing_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    asked: dict[str, Any] = {"vary": ("algorithms.Async.threshold=0.03..10",), "jobs": 30}
    asked |= {"trials": 2, "replications": 2}
    whole = perform(search(tmp_path, **asked), tmp_path / "whole")
    monkeypatch.setattr("coband.simulator.experiments.runs.driver.LOOK_SECONDS", 0.0)
    first = perform(search(tmp_path, **asked), tmp_path / "out", Stop(after))
    assert first.status.state == "interrupted"
    kept = {file: file.stat().st_mtime_ns for file in result_cache(tmp_path / "out")}
    assert after <= len(kept) < whole.status.done
    second = perform(search(tmp_path, **asked), tmp_path / "out")
    assert second.status.state == "finished"
    assert {file: file.stat().st_mtime_ns for file in kept} == kept
    assert second.status.entries["Async"].kept + second.status.entries["Alone"].kept == len(kept)
    assert fingerprints(second.object) == fingerprints(whole.object)
    assert second.object["frontier"] == whole.object["frontier"]


class Planned:
    """What a search has to run, task by task, without a driver."""

    def __init__(self, study: Search) -> None:
        self._tally = Tally(study.variants, study.entries)
        self._planner = study.planner(self._tally)
        self.first = next(self._planner)

    def ended(self, task: Task, record: dict[str, Any] | None) -> Sequence[Task]:
        self._tally.take(task, record)
        return sent(self._planner, (task, record))


def test_the_order_in_which_jobs_end_does_not_matter(tmp_path: Path) -> None:
    def decided(backwards: bool) -> list[Task]:
        plan = Planned(search(tmp_path, vary=("algorithms.Async.threshold=0.03..10",), jobs=80))
        waiting, seen = list(plan.first), []
        while waiting:
            task = waiting.pop(-1 if backwards else 0)
            seen.append(task)
            sent = 1000.0 / (1 + task.variant % 7)
            record = {"replication": task.replication, "regret": float(task.variant % 5), "scalars": sent}
            waiting += plan.ended(task, record)
        return sorted(seen, key=lambda task: (task.variant, task.phase, task.replication))

    assert decided(backwards=False) == decided(backwards=True)


def test_a_candidate_that_breaks_off_is_no_finalist(tmp_path: Path) -> None:
    plan = Planned(search(tmp_path, SMALL, jobs=80))
    waiting, fresh = list(plan.first), set()
    while waiting:
        task = waiting.pop()
        if task.phase == "fresh":
            fresh.add(task.variant)
        record = {"replication": task.replication, "regret": 1.0 + task.variant, "scalars": 9.0 - task.variant}
        waiting += plan.ended(task, None if task.variant == 3 else record)
    assert fresh == set(range(9)) - {3}


def test_layers_and_finalists() -> None:
    means = np.array([[1.0, 9.0], [2.0, 5.0], [3.0, 6.0], [4.0, 7.0], [9.0, 1.0], [1.5, 20.0]])
    assert layers(means) == [0, 0, 1, 2, 0, 1]
    assert finalists([0] * 6, means, 3) == [0, 1, 4]
    assert finalists([0] * 6, means, 5) == [0, 1, 2, 4, 5]
    assert finalists([0, 0, 0, 1, 0, 0], means, 2) == [1, 3]  # each algorithm has one
    assert non_dominated(means) == [True, True, False, False, True, False]
    assert compromise(means[[0, 1, 4]]) == 1


def point(label: str, regret: float, scalars: float) -> dict[str, Any]:
    return {"label": label, "search": {"regret": {"mean": regret}, "scalars": {"mean": scalars}}}


def test_choices() -> None:
    points = [point("A", 1.0, 9e4), point("B", 3.0, 50.0), point("C", 40.0, 1.0), point("D", 41.0, 2.0)]
    better = {"regret": "lower", "scalars": "lower"}

    def chosen(on: str | None = None, **limits: float) -> str | None:
        found = choose(points, better, on, limits)
        return None if found is None else found["label"]

    assert [chosen("regret"), chosen("scalars"), chosen()] == ["A", "C", "B"]
    expected = ["B", "C", None]
    assert [chosen("regret", scalars=1000), chosen("regret", scalars=49), chosen("regret", scalars=0)] == expected
    points[0]["verdict"] = "beaten"  # on fresh replications
    assert [chosen("regret"), chosen(), chosen("regret", scalars=1e5)] == ["B", "B", "B"]
    with pytest.raises(ChoiceError, match="did you mean scalars"):
        chosen("skalars")
    assert choose(points, {"regret": "higher", "scalars": "lower"}, "regret", {"regret": 40.5}) == points[3]
