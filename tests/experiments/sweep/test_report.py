"""What reports and comparisons say about sweeps."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from coband.simulator.analysis.comparison import analysis, data
from coband.simulator.analysis.comparison.analysis import combinations
from coband.simulator.analysis.comparison.listing import listed
from coband.simulator.analysis.report import draw, words
from coband.simulator.analysis.report.catalogue import panel
from coband.simulator.analysis.report.drawing import inline_figures
from coband.simulator.analysis.report.page import page
from coband.simulator.analysis.report.style import Styles
from coband.simulator.analysis.report.sweeps import cells
from coband.simulator.experiments.runs.driver import drive
from coband.simulator.experiments.runs.study import study_of
from coband.simulator.experiments.statistics import estimates as statistics
from coband.simulator.experiments.store import directory, store
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
    expected = [("algorithms.K.alpha", "alpha", "50", 50.0), ("problem.noise", "noise", "0.2", 0.2)]
    assert [(one.key, one.name, one.text, one.number) for one in found.parameters] == expected
    assert found.scenario()["problem"]["noise"] == 0.2


def analysed(run: store.StoredRun) -> analysis.Analysis:
    return analysis.Analysis(data.load([run]))


def test_a_response_has_the_best_choice_within_an_environment(run: store.StoredRun) -> None:
    found = analysed(run)
    base, frame = cells(found), panel("sensitivity").numbers(found)
    assert list(dict.fromkeys(base["label"])) == ["D", "K"]
    assert [dict(one) for one in dict.fromkeys(tuple(one.items()) for one in base["faced"])] == [
        {"noise": "0.1"},
        {"noise": "0.2"},
    ]
    assert list(dict.fromkeys(frame["parameter"])) == ["alpha", "noise"]
    means = {
        alpha: statistics.mean([float(job.record["regret"]) for job in run.select(f"K [noise=0.2, alpha={alpha}]")])
        for alpha in ("0", "1", "50")
    }  # type: ignore[index, arg-type]
    alpha = frame[(frame["parameter"] == "alpha") & (frame["environment"] == "noise=0.2")]
    assert alpha["label"].unique().tolist() == ["K"], "D has no parameters to choose"
    assert dict(zip(alpha["value"], alpha["mean"], strict=True)) == pytest.approx(means)
    noise = frame[(frame["parameter"] == "noise") & (frame["label"] == "K") & (frame["value"] == "0.2")]
    assert noise["mean"].tolist() == [min(means.values())]
    assert panel("heat").numbers(found).empty, "one parameter to choose, and none of the environment beside it"


def test_heat_maps_are_of_choices_within_an_environment(tmp_path: Path) -> None:
    perform(study(tmp_path, GRID + "  algorithms.K.lam: [1, 2]\n"), tmp_path / "out")
    with store.open_run(tmp_path / "out") as run:
        frame = panel("heat").numbers(analysed(run))
    found = frame[["environment", "map"]].drop_duplicates().to_numpy().tolist()
    assert found == [["noise=0.1", "K: alpha, lam"], ["noise=0.2", "K: alpha, lam"]]
    assert len(frame) == 2 * 3 * 2


def test_numbers_stand_by_size_and_their_names_have_room(tmp_path: Path) -> None:
    """A search proposes values in any order, and many of them."""
    values = [0.123456 * (7 * n % 23 + 1) for n in range(23)]
    perform(study(tmp_path, f"grid:\n  algorithms.K.alpha: {values}\n"), tmp_path / "out")
    with store.open_run(tmp_path / "out") as run:
        found, one = analysed(run), panel("sensitivity")
        (figure,) = inline_figures(one, one.parts(one.numbers(found)), Styles(found))
    (axis,) = figure.axes
    names = [tick.get_text() for tick in axis.get_xticklabels()]
    shown = [float(name) for name in names]
    assert shown == sorted(shown)
    assert sum(len(name) + 2 for name in names) <= draw.CHARACTERS
    assert axis.get_xlim()[1] > 22, "all points are drawn"


def test_numbers_in_a_heat_map_have_the_better_contrast() -> None:
    axis, means = Figure().add_subplot(), np.linspace(0, 1, 101)[None]
    frame = pd.DataFrame({"down": "a", "down_value": "1", "across": "b", "across_value": range(101), "mean": means[0]})
    draw.heat(axis, frame, {})
    part = lambda v: np.where(v <= 0.04045, v / 12.92, ((v + 0.055) / 1.055) ** 2.4)  # noqa: E731
    light = part(axis.images[0].to_rgba(means)[0, :, :3]) @ (0.2126, 0.7152, 0.0722)  # of WCAG
    dark = part(np.array([0x1C, 0x1C, 0x1F]) / 255) @ (0.2126, 0.7152, 0.0722)
    contrast = {"#ffffff": 1.05 / (light + 0.05), "#1c1c1f": (light + 0.05) / (dark + 0.05)}
    best = np.maximum(*contrast.values())
    for cell, text in enumerate(axis.texts):
        assert contrast[str(text.get_color())][cell] > best[cell] - 0.1, (cell, text.get_color())


def test_variants_in_other_worlds_are_not_paired(run: store.StoredRun) -> None:
    comparison = data.load([run])
    by_label = {one.label: one for one in comparison.contenders}
    first = by_label["K [noise=0.1, alpha=1]"]
    assert comparison.why_unpaired(first, by_label["K [noise=0.1, alpha=50]"]) == ()
    assert comparison.why_unpaired(first, by_label["K [noise=0.2, alpha=1]"]) == ("problem.noise",)


def test_a_report_of_a_sweep_has_a_drawing_for_each_environment(run: store.StoredRun) -> None:
    found = analysed(run)
    parts = {
        name: [key for key, _ in panel(name).parts(panel(name).numbers(found))] for name in ("sensitivity", "regret")
    }
    assert parts["sensitivity"] == [("alpha", "noise=0.1"), ("alpha", "noise=0.2"), ("noise", "")]
    assert parts["regret"] == [(x, f"noise={noise}") for x in ("turns", "time") for noise in (0.1, 0.2)]
    assert panel("differences").numbers(found)["environment"].unique().tolist() == ["noise=0.1", "noise=0.2"]


def test_rivals_are_in_one_environment(run: store.StoredRun) -> None:
    found = analysis.Analysis(data.load([run]))
    labels = ["D", "K [alpha=0]", "K [alpha=1]", "K [alpha=50]"]
    assert [(one.environment, one.labels) for one in found.within] == [("noise=0.1", labels), ("noise=0.2", labels)]
    for one in found.within:
        assert len(one.differences["regret"]) == 6, "pairs of four labels"
        assert all(difference.paired for difference in one.differences["regret"])
        assert one.rankings[0].leaders[0] in labels
    listing = listed(found)
    assert {one["environment"] for one in listing["differences"]} == {"noise=0.1", "noise=0.2"}
    looks = [Styles(found)[label] for label in labels]
    assert len({look["color"] for look in looks}) == 4, "variants have shades of their algorithm's colour"
    assert len({(look["color"], look["marker"]) for look in looks}) == 4


def test_a_label_is_compared_in_every_environment(run: store.StoredRun) -> None:
    for reference in ("K [alpha=1]", "K [noise=0.2, alpha=1]"):
        found = analysis.Analysis(data.load([run]), reference)
        assert [one.reference for one in found.within] == ["K [alpha=1]"] * 2
    with pytest.raises(data.ReportError, match=r"there is no label 'K'.*there is D, K \[alpha=0\]"):
        analysis.Analysis(data.load([run]), "K")


def test_the_page_of_a_sweep_names_what_is_chosen_and_what_is_faced(run: store.StoredRun) -> None:
    text = re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", page(analysis.Analysis(data.load([run])))))
    assert re.search(r"\b2 algorithms|algorithms 2\b", text)
    assert "None" not in text.partition("Scenario, and how to reproduce")[0].partition("Who wins")[2]
    assert "all 6 comparisons of an environment hold together" in text
    assert "Labels are compared within one environment only" in text
    made = text.partition("Scenario, and how to reproduce")[2]
    assert re.search(r"made by coband sweep small.yaml . With the scenario file below, which is as it was given", made)
    assert "coband run scenario.yaml" not in made


def test_a_sweep_is_compared_with_runs_by_what_its_points_ran(run: store.StoredRun, tmp_path: Path) -> None:
    """Defaults are not differences, and what ``--set`` changed is one."""
    one = study(tmp_path, "", "problem.noise=0.2").variants[1].scenario
    drive(study_of(one), directory.create("one", tmp_path / "same"))
    for name, settings in (("other", ("seed=9", "agents.count=3")), ("noise", ("problem.noise=0.3",))):
        perform(study(tmp_path, GRID, *settings), tmp_path / name)
    with ExitStack() as stack:
        same, other, noise = (
            stack.enter_context(store.open_run(tmp_path / name)) for name in ("same", "other", "noise")
        )
        found = {one.path.name: data.load([run, one]).remarks() for one in (same, other, noise)}
        assert data.parsed(noise)["problem"]["noise"] == 0.3
        assert data.parsed(noise)["grid"] == {"algorithms.K.alpha": ["0", "1", "50"]}
        assert [one["label"] for one in data.parsed(noise)["algorithms"]] == ["D", "K"]
    differ = "out and {} met different worlds (they differ in {}), so their differences are unpaired"
    assert found["same"] == ()
    expected = [differ.format("other", "seed, agents.count"), differ.format("noise", "problem.noise")]
    assert [found[name][0].partition(":")[0] for name in ("other", "noise")] == expected


def test_other_runs_share_an_environment_only_if_its_keys_agree(run: store.StoredRun, tmp_path: Path) -> None:
    for name, grid in (("same", GRID), ("other", "grid:\n  algorithms.K.alpha: [0, 1]\n")):
        (tmp_path / name).mkdir()
        perform(study(tmp_path / name, grid), tmp_path / name / "out")
    with store.open_run(tmp_path / "same" / "out") as same, store.open_run(tmp_path / "other" / "out") as other:
        both = analysis.Analysis(data.load([run, same])).within
        assert [(one.environment, len(one.labels)) for one in both] == [("noise=0.1", 8), ("noise=0.2", 8)]
        apart = [(one.environment, one.labels) for one in analysis.Analysis(data.load([run, other])).within]
    assert [len(labels) for _, labels in apart] == [4, 4, 3]
    assert apart[2] == ("run=out", ["D", "K [alpha=0]", "K [alpha=1]"])


def test_variants_that_an_environment_does_not_affect_belong_to_all_of_it() -> None:
    whole = [{"noise": "0.1", "loss": "0"}, {"noise": "0.1", "loss": "1"}, {"noise": "0.2", "loss": "0"}]
    expected = [{"noise": "0.1", "loss": "0"}, {"noise": "0.1", "loss": "1"}, {"noise": "0.2", "loss": "0"}]
    assert combinations([{"noise": "0.1"}, *whole]) == expected
    assert combinations([{}]) == [{}]


def test_replications_for_tuning_are_no_results(tmp_path: Path) -> None:
    perform(study(tmp_path, GRID + "tuning: {replications: 2}\n"), tmp_path / "out")
    with store.open_run(tmp_path / "out") as run:
        assert len(data.load([run]).contenders) == 4
        assert set(cells(analysed(run))["n"]) == {2}, "the replications that chose"


def test_variants_that_needed_more_replications_are_not_the_best_for_that(tmp_path: Path) -> None:
    until = "until: {half_width: 8, on: regret, max_replications: 12}\n"
    perform(study(tmp_path, "grid: {algorithms.K.alpha: [0, 50]}\n" + until), tmp_path / "out")
    with store.open_run(tmp_path / "out") as run:
        found = analysed(run)
        own = cells(found).query("label == 'K'")
        assert own["n"].nunique() == 2
        best = own.loc[own["mean"].idxmin()]
        assert best["n"] < own["n"].max()
        assert "when the intervals at any time of all" in words.levels(found)
