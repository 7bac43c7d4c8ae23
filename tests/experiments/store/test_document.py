"""docs/store.md: its queries give the numbers of the results, and the tables hold what it says."""

import hashlib
import json
import re
import sqlite3
import struct
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import coband
from coband.simulator.analysis.traces.query import query
from coband.simulator.core.engine import RunResult
from coband.simulator.core.records.trace import EVENTS
from coband.simulator.experiments.store.recording import Recording
from tests.analysis.traces import runs
from tests.api.conftest import STUDY
from tests.experiments.runs.fake_runs import ROOT

PAGE = (ROOT / "docs" / "store.md").read_text()
QUERIES = dict(re.findall(r"\n\n([^\n]+):\n\n```sql\n(.*?)```", PAGE, re.DOTALL))
FAULTS = (
    "network.loss=0.2",
    "network.duplicate=0.2",
    "network.retransmission={timeout: 0.5, max_attempts: 2}",
    "agents.availability={kind: markov_on_off, mean_up: 8, mean_down: 2}",
    "replications=2",
    "expect=[]",
)
Row = tuple[Any, ...]


class Made(NamedTuple):
    """A run, and what its jobs gave, by label and replication, before any of it was stored."""

    path: Path
    given: dict[tuple[str, int], RunResult]

    @property
    def results(self) -> list[dict[str, Any]]:
        return json.loads((self.path / "results.json").read_text())["results"]

    def ask(self, about: str) -> list[Row]:
        return list(query(self.path / "run.sqlite", QUERIES[about], 60.0).rows)

    def events(self) -> Iterator[sqlite3.Row]:
        with closing(sqlite3.connect(self.path / "run.sqlite")) as connection:
            connection.row_factory = sqlite3.Row
            yield from connection.execute(
                "SELECT events.*, label, replication FROM events JOIN jobs USING (job) ORDER BY events.job, seq"
            )

    def names(self, job: int) -> list[str]:
        with closing(sqlite3.connect(self.path / "run.sqlite")) as connection:
            rows = connection.execute("SELECT code, text FROM names WHERE job = ? ORDER BY code", (job,)).fetchall()
        assert [code for code, _ in rows] == list(range(len(rows)))
        return [text for _, text in rows]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Made]]:
    place, given = tmp_path_factory.mktemp("document"), {}
    store = Recording.store

    def remembering(self: Recording, result: RunResult) -> Any:
        given[self._job.label, self._job.replication] = result
        return store(self, result)

    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Recording, "store", remembering)
        for name, text, settings in (
            ("star", runs.STAR, ("replications=3", "expect=[]", "network.loss=0.2")),
            ("tasks", runs.TASKS, ("replications=2",)),
            ("faults", runs.STAR, FAULTS),
            ("full", runs.STAR, ("trace=full", "expect=[]")),
            ("batches", runs.TASKS, ("trace=full",)),
            ("graph", runs.GRAPH, ()),
        ):
            path = runs.perform(text, place / name, *settings)
            found[name] = Made(path, dict(given))
            given.clear()
    grid = {"algorithms.Async.threshold": [0.2, 1.0], "agents.count": [2, 3]}
    tuning = {"on": "regret", "replications": 2, "over": ["algorithms.Async.threshold"]}
    coband.sweep(
        {**STUDY, "trace": "off", "grid": grid, "tuning": tuning}, workers=1, out=place / "sweep", progress=False
    )
    found["sweep"] = Made(place / "sweep", {})
    return found


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def grid_points(made: dict[str, Made]) -> tuple[list[Row], list[Row]]:
    expected = []
    for entry in made["sweep"].results:
        if entry["phase"] == "fresh":
            numbers = [one["regret"] for one in entry["replications"]]
            for name, text in entry["parameters"].items():
                expected.append((entry["entry"], entry["label"], name, text, mean(numbers), len(numbers)))
    found = made["sweep"].ask("The points of a grid by algorithm, the best first")
    assert [row[0] for row in found] == sorted(row[0] for row in found)
    assert all(one[4] <= other[4] for one, other in pairwise(found) if one[0] == other[0])
    return sorted(found), sorted(expected)


def first_sends(made: dict[str, Made]) -> tuple[list[Row], list[Row]]:
    run, expected = made["star"], []
    for row in run.events():
        if row["event"] == EVENTS.index("send") and row["node"] == -1 and row["time"] <= 10:
            peer = "everyone" if row["peer"] == -2 else f"agent {row['peer']}"
            kind = run.names(row["job"])[row["kind"]]
            expected.append((row["label"], row["replication"], row["time"], peer, kind, row["scalars"] * row["value"]))
    everything = {
        (one["label"], r["replication"]): r["downlink_scalars"] for one in run.results for r in one["replications"]
    }
    early = {key: sum(row[5] for row in expected if row[:2] == key and row[2] <= 10) for key in everything}
    assert all(early[key] <= everything[key] for key in everything)
    return run.ask("What the server sent in the first ten time units"), expected


def on_the_way(made: dict[str, Made]) -> tuple[list[Row], list[Row]]:
    run, sent, delays = made["star"], {}, defaultdict(list)
    for row in run.events():
        if row["event"] == EVENTS.index("send"):
            sent[row["job"], row["message"]] = row["time"]
        elif row["event"] == EVENTS.index("deliver"):
            key = row["label"], run.names(row["job"])[row["kind"]]
            delays[key].append(row["time"] - sent[row["job"], row["message"]])
    expected = [(*key, len(found), mean(found), max(found)) for key, found in delays.items()]
    return run.ask("Time on the way, by kind of message"), sorted(expected)


def chain(made: dict[str, Made]) -> tuple[list[Row], list[Row]]:
    run = made["star"]
    rows = {row["seq"]: row for row in run.events() if row["job"] == 0}
    number, expected = 40, []
    while number >= 0:
        row = rows[number]
        node = "server" if row["node"] == -1 else f"agent {row['node']}"
        kind = None if row["kind"] == -1 else run.names(0)[row["kind"]]
        expected.append((row["seq"], row["time"], EVENTS[row["event"]], node, kind))
        number = row["cause"]
    assert expected[-1][2] == "turn"
    about = "The causal chain of an event (here event 40 of job 0; `coband trace why` does the same)"
    return run.ask(about), expected


ANSWERS: dict[str, Callable[[dict[str, Made]], tuple[list[Row], list[Row]]]] = {
    "The points of a grid by algorithm, the best first": grid_points,
    "What the server sent in the first ten time units": first_sends,
    "Time on the way, by kind of message": on_the_way,
    "The causal chain of an event (here event 40 of job 0; `coband trace why` does the same)": chain,
}


def test_every_query_is_tried() -> None:
    assert list(QUERIES) == list(ANSWERS)
    assert len(QUERIES) == PAGE.count("```sql")


@pytest.mark.parametrize("about", ANSWERS)
def test_a_query_gives_the_numbers_of_the_results(made: dict[str, Made], about: str) -> None:
    found, expected = ANSWERS[about](made)
    assert len(found) == len(expected) > 0
    for one, other in zip(found, expected, strict=True):
        for value, right in zip(one, other, strict=True):
            assert value == pytest.approx(right, rel=1e-12) if isinstance(right, float) else value == right


NOTES = ("trigger", "apply", "model", "eliminate", "stop")
COPIES = ("deliver", "drop", "duplicate", "retransmit", "expire")


@pytest.mark.parametrize("name", ["star", "tasks", "faults", "full", "batches", "graph"])
def test_values_and_details(made: dict[str, Made], name: str) -> None:
    """What the table of the columns of ``events`` says of ``value``, ``detail``, ``node`` and the kinds of timers."""
    full, seen = name in ("full", "batches"), set()
    turns: dict[tuple[int, int], int] = defaultdict(int)
    for row in made[name].events():
        event, value, detail = EVENTS[row["event"]], row["value"], row["detail"]
        seen.add(event)
        if event in NOTES:
            assert (value, detail) == (0.0, f"{float(detail):.9g}")
            continue
        batch = detail is not None and event in ("choose", "reward") and '"pulls"' in detail
        if batch:
            assert set(json.loads(detail)) == {"arm", "pulls"}
        else:
            assert (detail is not None) == (full and event in ("choose", "send"))
        if event == "turn":
            turns[row["job"], row["node"]] += 1
            assert value == turns[row["job"], row["node"]]
        elif event in COPIES:
            assert value >= 1
            assert event != "retransmit" or name != "faults" or value == 1  # a second copy is the last one there
            assert event != "expire" or value == 2
        elif event == "timer":
            assert made[name].names(row["job"])[row["kind"]] in ("resend", "silence", "patience")
            assert (value, row["peer"] >= -1) == (0.0, True)
        elif event in ("down", "up"):
            assert 0.0 <= value <= row["time"]
        elif event not in ("choose", "reward", "send"):
            assert value == 0.0
    everything = {"faults": {"timer", "expire", "duplicate", "down", "up", "drop", "retransmit"}, "batches": {"stop"}}
    assert seen >= {"turn", "choose", "reward", "send", "deliver", *everything.get(name, set())}


@pytest.mark.parametrize("name", ["star", "tasks", "faults", "full", "graph"])
def test_fingerprint_and_ledger(made: dict[str, Made], name: str) -> None:
    """What the page says of fingerprints, of the ledger and of the tables beside it, in plain loops over the events."""
    run = made[name]
    (form,) = re.findall(r"little-endian as `(<\w+)`", PAGE)
    digests: dict[int, Any] = defaultdict(hashlib.sha256)
    counts: dict[tuple[int, str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    rounds: dict[tuple[int, int], int] = defaultdict(int)
    for row in run.events():
        columns = list(row)[1:-3]  # without job, detail, label and replication
        digests[row["job"]].update(struct.pack(form, *columns))
        if row["event"] == EVENTS.index("send"):
            way = "down" if row["node"] == -1 else "up" if row["peer"] == -1 else "peer"
            one = counts[row["job"], run.names(row["job"])[row["kind"]], way]
            for place, more in enumerate((1, int(row["value"]), int(row["value"]) * row["scalars"])):
                one[place] += more
            if row["round"] >= 0:
                rounds[row["job"], row["round"]] += int(row["value"]) * row["scalars"]
    with closing(sqlite3.connect(run.path / "run.sqlite")) as connection:
        booked = connection.execute("SELECT job, kind, direction, sends, messages, scalars FROM ledger").fetchall()
        prints = connection.execute("SELECT job, fingerprint, scalars, result FROM jobs").fetchall()
        by_round = connection.execute("SELECT job, round, scalars FROM ledger_by_round").fetchall()
        agents = dict(connection.execute("SELECT job, count(*) FROM agents GROUP BY job"))
    assert {tuple(row[:3]): list(row[3:]) for row in booked} == dict(counts)
    assert {row[:2]: row[2] for row in by_round} == dict(rounds)
    for job, fingerprint, scalars, result in prints:
        digests[job].update("\n".join(run.names(job)).encode())
        assert digests[job].hexdigest() == fingerprint
        assert scalars == sum(found[2] for key, found in counts.items() if key[0] == job)
        assert json.loads(result)["scalars_per_agent"] == pytest.approx(scalars / agents[job])


def test_ages_are_means_of_decisions(made: dict[str, Made]) -> None:
    with closing(sqlite3.connect(made["star"].path / "run.sqlite")) as connection:
        ages = connection.execute("SELECT job, age, age_time FROM ages ORDER BY job, turn").fetchall()
        decisions = connection.execute("SELECT job, age, age_time FROM decisions ORDER BY job, seq").fetchall()
        choices = connection.execute("SELECT job, seq FROM trace WHERE event = 'choose' ORDER BY job, seq").fetchall()
        known = connection.execute("SELECT job, seq FROM decisions ORDER BY job, seq").fetchall()
    assert len(ages) == len(decisions) == 5 * 3 * 48  # a row for each turn
    for one, other in zip(ages, decisions, strict=True):
        assert one[:2] == other[:2]
        assert one[2] is None if other[2] is None else one[2] == pytest.approx(other[2], rel=1e-9)
    assert known == choices


def test_meta_and_manifest(made: dict[str, Made]) -> None:
    path = made["star"].path
    with closing(sqlite3.connect(path / "run.sqlite")) as connection:
        meta = dict(connection.execute("SELECT key, value FROM meta"))
    assert meta["scenario"] == (path / "scenario.yaml").read_text()
    assert meta["manifest"] == (path / "manifest.json").read_text()
    assert set(meta) == {"scenario", "manifest"}


def test_the_folder_of_a_sweep(made: dict[str, Made]) -> None:
    names = {file.name for file in made["sweep"].path.iterdir()}
    files = "manifest.json results.json run.sqlite scenario.yaml status.json"
    assert names == {"done", "lock", "lock.owner", *files.split()}
    assert all(f"`{name}" in PAGE for name in names)
    with closing(sqlite3.connect(made["sweep"].path / "run.sqlite")) as connection:
        found = connection.execute("SELECT DISTINCT phase, chosen FROM variants").fetchall()
    assert set(found) <= {("fresh", 1), ("fresh", 0), ("tuning", None)}
    assert ("tuning", None) in found
