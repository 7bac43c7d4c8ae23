"""Every panel on runs of several shapes: its frame is tidy, it can be drawn, and equal input gives equal bytes."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from coband.simulator.analysis.comparison.analysis import Analysis
from coband.simulator.analysis.comparison.data import ReportError, load
from coband.simulator.analysis.report.catalogue import PANELS, panel, panels
from coband.simulator.analysis.report.drawing import file_figure, inline_figures, rendered
from coband.simulator.analysis.report.palette import INK, PAPER
from coband.simulator.analysis.report.panel import Panel
from coband.simulator.analysis.report.style import MANY, Styles
from coband.simulator.experiments.store.store import open_run
from coband.simulator.experiments.sweep.study import load_study
from tests.analysis.report.made import SCENARIO, run
from tests.every import every
from tests.experiments.sweep.sweeps import perform

PLAIN = SCENARIO.replace('"Async <b>&</b> $x$"', "Async")
SOME_LABELS = "grid:\n  problem.noise: [0.1, 0.3]\n  algorithms.Sync.threshold: [0.5, 2]\n"
MANY_LABELS = (
    "grid:\n  algorithms.Sync.threshold: [0.1, 0.2, 0.3, 0.4]\n  algorithms.Sync.alpha: [0.1, 0.2, 0.3, 0.4, 1]\n"
)
SHAPES = {
    "small": lambda folder: run(folder / "run", scenario=PLAIN),
    "alone": lambda folder: run(folder / "run", "--replications", "1", scenario=PLAIN),
    "untraced": lambda folder: run(folder / "run", "--trace", "off", scenario=PLAIN),
    "sweep": lambda folder: swept(folder, SOME_LABELS),
    "many": lambda folder: swept(folder, MANY_LABELS),
}


def swept(folder: Path, grid: str) -> Path:
    file = folder / "swept.yaml"
    file.write_text(PLAIN.replace("replications: 3", "replications: 2") + grid)
    perform(load_study(file), folder / "out")
    return folder / "out"


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {name: make(tmp_path_factory.mktemp(name)) for name, make in SHAPES.items()}


@contextmanager
def analysed(place: Path) -> Iterator[Analysis]:
    with open_run(place) as opened:
        yield Analysis(load([opened]))


MEANING = {"mean", "low", "high", "n"}
EMPTY = {
    "small": {"sensitivity", "heat"},
    "alone": {"sensitivity", "heat"},
    "untraced": {"sensitivity", "heat", "times", "rounds", "stragglers", "messages"},
    "sweep": {"heat", "times", "rounds", "stragglers", "messages"},
    "many": {"times", "rounds", "stragglers", "messages"},
}
"""The panels that have nothing to show; sweeps keep no trace."""
FEATURES = {"lies", "dishonest", "epsilon", "privacy", "bits", "devices", "availability", "fates", "ran_out", "energy"}


def checked(one: Panel, analysis: Analysis) -> None:
    frame = one.numbers(analysis)
    if frame.empty:
        return
    assert isinstance(frame.index, pd.RangeIndex)
    keys = [name for name in frame if name not in MEANING]
    assert not frame[keys].duplicated().any(), f"{one.name}: two rows say the same"
    if {"low", "high"} <= set(frame):
        bounded = frame.dropna(subset=["low", "high"])
        assert (bounded["low"] <= bounded["mean"] + 1e-9).all()
        assert (bounded["mean"] <= bounded["high"] + 1e-9).all()
    pd.testing.assert_frame_equal(one.numbers(analysis), frame)
    assert len(one.table(frame))
    if one.draw is None:
        return
    styles, bytes_ = Styles(analysis), list[bytes]()
    for _ in range(2):
        assert len(inline_figures(one, one.parts(frame), styles)) == len(one.parts(frame))
        bytes_.append(rendered(file_figure(one, frame, styles), "svg"))
    assert bytes_[0] == bytes_[1], f"{one.name}: equal input, unequal bytes"


@every("shape", SHAPES)
def test_every_panel(places: dict[str, Path], shape: str) -> None:
    with analysed(places[shape]) as analysis:
        known = panels()
        assert {one.name for one in PANELS} | FEATURES | {"trade_off", "messages"} <= known.keys()
        empty = {name for name, one in known.items() if one.numbers(analysis).empty}
        assert empty == EMPTY[shape] | FEATURES
        for one in known.values():
            checked(one, analysis)


def test_panels_stand_after_those_that_they_name() -> None:
    names = list(panels())
    for name, one in panels().items():
        assert not one.after or names.index(one.after) < names.index(name)
    assert names[0] == "results"
    assert names[-1] == "messages"


def test_selecting_is_filtering(places: dict[str, Path]) -> None:
    with analysed(places["sweep"]) as analysis:
        whole = panel("regret").numbers(analysis)
        part = panel("regret").numbers(analysis, x="time", environment="noise=0.3")
        kept = whole[(whole["x"] == "time") & (whole["environment"] == "noise=0.3")]
        assert 0 < len(part) < len(whole)
        pd.testing.assert_frame_equal(part, kept)
        assert set(panel("results").numbers(analysis, label=["Async", "Alone"])["label"]) == {"Async", "Alone"}
        with pytest.raises(
            ReportError, match="there is no column 'y'; the columns are environment, x, label, at, mean"
        ):
            panel("regret").numbers(analysis, y=1)
        with pytest.raises(ReportError, match=r"no row with x=money; its values are turns, scalars, time\."):
            panel("regret").numbers(analysis, x="money")
        with pytest.raises(ReportError, match=r"no row with at=-1; its values are \S+(, \S+){2,8}, \.\.\.\.$"):
            panel("regret").numbers(analysis, at=-1)
        with pytest.raises(ReportError, match="there is no panel 'regrets'; the panels are results, sensitivity, heat"):
            panel("regrets")


def test_figures_have_the_asked_width_and_say_where_there_is_no_room(places: dict[str, Path]) -> None:
    with analysed(places["small"]) as analysis:
        styles, one = Styles(analysis), panel("regret")
        for only, width in ({"x": "time"}, 3.3), ({}, 9.9):
            assert file_figure(one, one.numbers(analysis, **only), styles).get_figwidth() == pytest.approx(width)
        wide = file_figure(one, one.numbers(analysis, x="time"), styles, 5.0, 3.0)
        assert wide.get_size_inches() == pytest.approx([5.0, 3.0])
        with pytest.raises(ReportError, match=r"there is nothing to draw for regret\."):
            file_figure(one, one.numbers(analysis)[:0], styles)
        with pytest.raises(ReportError, match=r"a figure of 0\.6 x 0\.7 inches has no room for 'regret'"):
            file_figure(one, one.numbers(analysis, x="time"), styles, 0.6, 0.7)


def test_of_many_labels_the_best_of_each_algorithm_stands_out(places: dict[str, Path]) -> None:
    with analysed(places["many"]) as analysis:
        styles, (part,) = Styles(analysis), analysis.within
        assert len(part.labels) == 22
        bold = styles.bold(part.labels)
        assert len(bold) == MANY
        assert {"Async", "Alone"} <= bold
        means = {one.label: np.mean(list(one.values("regret").values())) for one in part.contenders}
        assert min(part.labels[:20], key=lambda label: means[label]) in bold
        assert styles.bold(["Alone", "Async"]) == {"Alone", "Async"}
        (figure, *_) = inline_figures(panel("regret"), panel("regret").parts(panel("regret").numbers(analysis)), styles)
        names = [line.get_label() for line in figure.axes[0].lines]
        assert sorted(set(names)) == sorted({*bold, "others"})


def test_variants_share_a_colour_and_differ_in_shade(places: dict[str, Path]) -> None:
    with analysed(places["sweep"]) as analysis:
        styles = Styles(analysis)
        assert len({styles[label]["color"] for label in analysis.within[0].labels}) == 4
        looks = [styles[f"Sync [threshold={value}]"] for value in ("0.5", "2")]
        dark, light = (np.array(to_rgb(one["color"])) for one in looks)
        base = np.array(to_rgb(styles["Sync"]["color"]))
        ink, paper = (np.array(to_rgb(one)) for one in (INK, PAPER))
        for shade, other in ((dark, ink), (light, paper)):
            share = np.linalg.norm(shade - other) / np.linalg.norm(base - other)
            np.testing.assert_allclose(shade, share * base + (1 - share) * other, atol=0.01)
        assert looks[0]["marker"] != looks[1]["marker"]
