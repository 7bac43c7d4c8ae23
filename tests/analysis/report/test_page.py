import io
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import cast

import pandas as pd
import pytest
from matplotlib.figure import Figure

from coband.simulator.analysis.comparison import analysis, data
from coband.simulator.analysis.report import page as pages
from coband.simulator.analysis.report.catalogue import add_panel
from coband.simulator.analysis.report.page import page
from coband.simulator.analysis.report.panel import Panel
from coband.simulator.analysis.report.style import styled
from coband.simulator.analysis.report.svg import svg
from coband.simulator.experiments.store.manifest import Manifest
from coband.simulator.experiments.store.store import open_run
from tests.analysis.report.made import run

VOID = {"meta", "link", "input", "br"}
NAMED = "Async <b>&</b> $x$"


class Document(HTMLParser):
    """Reads a page: its text, attributes, and whether elements are closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []
        self.text: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self.ids.update(value or "" for name, value in attrs if name == "id")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script"):
            self.text.append(data)

    @property
    def words(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.text))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp("page") / "tiny")


@pytest.fixture(scope="module")
def text(made: Path) -> str:
    return report(made)


def report(*paths: Path, against: str | None = None) -> str:
    runs = [open_run(path) for path in paths]
    try:
        return page(analysis.Analysis(data.load(runs), against))
    finally:
        for one in runs:
            one.close()


def test_the_page_is_whole_and_needs_nothing(text: str) -> None:
    document = Document(text)
    assert document.open == []
    assert [name for name, count in document.ids.items() if count > 1] == []
    assert not re.search(r"https?://(?!www\.w3\.org)", text)
    for _, name, value in document.attributes:
        if name in ("href", "src"):
            assert value.startswith("#") or value == "data:,"
            assert value == "data:," or value[1:] in document.ids, f"nothing is called {value}"
        if name in ("aria-labelledby", "aria-describedby"):
            assert value in document.ids
    assert text.count("<table>") == text.count("<thead>") >= 10
    drawings = text.count('role="img" aria-label="')
    assert drawings == 19
    others = text.count('<svg viewBox="0 0 28.8 11.52" aria-hidden="true"') + text.count("<svg class=")
    assert text.count("<svg ") == drawings + others
    assert "#0072b2" not in text.partition("</style>")[2], "figures take their colours from the page"


def test_the_page_says_what_the_results_are(text: str) -> None:
    words = Document(text).words
    assert "A few agents, one of them slow." in words
    assert f"Sync − {NAMED}" in words
    assert "where both met the same arms and noise" in words
    assert re.search(r"has the lowest (regret|mean).* Its mean of [\d.]+ is \d+ % less than that of", words)
    assert re.search(r"At equal time, when the first label has finished \([\d.]+\), ", words)
    for heading in (
        "Who wins",
        "Results",
        "Regret",
        "Communication",
        "Differences",
        "Where the time went",
        "Critical path of rounds",
        "Whom rounds waited for",
        "Messages in space and time",
        "Scenario, and how to reproduce",
    ):
        assert heading in words
    assert "waiting: retransmission" in words
    assert "kind: shifted_exponential" in words


def test_only_what_repeats_is_said_to_repeat(made: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A live run and one of Python objects that are not installed have more than their scenario."""
    assert "coband run scenario.yaml" in text
    assert "coband show latest --table results" in text
    assert "the same fingerprints again" in text
    monkeypatch.setattr(pages, "panels", dict)
    with open_run(made) as one:
        assert pages.repeats(one)
        manifest = one.manifest
        for key in ("live", "not_installed"):
            one.manifest = cast(Manifest, {**manifest, key: {}})
            assert not pages.repeats(one), key
        text = page(analysis.Analysis(data.load([one])))
        assert "The run was made by <code>" in text
        assert "the same fingerprints again" not in text


def test_a_figure_is_placed_as_savefig_places_it() -> None:
    def drawn() -> Figure:
        made = Figure(layout="constrained")
        made.add_subplot().set_ylabel("two\nlines")
        return made

    with styled():
        drawn().savefig(saved := io.StringIO(), format="svg", metadata={"Date": None, "Creator": None})
        assert svg(drawn()) == saved.getvalue()


def test_without_a_trace_the_page_says_why_parts_are_missing(tmp_path: Path) -> None:
    text = report(run(tmp_path / "untraced", "--trace", "off", "--replications", "1", "--only", "Sync"))
    words = Document(text).words
    assert "The jobs kept no trace (trace: off), so times, rounds and messages cannot be shown" in words
    assert words.count("kept no trace") == 1, "no note twice"
    assert "so there are no intervals: differences may be chance" in words
    assert 'id="rounds"' not in text
    assert 'id="messages"' not in text
    assert 'id="differences"' not in text


def test_pure_exploration_has_errors_and_samples_instead_of_regret(tmp_path: Path) -> None:
    scenario = """
name: exploring
replications: 3
agents: {count: 5}
schedule: {kind: phases}
problem: {kind: pure_exploration, features: {kind: table, tasks: similar}, gap: 0.8}
algorithms:
  - {algorithm: co_kernel_fc, label: Together, delta: 0.1}
  - {algorithm: ind_rage, label: Alone, delta: 0.1}
"""
    words = Document(report(run(tmp_path / "exploring", scenario=scenario))).words
    assert 'id="regret"' not in words
    assert "Together needs the fewest samples." in words
    assert "of proportions, Wilson's." in words


def test_two_runs_of_different_seeds_are_compared_unpaired(made: Path, tmp_path: Path) -> None:
    other = run(tmp_path / "other", "--seed", "6", "--only", "Alone")
    with open_run(made) as first, open_run(other) as second:
        comparison = data.load([first, second])
        assert [one.label for one in comparison.contenders] == ["Sync", NAMED, "tiny: Alone", "other: Alone"]
        assert comparison.remarks() == (
            "tiny and other met different worlds (they differ in seed), so their differences are unpaired: "
            "they compare means over independent replications.",
        )
        found = analysis.Analysis(comparison, "other: Alone")
        assert {one.paired for one in found.shown(found.measures[0])} == {False}
        with pytest.raises(data.ReportError, match="there is no label 'Nobody'"):
            analysis.Analysis(comparison, "Nobody")


def test_a_run_of_the_same_seed_is_paired_though_its_network_differs(made: Path, tmp_path: Path) -> None:
    other = run(tmp_path / "calm", "--set", "network.loss=0", "--only", "Sync")
    with open_run(made) as first, open_run(other) as second:
        comparison = data.load([first, second])
        assert comparison.why_unpaired(comparison.contenders[0], comparison.contenders[-1]) == ()
        assert comparison.remarks() == ("tiny and calm also differ in network.loss.",)
        with pytest.raises(data.ReportError, match="is given 2 times"):
            data.load([first, first])


def test_a_panel_of_ones_own_is_in_the_page(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coband.simulator.analysis.report.catalogue._ADDED", {})

    def frame(found: analysis.Analysis) -> pd.DataFrame:
        return (
            found.table("agents").groupby(["label", "agent"], as_index=False, sort=False).agg(mean=("regret", "mean"))
        )

    add_panel(Panel("fair", "Regret of each agent", "Who has how much.", frame, lambda axis, *_: axis.plot([0], [0])))
    document = Document(report(made))
    assert ("a", "href", "#fair") in document.attributes
    assert "Regret of each agent" in document.words
    assert "Who has how much." in document.words
    assert document.open == []
