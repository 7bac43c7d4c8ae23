"""The panel of the age of information."""

from pathlib import Path

import pytest

from coband.simulator.analysis.comparison import data
from coband.simulator.analysis.comparison.analysis import Analysis
from coband.simulator.analysis.report.catalogue import panel
from coband.simulator.experiments.store.store import open_run
from tests.analysis.traces.runs import STAR, TASKS, perform


def test_curves_are_means_over_parts_of_the_run(tmp_path: Path) -> None:
    """With fewer turns than parts, each part is one turn."""
    with open_run(perform(STAR, tmp_path / "run", "replications=2", only=("Async", "Alone"))) as run:
        frame = panel("age").numbers(Analysis(data.load([run])))
        pulls = frame[frame["age"] == "pulls not known of"]
        wanted = [job.record["mean_age"] for job in run.select("Async")]
        assert pulls["mean"][pulls["label"] == "Async"].mean() == pytest.approx(sum(wanted) / 2)
        assert set(pulls["label"]) == {"Async", "Alone"}
        heard = frame["label"][frame["age"] == "time since newest message"]
        assert set(heard) == {"Async"}, "agents alone hear nothing, so that they have no newest message"


def test_nothing_is_drawn_where_nobody_hears_anything(tmp_path: Path) -> None:
    with open_run(perform(STAR, tmp_path / "run", "replications=1", only=("Alone",))) as run:
        assert set(panel("age").numbers(Analysis(data.load([run])))["age"]) == {"pulls not known of"}


def test_no_figure_without_ages(tmp_path: Path) -> None:
    with open_run(perform(TASKS, tmp_path / "run")) as run:
        assert panel("age").numbers(Analysis(data.load([run]))).empty
