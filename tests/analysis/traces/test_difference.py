"""The first causally different event, and what is not a difference."""

import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from coband.simulator.analysis.traces.difference import TraceComparison, compare
from coband.simulator.analysis.traces.reading import TraceReader, one_job
from coband.simulator.core.records import trace as tr
from coband.simulator.experiments.store.store import open_run
from tests.analysis.traces import runs

NAMES = tr.COLUMNS


def compared(first: Path, second: Path, label: str | None = None) -> TraceComparison:
    with open_run(first) as here, open_run(second) as there:
        return compare(TraceReader(one_job(here, label)), TraceReader(one_job(there, label)))


def track(row: tr.Row) -> object:
    """What must keep its order: a node, a link; what several agents share, by its cause."""
    if row.node == tr.EVERYONE:
        return "after", row.cause
    link = row.event in (tr.DROP, tr.DUPLICATE, tr.EXPIRE, tr.RETRANSMIT)
    return ("link", row.node, row.peer) if link else row.node


def shuffled(rows: list[tr.Row], rng: np.random.Generator) -> list[tr.Row]:
    """The same events in another order: within a moment any that keeps causes and tracks; renumbered."""
    order: list[tr.Row] = []
    start = 0
    while start < len(rows):
        end = start
        while end < len(rows) and rows[end].time == rows[start].time:
            end += 1
        left = rows[start:end]
        while left:
            here = {row.seq for row in left}
            seen: set[object] = set()
            ready = []
            for row in left:
                if track(row) not in seen and row.cause not in here:
                    ready.append(row)
                seen.add(track(row))
            chosen = ready[rng.integers(len(ready))]
            left.remove(chosen)
            order.append(chosen)
        start = end
    numbers = {row.seq: number for number, row in enumerate(order)} | {-1: -1}
    sent = dict.fromkeys(row.message for row in order if row.message >= 0)
    messages = {message: number + 7 for number, message in enumerate(sent)} | {-1: -1}
    return [
        row._replace(seq=numbers[row.seq], message=messages[row.message], cause=numbers[row.cause]) for row in order
    ]


def rewritten(run: Path, out: Path, seed: int, change: int | None = None) -> Path:
    """A copy with shuffled events and names; with the value of event ``change`` altered."""
    shutil.copytree(run, out)
    rng = np.random.default_rng(seed)
    connection = sqlite3.connect(out / "run.sqlite")
    with connection:
        rows = list(map(tr.Row._make, connection.execute(f"SELECT {', '.join(NAMES)} FROM events ORDER BY seq")))
        count = connection.execute("SELECT count(*) FROM names").fetchone()[0]
        codes = dict(enumerate(rng.permutation(count).tolist())) | {-1: -1}
        if change is not None:
            rows[change] = rows[change]._replace(value=rows[change].value + 1)
        rows = shuffled(rows, rng)
        connection.execute("DELETE FROM events")
        connection.executemany(
            f"INSERT INTO events VALUES (0, {', '.join('?' * len(NAMES))})",
            [row._replace(kind=codes[row.kind], reason=codes[row.reason]) for row in rows],
        )
        connection.execute("UPDATE names SET code = code + 1000")
        for old, new in codes.items():
            connection.execute("UPDATE names SET code = ? WHERE code = ?", (new, old + 1000))
    connection.close()
    return out


SOURCES = {
    "ties": (runs.STAR, ("agents.compute=0", "network.latency=0"), ("Sync",)),
    "lossy": (runs.STAR, ("network.loss=0.3",), ("One",)),
    "direct": (runs.GRAPH, (), ()),
    "hops": (runs.GRAPH, ("network.local.mode=hop_by_hop",), ()),
    "tasks": (runs.TASKS, (), ()),
}


@pytest.mark.parametrize("source", SOURCES)
def test_reordering_and_renumbering_is_no_difference(source: str, tmp_path: Path) -> None:
    text, settings, only = SOURCES[source]
    run = runs.perform(text, tmp_path / "run", *settings, only=only)
    for seed in range(3):
        other = rewritten(run, tmp_path / f"other{seed}", seed)
        found = compared(run, other)
        assert (found.same, found.here, found.there) == (True, None, None)
        assert compared(other, run).same
        with open_run(run) as stored:
            assert found.common == sum(1 for _ in stored.events())


@pytest.mark.parametrize("source", SOURCES)
def test_one_altered_event_is_found_in_spite_of_reordering(source: str, tmp_path: Path) -> None:
    text, settings, only = SOURCES[source]
    run = runs.perform(text, tmp_path / "run", *settings, only=only)
    with open_run(run) as stored:
        events = list(stored.events())
    rng = np.random.default_rng(1)
    for number, change in enumerate(rng.integers(len(events), size=3).tolist()):
        found = compared(run, rewritten(run, tmp_path / f"other{number}", number, change))
        assert found.here == events[change]
        assert found.columns == ("value",)
        assert found.there.value == found.here.value + 1  # type: ignore[operator]


def test_another_parameter_shows_in_the_first_choice_that_it_changes(tmp_path: Path) -> None:
    first = runs.perform(runs.STAR, tmp_path / "a", only=("Async",))
    second = runs.perform(runs.STAR, tmp_path / "b", "algorithms.*.alpha=5.0", only=("Async",))
    found = compared(first, second)
    assert (found.here.event, found.there.event, found.columns) == ("choose", "choose", ("value",))
    earlier = []
    for out in (first, second):
        with open_run(out) as run:
            events = [event for event in run.events() if event.time < found.time]
            earlier.append([(event.node, event.value) for event in events if event.event == "choose"])
    assert earlier[0] == earlier[1]
    assert len(earlier[0]) > 4


def test_another_threshold_shows_in_a_trigger(tmp_path: Path) -> None:
    first = runs.perform(runs.STAR, tmp_path / "a", only=("Async",))
    second = runs.perform(runs.STAR, tmp_path / "b", "algorithms.Async.threshold=50", only=("Async",))
    found = compared(first, second)
    assert found.here.event == "trigger"
    assert (compared(second, first).there, compared(second, first).common) == (found.here, found.common)


def test_a_trace_that_ends_early(tmp_path: Path) -> None:
    run = runs.perform(runs.STAR, tmp_path / "run", only=("Alone",))
    shutil.copytree(run, tmp_path / "cut")
    connection = sqlite3.connect(tmp_path / "cut" / "run.sqlite")
    with connection:
        connection.execute("DELETE FROM events WHERE seq >= 100")
    connection.close()
    found = compared(run, tmp_path / "cut")
    assert found.common == 100
    assert found.there is None
    assert found.here.seq == 100
