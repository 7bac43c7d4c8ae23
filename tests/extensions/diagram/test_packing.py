"""The events that the page holds."""

import base64
import json
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from coband.extensions.diagram import packing
from coband.simulator.analysis.comparison import analysis, data
from coband.simulator.experiments.store.store import open_run
from tests.analysis.report.made import run, synchronisation

NAMED = "Async <b>&</b> $x$"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp("packing") / "tiny")


def test_the_diagram_holds_every_event() -> None:
    events = synchronisation()
    packed = json.loads(json.dumps(packing.pack(events)))
    columns = {}
    for name, (kind, text) in packed["columns"].items():
        columns[name] = np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype=f"<{kind}")
    end = float(events["time"].max())
    assert np.cumsum(columns.pop("time")) * packed["tick"] == pytest.approx(events["time"], abs=1e-9 * end, rel=0)
    back = columns.pop("cause")
    assert [i - int(step) if step else -1 for i, step in enumerate(back)] == events["cause"].tolist()
    for name, column in columns.items():
        assert column.tolist() == events[name].tolist()


def test_jobs_for_which_there_is_no_room_are_named(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_run(made) as stored:
        found = analysis.Analysis(data.load([stored]))
        jobs, absent = packing.embedded(found)
        assert ([replication for _, replication in jobs], absent) == ([0, 1, 2] * 3, [])
        sizes = [json.loads(text)["total"] for text in jobs.values()]
        monkeypatch.setattr(packing, "MAX_ALL_EVENTS", sum(sizes[::3]) + 10)
        jobs, absent = packing.embedded(found)
        assert list(jobs) == [("Sync", 0), (NAMED, 0), ("Alone", 0)]
        assert absent == [(label, number) for label in ("Sync", NAMED, "Alone") for number in (1, 2)]


def test_names_cannot_deceive() -> None:
    packed = packing.pack(replace(synchronisation(), names=("upload\u202e",)))
    assert packed["names"] == ["upload\\u202e"]


def test_a_long_run_is_cut_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "MAX_EVENTS", 10)
    packed = packing.pack(synchronisation())
    assert (packed["count"], packed["total"]) == (10, len(synchronisation()))
