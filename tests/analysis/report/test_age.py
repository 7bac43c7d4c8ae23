"""The figure of the age of information."""

from pathlib import Path

import numpy as np
import pytest

from coband.simulator.analysis.report import data
from coband.simulator.analysis.report.analysis import Analysis
from coband.simulator.analysis.report.devices import age_curve, age_figure
from coband.simulator.experiments.store.store import open_run
from tests.analysis.traces.runs import STAR, TASKS, perform


def test_curves_are_means_over_parts_of_the_run(tmp_path: Path) -> None:
    """With fewer turns than parts, each part is one turn."""
    with open_run(perform(STAR, tmp_path / "run", "replications=2", only=("Async", "Alone"))) as run:
        analysis = Analysis(data.load([run]))
        asynchronous, alone = map(age_curve, analysis.contenders)
        for job in run.select("Async"):
            row = asynchronous.ages["age"][job.replication]
            assert row.mean() == pytest.approx(job.record["mean_age"])
        assert np.isnan(alone.ages["age_time"]).all()
        figure = age_figure(analysis)
        expected = [2, 1]  # agents alone hear nothing, so that they have no newest message
        assert [len(axis.lines) for axis in figure.axes] == expected


def test_nothing_is_drawn_where_nobody_hears_anything(tmp_path: Path) -> None:
    with open_run(perform(STAR, tmp_path / "run", "replications=1", only=("Alone",))) as run:
        figure = age_figure(Analysis(data.load([run])))
    assert [axis.get_title() for axis in figure.axes] == ["pulls that a decision did not know of"]


def test_no_figure_without_ages(tmp_path: Path) -> None:
    with open_run(perform(TASKS, tmp_path / "run")) as run:
        assert age_figure(Analysis(data.load([run]))) is None
