"""What reports and comparisons say about sweeps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from coband.simulator.experiments.report import analysis, data
from coband.simulator.experiments.report import contents as catalogue
from coband.simulator.experiments.report.sweeps import ResponseSurface, heat_maps
from coband.simulator.experiments.statistics import estimates as statistics
from coband.simulator.experiments.store import store
from coband.simulator.experiments.store.variants import variants
from tests.experiments.sweep.sweeps import perform, study

GRID = "grid:\n  problem.noise: [0.1, 0.2]\n  algorithms.K.alpha: [0, 1, 50]\n"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[store.StoredRun]:
    folder = tmp_path_factory.mktemp("sweep")
    perform(study(folder, GRID), folder / "out")
    with store.open_run(folder / "out") as opened:
        yield opened


def test_variants_are_read_back(run: store.StoredRun) -> None:
    found = variants(run)["K [noise=0.2, alpha=50]"]
    assert (found.entry, found.phase, found.chosen) == ("K", "fresh", False)
    assert [(one.key, one.name, one.text, one.number) for one in found.parameters] == [
        ("algorithms.K.alpha", "alpha", "50", 50.0),
        ("problem.noise", "noise", "0.2", 0.2),
    ]
    assert found.scenario()["problem"]["noise"] == 0.2


def test_a_surface_has_the_best_of_the_other_parameters(run: store.StoredRun) -> None:
    surface = ResponseSurface(run, "regret")
    assert surface.entries == ["D", "K"]
    assert surface.names("D") == {"noise": ["0.1", "0.2"]}
    assert surface.names("K") == {"alpha": ["0", "1", "50"], "noise": ["0.1", "0.2"]}
    means = [
        statistics.mean([float(job.record["regret"]) for job in run.select(f"K [noise={noise}, alpha=1]")])
        for noise in ("0.1", "0.2")
    ]  # type: ignore[index, arg-type]
    best = surface.best("K", alpha="1")
    assert best is not None
    assert best.mean == min(means)
    assert surface.best("D", alpha="1") is None
    assert [(one.entry, one.down[0], one.across[0]) for one in heat_maps(surface)] == [("K", "alpha", "noise")]


def test_variants_in_other_worlds_are_not_paired(run: store.StoredRun) -> None:
    comparison = data.load([run])
    by_label = {one.label: one for one in comparison.contenders}
    first = by_label["K [noise=0.1, alpha=1]"]
    assert comparison.why_unpaired(first, by_label["K [noise=0.1, alpha=50]"]) == ()
    assert comparison.why_unpaired(first, by_label["K [noise=0.2, alpha=1]"]) == ("problem.noise",)


def test_a_report_of_a_sweep_has_its_figures(run: store.StoredRun) -> None:
    found = catalogue.figures(analysis.Analysis(data.load([run])), ("sensitivity", "heat"))
    assert [(one.name, len(one.figure.axes)) for one in found] == [("sensitivity", 2), ("heat", 1)]


def test_replications_for_tuning_are_no_results(tmp_path: Path) -> None:
    perform(study(tmp_path, GRID + "tuning: {replications: 2}\n"), tmp_path / "out")
    with store.open_run(tmp_path / "out") as run:
        assert len(data.load([run]).contenders) == 4
        assert {cell.variant.phase for cell in ResponseSurface(run, "regret").cells} == {"tuning"}
