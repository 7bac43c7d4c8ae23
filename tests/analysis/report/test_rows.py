"""Figures with a row for each label: at the height of a label stand its own numbers, and the table says the same."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes

from coband.simulator.analysis.comparison import data, tables
from coband.simulator.analysis.comparison.analysis import Analysis
from coband.simulator.analysis.report.catalogue import panel
from coband.simulator.analysis.report.drawing import file_figure, inline_figures
from coband.simulator.analysis.report.style import Styles
from coband.simulator.experiments.statistics import estimates as statistics
from coband.simulator.experiments.statistics.numerals import between
from coband.simulator.experiments.store.store import StoredRun, open_run
from coband.simulator.experiments.sweep.study import load_study
from tests.analysis.report.made import SCENARIO, run
from tests.experiments.sweep.sweeps import perform

PLAIN = SCENARIO.replace('"Async <b>&</b> $x$"', "Async")


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoredRun]:
    with open_run(run(tmp_path_factory.mktemp("rows") / "tiny", scenario=PLAIN)) as opened:
        yield opened


@pytest.fixture(scope="module")
def analysis(stored: StoredRun) -> Analysis:
    return Analysis(data.load([stored]))


def values(stored: StoredRun, key: str) -> dict[str, list[float]]:
    found: dict[str, list[float]] = defaultdict(list)
    for job in stored.jobs:
        found[job.label].append(float((job.record or {})[key]))
    return found


def means(stored: StoredRun, key: str) -> dict[str, float]:
    return {label: sum(found) / len(found) for label, found in values(stored, key).items()}


def rows_of(axis: Axes, names: Mapping[float, str] | None = None) -> dict[str, float]:
    """Label -> where the last mark beside it stands, or where its bars end; the first label stands on top."""
    names = names or names_of(axis)
    low, high = axis.get_ylim()
    assert low > max(names) >= min(names) > high
    found = {names[float(y)]: float(x) for line in axis.lines for x, y in _marks(line) if float(y) in names}
    for bar in axis.patches:
        name = names[round(bar.get_y() + bar.get_height() / 2, 6)]  # type: ignore[attr-defined]
        found[name] = max(found.get(name, 0.0), bar.get_x() + bar.get_width())  # type: ignore[attr-defined]
    return found


def _marks(line: Any) -> list[tuple[float, float]]:
    places = list(zip(line.get_xdata(), line.get_ydata(), strict=True))
    return places if len(places) == 1 else []


def names_of(axis: Axes) -> dict[float, str]:
    return {float(y): text.get_text() for y, text in zip(axis.get_yticks(), axis.get_yticklabels(), strict=True)}


def drawn(analysis: Analysis, name: str) -> list[tuple[tuple[str, ...], Axes]]:
    """(what a part of a panel shows, its axes) as the page has them."""
    one = panel(name)
    parts = one.parts(one.numbers(analysis))
    figures = inline_figures(one, parts, Styles(analysis))
    return [(key, figure.axes[0]) for (key, _), figure in zip(parts, figures, strict=True)]


def expected_of(analysis: Analysis, stored: StoredRun) -> dict[tuple[str, ...], dict[str, float]]:
    """What the rows of a drawing must show, by the name of the panel and what it shows."""
    found = {("results", one.heading): means(stored, one.name) for one in analysis.measures}
    mean, pairs = means(stored, "regret"), [("Sync", "Async"), ("Sync", "Alone"), ("Async", "Alone")]
    found["differences",] = {f"{a} − {b}": mean[a] - mean[b] for a, b in pairs}
    found["communication", "scalars"] = means(stored, "scalars")
    found["communication", "messages"] = means(stored, "messages")
    timings = {one.contender.label: one for one in analysis.timings}
    found["times",] = {label: float(one.shares.mean(axis=0).sum()) for label, one in timings.items()}
    found["rounds",] = {label: float(sum(one.parts)) for label, one in timings.items() if one.all_rounds}
    return found


def test_every_row_shows_the_numbers_of_its_label(analysis: Analysis, stored: StoredRun) -> None:
    expected = expected_of(analysis, stored)
    assert means(stored, "regret")["Sync"] != means(stored, "regret")["Alone"]
    seen = set()
    for name in ("results", "differences", "communication", "times", "rounds"):
        for key, axis in drawn(analysis, name):
            wanted, found = expected[name, *key], rows_of(axis)
            seen.add((name, *key))
            assert found == pytest.approx({label: wanted.get(label, 0.0) for label in found}), key
            assert {label for label, mean in wanted.items() if mean} <= found.keys(), key
    assert seen == expected.keys()


def test_every_row_of_a_file_shows_the_numbers_of_its_label(analysis: Analysis, stored: StoredRun) -> None:
    for (name, *key), wanted in expected_of(analysis, stored).items():
        one = panel(name)
        frame = one.numbers(analysis, **{one.each: key[0]} if one.each else {})
        (axis,) = file_figure(one, frame, Styles(analysis), 7.0, 4.0).axes
        found = {label.replace("\n", " "): mean for label, mean in rows_of(axis).items()}
        assert found == pytest.approx({label: wanted.get(label, 0.0) for label in found}), name
        assert {label for label, mean in wanted.items() if mean} <= found.keys(), name


def test_intervals_stand_in_the_row_of_their_mean(analysis: Analysis, stored: StoredRun) -> None:
    for (_, axis), measure in zip(drawn(analysis, "results"), analysis.measures, strict=True):
        spans = {float(line.get_ydata()[0]): list(line.get_xdata()) for line in axis.lines if len(line.get_xdata()) > 1}  # type: ignore[index]
        for row, found in enumerate(values(stored, measure.name).values()):
            low, high = statistics.interval(found) or (np.nan, np.nan)
            assert spans[row] == pytest.approx([low, high])


def test_the_table_of_results_has_the_mean_and_interval_of_every_label(analysis: Analysis, stored: StoredRun) -> None:
    table = tables.results(analysis)
    assert table.header[:3] == ("label", "algorithm", "n")
    assert [row[:3] for row in table.rows] == [
        ("Sync", "approx_dis_kernel_ucb", "3"),
        ("Async", "async_kernel_ucb", "3"),
        ("Alone", "n_kernel_ucb", "3"),
    ]
    for column, measure in enumerate(analysis.measures, start=3):
        assert table.header[column] == measure.heading
        for row in table.rows:
            found = values(stored, measure.name)[row[0]]
            mean = sum(found) / len(found)
            assert row[column] == between(mean, statistics.interval(found))
            assert float(row[column].split(" ± ")[0].replace(",", "")) == pytest.approx(mean, rel=0.05, abs=1e-9)


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Analysis]:
    folder = tmp_path_factory.mktemp("swept")
    file = folder / "swept.yaml"
    file.write_text(f"{PLAIN}grid:\n  problem.noise: [0.1, 0.3]\n")
    perform(load_study(file), folder / "out")
    with open_run(folder / "out") as opened:
        yield Analysis(data.load([opened]))


def test_each_environment_has_a_drawing_of_its_own_numbers(swept: Analysis) -> None:
    found = dict(drawn(swept, "results"))
    for one in swept.within:
        axis = found[swept.measures[0].heading, one.environment]
        regret = {each.label: np.mean(list(each.values(swept.measures[0].name).values())) for each in one.contenders}
        assert rows_of(axis) == pytest.approx(regret)
    axes = [axis for key, axis in drawn(swept, "results") if key[0] == "regret"]
    assert axes[0].get_xlim() == axes[1].get_xlim(), "drawings side by side have one axis"
