"""Packs the events of a job for the space-time diagram of the page.

Each column has the smallest integer type that can hold its values (little-endian). The columns are concatenated,
compressed by zlib and encoded in base64. A cause is stored as its distance from the event, 0 for none, because small
numbers compress well. The seq of an event is its index.
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

from coband.simulator.analysis.report.analysis import Analysis
from coband.simulator.analysis.report.data import Contender
from coband.simulator.analysis.report.embedding import json_text
from coband.simulator.analysis.report.events import COLUMNS, NONE, Events, read
from coband.simulator.analysis.report.palette import KINDS, kind_colour
from coband.simulator.experiments.store.store import StoredJob

PACKED = tuple("back" if name == "cause" else name for name in COLUMNS)
INTEGERS = ("i1", "i2", "i4")
MAX_EVENTS = 1_500_000
"""Largest number of events of a job that are embedded in the page."""
MAX_ALL_EVENTS = 4_000_000
"""Largest number of events that are embedded in the page; further jobs are left out."""


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

    The first replication of every label comes first, then the second, and so on, as long as there is room.

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
    ranks = {id(item): (item[2].replication not in replications, item[2].replication) for item in found}
    room, kept = MAX_ALL_EVENTS, set()
    for item in sorted(found, key=lambda item: ranks[id(item)]):
        room -= min(_count(item[2]), MAX_EVENTS)
        if room >= 0:
            kept.add(id(item))
    jobs = [_embedded(analysis, *item) for item in found if id(item) in kept]
    absent = [(title_of(*item[:2]), item[2].replication) for item in found if id(item) not in kept]
    return jobs, absent


def _count(job: StoredJob) -> int:
    last: int | None = job.part.execute("SELECT max(seq) FROM events WHERE job = ?", (job.id,)).fetchone()[0]
    return 0 if last is None else last + 1


def _embedded(analysis: Analysis, environment: str, contender: Contender, job: StoredJob) -> EmbeddedJob:
    end = contender.values("simulated_time").get(job.replication, 0.0)
    key, title = key_of(environment, contender, job.replication), title_of(environment, contender)
    packed = pack(read(job))
    colours = [_colour(name, analysis) for name in packed["names"]]
    return EmbeddedJob(
        title, job.replication, key, Markup(json_text({"label": key, "end": end, "colours": colours, **packed}))
    )


def _colour(name: str, analysis: Analysis) -> int:
    """The number of the colour of a kind of message; -1 for kinds without payload, and for names of other things."""
    colour = kind_colour(name, analysis.shared.kinds)
    return KINDS.index(colour) if colour in KINDS else NONE


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
        "columns": [[name, columns[name].dtype.str[1:]] for name in order],
        "words": kept.words,
        "names": kept.names,
        "data": base64.b64encode(zlib.compress(data, 9)).decode("ascii"),
    }


def _column(events: Events, name: str) -> NDArray[Any]:
    if name in ("time", "value"):
        return events[name].astype("<f8")
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
