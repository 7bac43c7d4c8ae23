"""Statistics that are shown, against plain loops: a planted error in any of them is found."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import coband
from coband.simulator.analysis.report.data import Contender
from coband.simulator.analysis.traces import recomputed
from coband.simulator.cli.main import exit_status
from coband.simulator.experiments.statistics import estimates
from coband.simulator.experiments.store.store import open_run
from tests.analysis.traces import runs
from tests.api.conftest import STUDY

UNTRACED = {**STUDY, "trace": "off"}
VARY = {"algorithms.Async.threshold": [0.2, 1.0]}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run, one of pure exploration, whose errors are proportions, a tuned sweep, and a frontier."""
    place = tmp_path_factory.mktemp("recomputed")
    tuned = {**UNTRACED, "grid": VARY, "tuning": {"on": "regret", "replications": 2}}
    coband.sweep(tuned, workers=1, out=place / "sweep", progress=False)
    coband.frontier(UNTRACED, vary=VARY, replications=3, budget=40, workers=1, out=place / "frontier", progress=False)
    runs.perform(runs.STAR, place / "run", "replications=3", "expect=[]", only=("Async", "Alone", "One"))
    runs.perform(runs.TASKS, place / "tasks", "replications=3")
    on_shares = "replications: 2\ngrid: {algorithms.Together.delta: [0.1, 0.2]}\ntuning: {on: error, replications: 2}\n"
    (place / "shares.yaml").write_text(runs.TASKS + on_shares)
    coband.sweep(place / "shares.yaml", workers=1, out=place / "shares", progress=False)
    return {name: place / name for name in ("run", "tasks", "sweep", "frontier", "shares")}


@pytest.mark.parametrize("name", ["run", "tasks", "sweep", "frontier", "shares"])
def test_what_is_shown_is_right(folders: dict[str, Path], name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_status(["trace", "verify", str(folders[name])]) == 0, capsys.readouterr().out


def test_the_best_of_a_sweep_has_the_interval_of_its_label(
    folders: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Of proportions Wilson's: no errors in two replications are no certainty."""
    found = json.loads((folders["shares"] / "results.json").read_text())
    (best,), fresh = found["best"], {entry["label"]: entry["ci95"]["error"] for entry in found["results"]}
    assert best["fresh"]["ci95"] == fresh[best["label"]]
    assert best["fresh"]["ci95"][1] > 0.5
    assert exit_status(["show", str(folders["shares"])]) == 0
    assert "[0, 0.66] (2)" in capsys.readouterr().out


Path_ = tuple[str | int, ...]
PLACES: list[tuple[str, Path_, str]] = [
    ("run", ("results", 0, "mean", "regret"), "the mean regret of Async is shown as"),
    ("run", ("results", 1, "ci95", "scalars", 0), "the 95 % interval of scalars of One is shown as"),
    ("tasks", ("results", 0, "ci95", "error", 1), "the 95 % interval of error of Together is shown as"),
    ("sweep", ("best", 0, "tuning", "mean"), "(tuning) is shown as"),
    ("sweep", ("best", 0, "fresh", "ci95", 1), "the 95 % interval of regret of Async [threshold="),
    ("sweep", ("best", 0, "fresh", "n"), "is said to be of 3.0 replications, and there are 2"),
    ("frontier", ("frontier", "candidates", 1, "search", "scalars", "mean"), "the mean scalars of Async"),
    ("frontier", ("frontier", "points", 0, "fresh", "regret", "ci95", 0), "the 95 % interval of regret of"),
]


@pytest.mark.parametrize(("name", "place", "sentence"), PLACES)
def test_a_wrong_number_in_the_results_is_found(
    folders: dict[str, Path], name: str, place: Path_, sentence: str
) -> None:
    found = json.loads((folders[name] / "results.json").read_text())
    with open_run(folders[name]) as run:
        assert list(recomputed.in_results(found, run.metrics)) == []
        inner: Any = found
        for step in place[:-1]:
            inner = inner[step]
        inner[place[-1]] += 1.0 if place[-1] == "n" else 1e-6 * (1.0 + abs(inner[place[-1]]))
        (complaint,) = recomputed.in_results(found, run.metrics)
    assert sentence in complaint


def by_order(first: Sequence[float], second: Sequence[float], level: float = estimates.LEVEL) -> estimates.Estimate:
    """Pairs that are no pairs: the mean of their differences is right, its interval is not."""
    return ORIGINAL(first, sorted(second), level)


ORIGINAL = estimates.paired_difference


def without_the_last(self: Contender, key: str) -> dict[int, float]:
    return dict(sorted(VALUES(self, key).items())[:-1])


VALUES = Contender.values


def too_narrow(values: Sequence[float], level: float = estimates.LEVEL) -> tuple[float, float] | None:
    """With n in the place of n - 1."""
    half = stats.t.ppf(0.975, len(values) - 1) * np.std(values) / np.sqrt(len(values))
    return float(np.mean(values) - half), float(np.mean(values) + half)


@pytest.mark.parametrize(
    ("owner", "name", "planted", "sentence"),
    [
        (estimates, "paired_difference", by_order, "the 95 % interval of regret of Async minus"),
        (Contender, "values", without_the_last, "the mean regret of Async is shown as"),
        (estimates, "interval", too_narrow, "the 95 % interval of regret of Async is shown as"),
        (estimates, "mean", np.median, "the mean regret of Async is shown as"),
    ],
)
def test_a_planted_error_in_comparisons_is_found(
    folders: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    owner: Any,
    name: str,
    planted: Callable[..., Any],
    sentence: str,
) -> None:
    monkeypatch.setattr(owner, name, planted)
    assert exit_status(["trace", "verify", str(folders["run"])]) == 1
    assert sentence in capsys.readouterr().out


def numbered_anew(self: Contender, key: str) -> dict[int, float]:
    return dict(enumerate(VALUES(self, key).values()))


def test_pairs_are_those_of_replications(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where one label lacks a replication, pairs by order are no pairs."""
    with open_run(folders["run"]) as run:
        lost = next(job for job in run.jobs if (job.label, job.replication) == ("Async", 0))
        run.jobs[run.jobs.index(lost)] = replace(lost, record=None)
        assert list(recomputed.in_comparisons(run)) == []
        monkeypatch.setattr(Contender, "values", numbered_anew)
        found = list(recomputed.in_comparisons(run))
    assert any(one.startswith("the mean regret of Async minus Alone is shown as") for one in found)
    assert not any("One minus Alone" in one for one in found)


@pytest.mark.parametrize("freedom", [1, 2, 9, 199])
def test_quantiles(freedom: int) -> None:
    assert stats.t.sf(recomputed._t(freedom), freedom) == pytest.approx(
        0.025, rel=1e-12
    )  # ppf of old SciPys is coarser
