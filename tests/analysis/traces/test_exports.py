"""Traces for other tools: tables and Perfetto."""

import gzip
import json
import re
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coband.simulator.analysis.traces.exporting import export
from coband.simulator.experiments.store.store import Event, StoreError, open_run
from tests.analysis.traces import runs

LOSSY = ("network.loss=0.2", "network.bandwidth=200")
RUNS: dict[str, tuple[str, tuple[str, ...]]] = {
    "lossy": (runs.STAR, LOSSY),
    "ties": (runs.STAR, ("agents.compute=0", "network.latency=0", "agents.count=70", "schedule.turns=1")),
    "late": (runs.STAR, ("schedule.interval=1e7",)),
    "owed": (runs.LINEAR, ("agents.reward_delay={kind: exponential, rate: 0.2}",)),
    "direct": (runs.GRAPH, ()),
    "hops": (runs.GRAPH, ("network.local.mode=hop_by_hop", "network.latency=0.1")),
    "tasks": (runs.TASKS, ()),
}


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("exports")
    return {name: runs.perform(text, place / name, *settings) for name, (text, settings) in RUNS.items()}


def exported(run: Path, form: str, out: Path, label: str | None = None) -> Path:
    with open_run(run) as source:
        export(source, source.select(label), form, out)
    return out


def events_of(run: Path) -> list[Event]:
    with open_run(run) as source:
        return list(source.events())


def test_parquet_holds_the_same_rows(stored: dict[str, Path], tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    for name in ("lossy", "direct", "tasks"):
        table = parquet.read_table(exported(stored[name], "parquet", tmp_path / f"{name}.parquet"))
        assert [Event(**row) for row in table.to_pylist()] == events_of(stored[name])


@pytest.mark.parametrize("name", RUNS)
def test_perfettos_rules_are_kept(stored: dict[str, Path], tmp_path: Path, name: str) -> None:
    items = json.loads(exported(stored[name], "perfetto", tmp_path / "trace.json").read_text())["traceEvents"]
    events = events_of(stored[name])
    check_slices(items)
    check_arrows(items, events)
    check_spans(items)
    tracks = {(item["pid"], item["tid"]) for item in items if item["ph"] == "M" and item["name"] == "thread_name"}
    assert {(item["pid"], item["tid"]) for item in items if item["ph"] == "X"} == tracks
    check_threads(items)
    turns = sum(event.event == "turn" for event in events)
    assert sum(item["name"].startswith("turn ") for item in items if item["ph"] == "X") == turns
    assert {item["name"] for item in items if item["ph"] == "C"} == {"regret", "scalars"}


def nanoseconds(item: dict[str, Any]) -> tuple[int, int]:
    start, length = item["ts"] * 1000, item.get("dur", 0) * 1000
    assert abs(start - round(start)) < 0.01
    return round(start), round(start) + round(length)


def check_slices(items: list[dict[str, Any]]) -> None:
    """On one track slices do not overlap, and few of no length share a moment."""
    tracks: dict[Any, list[tuple[int, int]]] = defaultdict(list)
    for item in items:
        if item["ph"] == "X":
            tracks[item["pid"], item["tid"]].append(nanoseconds(item))
    for slices in tracks.values():
        for earlier, later in pairwise(sorted(slices)):
            assert earlier[1] <= later[0]
            if earlier[0] == earlier[1] == later[0]:
                assert later[1] == later[0]
        assert max(Counter(slices).values()) <= 65


def check_arrows(items: list[dict[str, Any]], events: list[Event]) -> None:
    """Every arrow leaves one slice of no length and reaches as many as there are deliveries."""
    arrows = [item for item in items if "bind_id" in item]
    assert all(
        item["ph"] == "X" and item["dur"] == 0 and re.fullmatch("0x[0-9a-f]+", item["bind_id"]) for item in arrows
    )
    outs = [item["bind_id"] for item in arrows if item.get("flow_out")]
    ins = [item["bind_id"] for item in arrows if item.get("flow_in")]
    assert len(outs) == len(set(outs)) == sum(event.event == "send" for event in events)
    assert set(ins) <= set(outs)
    assert len(ins) == sum(event.event == "deliver" for event in events)


def check_threads(items: list[dict[str, Any]]) -> None:
    """Threads are numbered in the order of nodes, and none has the number of a process."""
    named = {(item["pid"], item["tid"]): item["args"]["name"] for item in items if item["name"] == "thread_name"}
    processes = {process for process, _ in named}
    assert processes.isdisjoint(thread for _, thread in named)
    assert len({thread for _, thread in named}) == len(named)
    for process in processes:
        order = [track_of(name) for (its, thread), name in sorted(named.items()) if its == process]
        assert order == sorted(order)


def track_of(name: str) -> tuple[int, int, int]:
    """(node, kind of track, number) of a track's name, such as "agent 3 waits 2"."""
    node, what, number = re.fullmatch(r"(server|everyone|agent \d+)((?: waits| messages)?)(?: (\d+))?", name).groups()  # type: ignore[union-attr]
    place = {"server": -2, "everyone": -1}.get(node)
    agent = int(node.removeprefix("agent ")) if place is None else place
    return agent, ("", " waits", " messages").index(what), int(number or 1)


def test_a_turn_lasts_until_its_choice_though_its_reward_is_late(stored: dict[str, Path], tmp_path: Path) -> None:
    events = events_of(stored["owed"])
    taken = {event.seq: event.time for event in events if event.event == "turn"}
    choices = [event for event in events if event.event == "choose" and event.cause is not None]
    wanted = sorted((taken[event.cause], event.time) for event in choices if event.cause is not None)
    items = json.loads(exported(stored["owed"], "perfetto", tmp_path / "trace.json").read_text())["traceEvents"]
    slices = [item for item in items if item["ph"] == "X" and item["name"].startswith("turn ")]
    found = sorted((item["ts"] / 1e6, (item["ts"] + item["dur"]) / 1e6) for item in slices)
    assert np.array(found) == pytest.approx(np.array(wanted), abs=1e-8)


def test_messages_are_flows_and_no_spans_unless_they_are_lost(stored: dict[str, Path], tmp_path: Path) -> None:
    for name in ("lossy", "direct"):
        items = json.loads(exported(stored[name], "perfetto", tmp_path / f"{name}.json").read_text())["traceEvents"]
        assert sum(bool(item.get("flow_in")) for item in items) > 10
        messages = [item for item in items if item.get("cat") == "message" and item["ph"] == "b"]
        assert all(item["args"]["copies that did not arrive"] > 0 for item in messages)


def test_a_name_that_ends_with_gz_is_compressed(stored: dict[str, Path], tmp_path: Path) -> None:
    plain = exported(stored["lossy"], "perfetto", tmp_path / "trace.json").read_bytes()
    packed = exported(stored["lossy"], "perfetto", tmp_path / "trace.json.gz").read_bytes()
    again = exported(stored["lossy"], "perfetto", tmp_path / "another.json.gz").read_bytes()
    assert gzip.decompress(packed) == plain
    assert len(packed) < len(plain) / 8
    assert again == packed


def check_spans(items: list[dict[str, Any]]) -> None:
    begun: dict[str, dict[str, Any]] = {}
    ended = 0
    for item in items:
        if item["ph"] == "b":
            assert item["id"] not in begun
            begun[item["id"]] = item
        elif item["ph"] == "e":
            start = begun[item["id"]]
            assert (start["cat"], start["name"], start["pid"]) == (item["cat"], item["name"], item["pid"])
            assert start["ts"] <= item["ts"]
            ended += 1
    assert ended == len(begun)


def test_files_are_kept_and_appear_whole(stored: dict[str, Path], tmp_path: Path) -> None:
    out = exported(stored["tasks"], "csv", tmp_path / "a.csv")
    before = out.read_text()
    with open_run(stored["direct"]) as run:
        said = r"is there already; remove it, choose another --out FILE, or give --force"
        with pytest.raises(StoreError, match=said):
            export(run, run.jobs, "csv", out)
        assert out.read_text() == before
        export(run, run.jobs, "csv", out, replace=True)
    assert out.read_text() != before
    with open_run(stored["lossy"]) as run, pytest.raises(StoreError, match="Parquet is not text"):
        export(run, run.jobs, "parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]
