"""What the pages say."""

import html
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from coband.simulator.cli.main import main
from coband.simulator.experiments.statistics.numerals import between
from coband.simulator.ui import pages as module
from tests.experiments.runs.fake_runs import perform
from tests.ui.made import Visitor, changed, copies, damage, serving

BAD = "<script>alert(1)</script>\u202eevil\x1b[31m\"'&"
TINY = """
name: tiny
seed: 7
replications: 3
agents: {count: 3}
schedule: {kind: rounds, turns: 5}
problem: {kind: contextual, arms: {kind: ball, dimension: 3, count: 8}, reward: {kind: cosine}, noise: 0.1}
algorithms:
  - {algorithm: async_kernel_ucb, label: Async, kernel: {kind: gaussian, gamma: 1.0}, alpha: 0.1, threshold: 0.5}
  - {algorithm: n_kernel_ucb, label: Alone, kernel: {kind: gaussian, gamma: 1.0}, alpha: 0.1}
"""


def coband(*words: object) -> None:
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    assert ended.value.code == 0


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("runs")
    file = found.parent / "tiny.yaml"
    file.write_text(TINY)
    coband("run", file, "--workers", 1, "--out", found / "a")
    coband("run", file, "--workers", 1, "--set", "schedule.turns=6", "--seed", 8, "--out", found / "b")
    perform(found / "fake", replications=2, turns=2, count=2)
    perform(found / "broken", replications=1, mischief=((0, "error"),), labels=("Often",))
    perform(found / "damaged", replications=1, turns=2, count=2)
    damage(found / "damaged")
    return found


@pytest.fixture(scope="module")
def visitor(root: Path) -> Iterator[Visitor]:
    with serving(root) as found:
        yield found


def text_of(page: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", re.sub(r"</(t[dh]|p|h\d|li|dd)>", "\n", page)))


def test_the_list(visitor: Visitor) -> None:
    page = visitor("/")
    assert "5 of 5 runs" in page
    rows = {row.split("</a>")[0].rpartition(">")[2]: text_of(row) for row in page.split("<tr id=")[1:]}
    assert list(rows) == sorted(rows, key=list(rows).index)
    assert set(rows) == {"a", "b", "fake", "broken", "damaged"}
    assert "6 of 6" in rows["a"]
    assert "async_kernel_ucb, n_kernel_ucb" in rows["a"]
    assert "failed" in rows["broken"]
    assert "0 of 1, 1 broke off" in rows["broken"]
    assert "damaged" in rows["damaged"]
    assert "run.sqlite is damaged" in rows["damaged"]
    assert 'data-live="0"' in page


@pytest.mark.parametrize(
    ("query", "places"),
    [
        ("words=async", ["b", "a"]),
        ("status=damaged", ["damaged"]),
        ("scenario=fake&status=failed", ["broken"]),
        ("words=x%00", []),
    ],
)
def test_the_list_is_filtered(visitor: Visitor, query: str, places: list[str]) -> None:
    page = visitor(f"/?{query}")
    assert re.findall(r'<a href="/run\?id=\w+">([^<]+)<', page) == places
    assert f"{len(places)} of 5 runs" in page


def test_one_run(visitor: Visitor, root: Path) -> None:
    text = text_of(visitor(f"/run?id={visitor.id('a')}"))
    for fact in (str(root / "a"), "6 finished", "async_kernel_ucb, n_kernel_ucb"):
        assert fact in text
    record = json.loads((root / "a/results.json").read_text())["results"][1]
    assert record["label"] == "Alone"
    assert between(record["mean"]["regret"], record["ci95"]["regret"]) in text
    assert "Jobs that broke off" not in text


def test_of_many_jobs_that_broke_off_it_is_said_how_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_FAILURES", 1)
    perform(tmp_path / "broken", replications=2, mischief=((0, "error"), (1, "error")), labels=("Often",))
    with serving(tmp_path) as visitor:
        text = text_of(visitor(f"/run?id={visitor.id('broken')}"))
    assert "Jobs that broke off: the first 1 of 2" in text
    assert text.count(": failed") == 1


def test_a_run_whose_job_broke_off(visitor: Visitor) -> None:
    text = text_of(visitor(f"/run?id={visitor.id('broken')}"))
    assert "Often, replication 0: failed" in text
    assert "ZeroDivisionError: a bug" in text


def test_a_sweep(tmp_path: Path) -> None:
    (tmp_path / "tiny.yaml").write_text(
        TINY.replace("replications: 3", "replications: 2") + "grid: {agents.count: [2, 3]}\n"
    )
    coband("sweep", tmp_path / "tiny.yaml", "--workers", 1, "--out", tmp_path / "runs/grid")
    with serving(tmp_path / "runs") as visitor:
        row = text_of(visitor("/").partition("<tr id=")[2])
        assert "grid sweep" in row
        assert "8 of 8" in row
        for path in ("/run", "/compare", "/scenario"):
            page = text_of(visitor(f"{path}?id={visitor.id('grid')}"))
            assert "count=3" in page or "grid:" in page, path


def test_the_search_of_a_frontier_is_called_so(tmp_path: Path) -> None:
    (tmp_path / "tiny.yaml").write_text(TINY)
    few = ("--replications", 2, "--trials", 2, "--budget", 14, "--workers", 1)
    coband("frontier", tmp_path / "tiny.yaml", *few, "--out", tmp_path / "runs/front")
    with serving(tmp_path / "runs") as visitor:
        row = text_of(visitor("/").partition("<tr id=")[2])
        assert "front frontier" in row
        assert "sweep" not in row


def test_a_damaged_run_breaks_no_page(visitor: Visitor) -> None:
    id = visitor.id("damaged")
    assert "run.sqlite is damaged" in visitor(f"/run?id={id}")
    for path in ("/scenario", "/compare", "/report"):
        status, _, text = visitor.raw(f"{path}?id={id}&id={visitor.id('fake')}", Cookie=visitor.cookie)
        assert status == 422
        assert "Choose one run" in text or "run.sqlite is damaged (" in text


def test_the_comparison_is_the_command_s(visitor: Visitor, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    coband("compare", root / "a", root / "b")
    printed = capsys.readouterr()
    written = visitor(f"/compare?id={visitor.id('a')}&id={visitor.id('b')}")
    assert written.count("<details open><summary>") == 1 < written.count("<details><summary>"), "the rest is folded"
    page = text_of(written)
    cells = {cell for line in printed.out.splitlines() for cell in re.split(r"  +", line.strip()) if cell}
    assert len(cells) > 50
    told = {cell for cell in cells if ": Differences" not in cell}
    alike = {cell for cell in told if cell.startswith("in all rows: ")}
    told = told - alike | {part for cell in alike for part in re.split("; |: ", cell)[1:]}
    assert {cell for cell in told if cell not in page} == set()
    for remark in printed.err.splitlines():
        assert remark in page
    against = text_of(visitor(f"/compare?id={visitor.id('a')}&against=Alone"))
    assert "Async − Alone" in against
    assert "against" in visitor(f"/compare?id={visitor.id('a')}").partition("<table")[0]  # there are two labels


def test_the_report_is_that_of_the_command(visitor: Visitor, root: Path, tmp_path: Path) -> None:
    coband("report", root / "a", "--out", tmp_path / "report.html")
    assert visitor(f"/report?id={visitor.id('a')}") == (tmp_path / "report.html").read_text(encoding="utf-8")


def test_reports_are_kept(visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    path = f"/report?id={visitor.id('fake')}"
    first = visitor(path)
    monkeypatch.setattr(module, "open_run", lambda path: pytest.fail("it is opened again"))
    assert visitor(path) == first


def test_the_scenario(visitor: Visitor, root: Path) -> None:
    page = visitor(f"/scenario?id={visitor.id('a')}")
    assert html.escape((root / "a/scenario.yaml").read_text(), quote=True).replace("&#x27;", "&#39;").rstrip() in page


def test_the_difference_of_scenarios(visitor: Visitor) -> None:
    page = visitor(f"/diff?id={visitor.id('a')}&id={visitor.id('b')}")
    assert re.findall(r"<code>([^<]+)</code>", page) == ["seed", "schedule.turns"]
    lines = re.findall(r'<span class="(?:removed|added)">([-+] [^\n<]+)\n', page)
    assert lines == ["- seed: 7", "+ seed: 8", "-   turns: 5", "+   turns: 6"]
    assert re.search(r'class="left-out">  \(\d+ equal lines\)', page)


def test_a_sweep_is_shown_as_given_and_compared_as_run(tmp_path: Path) -> None:
    file = tmp_path / "tiny.yaml"
    file.write_text(TINY.replace("replications: 3", "replications: 1"))
    coband("run", file, "--workers", 1, "--out", tmp_path / "runs/plain", "--trace", "off")
    sweep = "sweep", file, "--workers", 1, "--resume", "--out"
    coband(*sweep, tmp_path / "runs/same")
    coband(*sweep, tmp_path / "runs/set", "--set", "schedule.turns=4")
    with serving(tmp_path / "runs") as visitor:
        plain, same, changed = (visitor.id(name) for name in ("plain", "same", "set"))
        assert "No key that determines results is different." in visitor(f"/diff?id={plain}&id={same}")
        assert re.findall(r"<code>([^<]+)</code>", visitor(f"/diff?id={same}&id={changed}")) == ["schedule.turns"]
        assert "+   turns: 4" in visitor(f"/diff?id={plain}&id={changed}")
        assert "As it was run" in visitor(f"/scenario?id={plain}")
        assert "The scenario file as it was given;" in visitor(f"/scenario?id={same}")


def test_a_difference_shows_its_surroundings_and_counts_the_rest() -> None:
    before, context = [str(number) for number in range(39)], module.CONTEXT
    lines = module._difference("\n".join(before), "\n".join([*before[:10], "x", *before[11:]]))
    assert [(line.kind, line.text) for line in lines] == [
        ("left-out", f"({10 - context} equal lines)"),
        *[("same", str(number)) for number in range(10 - context, 10)],
        ("removed", "10"),
        ("added", "x"),
        *[("same", str(number)) for number in range(11, 11 + context)],
        ("left-out", f"({28 - context} equal lines)"),
    ]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/compare", "Choose at least one run in the list; 0 are chosen."),
        ("/diff?id=a", "Choose two runs in the list; 1 are chosen."),
        ("/diff?id=a&id=b&id=fake", "Choose two runs in the list; 3 are chosen."),
        ("/report", "Choose at least one run in the list; 0 are chosen."),
        ("/scenario", "Choose one run in the list; 0 are chosen."),
        ("/compare?id=a&against=Nobody", "there is no label 'Nobody' to compare with; there is Async, Alone."),
        ("/report?id=broken", "no job has finished, so there is nothing to report."),
    ],
)
def test_what_cannot_be_shown_says_why(visitor: Visitor, path: str, text: str) -> None:
    place = re.sub(r"id=(\w+)", lambda found: f"id={visitor.id(found[1])}", path)
    status, _, page = visitor.raw(place, Cookie=visitor.cookie)
    assert (status, text in html.unescape(page)) == (422, True)


def test_a_defect_breaks_one_page_alone(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "_facts", lambda *words: 1 / 0)
    status, _, page = visitor.raw(f"/run?id={visitor.id('a')}", Cookie=visitor.cookie)
    assert status == 500
    assert "a defect of coband" in page
    assert "ZeroDivisionError" not in page
    assert "ZeroDivisionError" in capfd.readouterr().err
    assert visitor("/")


def test_names_cannot_deceive(tmp_path: Path) -> None:
    """Labels, scenarios, algorithms and directories with HTML, control characters and a change of direction."""
    name = BAD.replace("/", "")
    perform(tmp_path / name, replications=2, turns=2, count=2, labels=(BAD, "Seldom"))
    changed(tmp_path / name, scenario=BAD, command=["coband", BAD])
    with serving(tmp_path) as visitor:
        id = visitor.id(name)
        found = [visitor(f"{path}?id={id}") for path in ("/", "/run", "/compare", "/scenario", "/report")]
        found.append(visitor("/?words=%3Cscript%3E&scenario=%22%3E%3Cb%3E"))
        status, _, text = visitor.raw(f"/compare?id={id}&against=%3Cscript%3E%1b", Cookie=visitor.cookie)
        assert status == 422
    for page in (*found, text):
        assert "<script>alert" not in page
        assert "\u202e" not in page
        assert "\x1b" not in page
    assert "&lt;script&gt;alert(1)&lt;" in found[0]
    assert "\\u202eevil\\u001b[31m" in found[0]


def test_two_hundred_runs_are_listed_quickly(tmp_path: Path) -> None:
    copies(tmp_path, 200)
    with serving(tmp_path) as visitor:
        page = visitor("/")
        assert page.count("<tr id=") == 200
        assert any(_seconds(lambda: visitor("/")) < 1.0 for _ in range(5))
        assert any(_cpu(lambda: visitor.server.pages.catalogue.entries()) < 0.2 for _ in range(5))
        page = visitor("/?scenario=study3&since=2026-03-01")
        assert page.count("<tr id=") == len([i for i in range(56, 200) if i % 5 == 3])


def _seconds(work: object) -> float:
    begun = time.monotonic()
    assert callable(work)
    work()
    return time.monotonic() - begun


def _cpu(work: object) -> float:
    begun = time.thread_time()
    assert callable(work)
    work()
    return time.thread_time() - begun


def test_many_runs_are_listed_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ROWS", 3)
    copies(tmp_path, 5)
    with serving(tmp_path) as visitor:
        page = visitor("/")
    assert page.count("<tr id=") == 3
    assert "5 of 5 runs; the newest 3 are listed" in page


def test_an_empty_directory(tmp_path: Path) -> None:
    with serving(tmp_path) as visitor:
        assert "There is no run here yet" in visitor("/")
