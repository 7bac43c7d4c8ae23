"""Curves of regret against energy: what the store keeps, where they are drawn, and stores that do not have it."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import coband
from coband.simulator.analysis.comparison import data
from coband.simulator.analysis.comparison.analysis import Analysis
from coband.simulator.analysis.report.catalogue import panel
from coband.simulator.core.metrics import CORE
from coband.simulator.experiments.store.store import StoredRun, open_run

SCENARIO = """\
name: phones
seed: 3
replications: 2
trace: off
agents: {count: 3ENERGY}
schedule: {kind: rounds, turns: 30}
problem: {kind: contextual, arms: {kind: ball, dimension: 3, count: 5}, reward: {kind: cosine}}
algorithms: [{algorithm: fed_lin_ucb, label: FedLin, threshold: 0.5}, {algorithm: lin_ucb, label: Alone}]
"""
ENERGY = ", energy: {capacity: 1000000, per_turn: 2, per_bit_up: 0.5, per_bit_down: 0.25, idle: 3}"


def performed(folder: Path, energy: str = ENERGY) -> Path:
    file = folder / "phones.yaml"
    file.write_text(SCENARIO.replace("ENERGY", energy))
    coband.run(file, out=folder / "run", workers=1)
    return folder / "run"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return performed(tmp_path_factory.mktemp("energy"))


@pytest.fixture
def run(folder: Path) -> Iterator[StoredRun]:
    with open_run(folder) as opened:
        yield opened


def test_the_store_has_what_turns_and_messages_took(run: StoredRun) -> None:
    for series in run.series("Alone"):
        np.testing.assert_allclose(series.energy, 2.0 * series.turns)
    for series, job in zip(run.series("FedLin"), run.select("FedLin"), strict=True):
        assert np.all(np.diff(series.energy) >= 2.0)
        spent = job.record["energy"] - job.record["energy_idle"]
        last = series.scalars[-1] * 64 * 0.25  # the last answer may come after the last pull
        assert spent - last <= series.energy[-1] <= spent


def test_regret_is_drawn_against_energy(run: StoredRun, folder: Path) -> None:
    frame = panel("energy").numbers(Analysis(data.load([run])), label="Alone")
    assert frame["at"].iloc[-1] == pytest.approx(180.0)
    alone = run.series("Alone")
    assert frame["mean"].iloc[-1] == pytest.approx(np.mean([series.regret[-1] for series in alone]))
    drawn = coband.load(folder).plot.energy()
    assert drawn.axes[0].get_xlabel() == "joules of turns and messages"
    assert "energy" in set(panel("trade_off").numbers(Analysis(data.load([run])))["cost"])


def test_without_batteries_there_is_no_such_curve(tmp_path: Path) -> None:
    folder = performed(tmp_path, "")
    with open_run(folder) as opened:
        assert opened.series("Alone")[0].energy is None
        assert panel("energy").numbers(Analysis(data.load([opened]))).empty
    with pytest.raises(coband.RunError, match="nothing to draw for energy"):
        coband.load(folder).plot.energy()


def test_energy_has_its_unit_wherever_it_is_shown(run: StoredRun) -> None:
    titles = [metric.heading for metric in CORE if metric.unit == "joules"]
    assert len(titles) == 6
    assert all(title.endswith(" (joules)") for title in titles)
    analysis = Analysis(data.load([run]))
    assert "energy (joules)" in [measure.title for measure in analysis.measures]
    assert "energy (joules)" in set(panel("results").numbers(analysis)["measure"])
