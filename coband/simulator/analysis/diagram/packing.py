"""Packs the events of a job for the space-time diagram of the page.

Each column has the smallest integer type that can hold its values (little-endian). The columns are concatenated,
compressed by zlib and encoded in base64. Small numbers compress well: a cause is its distance from the event, 0 for
none, and a time the number of ticks since the event before, of which the job has :data:`TICKS`. Numbers that are shown
have seven digits. The seq of an event is its index.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from coband.simulator.analysis.comparison.analysis import Analysis
from coband.simulator.analysis.comparison.data import Contender
from coband.simulator.analysis.report.embedding import json_text
from coband.simulator.analysis.report.palette import KINDS, kind_colour
from coband.simulator.analysis.traces.columns import COLUMNS, NONE, Events, read
from coband.simulator.experiments.store.store import StoredJob

PACKED = tuple({"cause": "back", "time": "ticks"}.get(name, name) for name in COLUMNS)
INTEGERS = ("i1", "i2", "i4")
MAX_EVENTS = 1_500_000
"""Largest number of events of a job that are embedded in the page."""
MAX_ALL_EVENTS = 4_000_000
"""Largest number of events that are embedded in the page; further jobs are left out."""
MAX_BYTES = 1_500_000
"""Size up to which further replications are in the page, beside the first of each label of a single run."""
TICKS = 2**30
"""Number of ticks from the beginning of a job to its last event."""


@dataclass(frozen=True)
class EmbeddedJob:
    """A job whose events are in the page: its name in the list, and its events as JSON."""

    title: str
    replication: int
    key: str
    data: Markup


def key_of(environment: str, contender: Contender, replication: int) -> str:
    """Identifies a job in the page."""
    return f"{title_of(environment, contender)} / {replication}"


def title_of(environment: str, contender: Contender) -> str:
    """The label with its environment."""
    return f"{contender.label} in {environment}" if environment else contender.label


def embedded(analysis: Analysis, replications: Sequence[int] = ()) -> tuple[list[EmbeddedJob], list[tuple[str, int]]]:
    """The jobs in the page, and (title, replication) of those for which there is no room.

    The first replication of every label comes first, then the second, and so on. In a single run the first is always
    there, and so is what is asked for; a label has no more replications after the first for which there is no room.

    Args:
        replications: replications that come before all others.
    """
    found = [
        (one.environment, contender, job)
        for one in analysis.within
        for contender in one.contenders
        if contender.traced
        for job in contender.jobs
    ]
    order = sorted(found, key=lambda item: (item[2].replication not in replications, item[2].replication))
    first = {item[2].replication for item in found if item[2].replication in replications} or {
        item[2].replication for item in order[:1]
    }
    events, room, kept, full = MAX_ALL_EVENTS, MAX_BYTES, dict[int, EmbeddedJob](), set[str]()
    for environment, contender, job in order:
        events -= min(_count(job), MAX_EVENTS)
        title = title_of(environment, contender)
        if events < 0 or title in full:
            continue
        packed = _embedded(analysis, environment, contender, job)
        if len(packed.data) <= room or (job.replication in first and not analysis.swept):
            kept[id(job)], room = packed, room - len(packed.data)
        else:
            full.add(title)
    jobs = [kept[id(job)] for _, _, job in found if id(job) in kept]
    absent = [(title_of(*item[:2]), item[2].replication) for item in found if id(item[2]) not in kept]
    return jobs, absent


def _count(job: StoredJob) -> int:
    last: int | None = job.part.execute("SELECT max(seq) FROM events WHERE job = ?", (job.id,)).fetchone()[0]
    return 0 if last is None else last + 1


def _embedded(analysis: Analysis, environment: str, contender: Contender, job: StoredJob) -> EmbeddedJob:
    end = contender.values("simulated_time").get(job.replication, 0.0)
    key, title = key_of(environment, contender, job.replication), title_of(environment, contender)
    packed = pack(read(job))
    coloured = (kind_colour(name, analysis.shared.kinds) for name in packed["names"])  # -1 without payload, or no kind
    colours = [KINDS.index(one) if one in KINDS else NONE for one in coloured]
    return EmbeddedJob(
        title, job.replication, key, Markup(json_text({"label": key, "end": end, "colours": colours, **packed}))
    )


def pack(events: Events) -> dict[str, Any]:
    """The first :data:`MAX_EVENTS` events as a JSON object."""
    kept = replace(events, rows=events.rows[:MAX_EVENTS])
    columns = {name: _column(kept, name) for name in PACKED}
    # The columns of wider items come first, so that each starts at a multiple of its width.
    order = sorted(columns, key=lambda name: -columns[name].itemsize)
    data = b"".join(columns[name].tobytes() for name in order)
    return {
        "count": len(kept),
        "total": len(events),
        "tick": _tick(kept),
        "columns": [[name, columns[name].dtype.str[1:]] for name in order],
        "words": kept.words,
        "names": kept.names,
        "data": base64.b64encode(zlib.compress(data, 9)).decode("ascii"),
    }


def _tick(events: Events) -> float:
    return float(events["time"].max(initial=0.0)) / TICKS or 1.0


def _column(events: Events, name: str) -> NDArray[Any]:
    if name == "ticks":
        times = np.ascontiguousarray(events["time"])
        return _smallest(np.diff(np.rint(times / _tick(events)).astype(np.int64), prepend=0))
    if name == "value":
        return events[name].astype("<f4")
    if name == "back":
        causes = events["cause"]
        return _smallest(np.where(causes == NONE, 0, np.arange(len(causes)) - causes))
    return _smallest(events[name])


def _smallest(values: NDArray[Any]) -> NDArray[Any]:
    low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    for name in INTEGERS:
        bounds = np.iinfo(name)
        if bounds.min <= low and high <= bounds.max:
            return values.astype(f"<{name}")
    return values.astype("<f8")  # JavaScript represents whole numbers exactly up to 2^53
