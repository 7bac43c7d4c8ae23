"""Packs the events of jobs for the space-time diagram of the page.

Each column has the smallest integer type that can hold its values (little-endian), compressed by zlib, in base64. Small
numbers compress well: a cause is its distance from the event, 0 for none, and a time the number of ticks since the
event before, of which a job has :data:`TICKS`. The seq of an event is its index.
"""

from __future__ import annotations

import base64
import json
import shlex
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coband.extending import EVENT_COLUMNS, Analysis, Events, palette, read_events, trace, visible

MAX_EVENTS = 1_500_000
"""Largest number of events of a job that are embedded in the page."""
MAX_ALL_EVENTS = 4_000_000
"""Largest number of events that are embedded in the page; further jobs are left out."""
MAX_BYTES = 1_500_000
"""Size up to which further replications are in the page, in addition to the first of each label of a single run."""
TICKS = 2**30
"""Ticks of the time from the beginning of a job to its last event."""
Key = tuple[str, int]
"""A job: its label, and its replication."""


def embedded(analysis: Analysis) -> tuple[dict[Key, str], list[Key]]:
    """Return the events of the jobs in the page as JSON, and the jobs for which there is no room.

    The first replication of every label comes first, then the second, and so on, as far as there is room.
    """
    jobs = [
        (f"{contender.label} in {one.environment}" if one.environment else contender.label, job)
        for one in analysis.within
        for contender in one.contenders
        if contender.traced
        for job in contender.jobs
    ]
    events, room, kept, begun, full = MAX_ALL_EVENTS, MAX_BYTES, dict[Key, str](), set[str](), set[str]()
    for label, job in sorted(jobs, key=lambda item: item[1].replication):
        count = job.part.execute("SELECT ifnull(max(seq) + 1, 0) FROM events WHERE job = ?", (job.id,)).fetchone()[0]
        events -= min(count, MAX_EVENTS)
        if events < 0 or label in full:
            continue
        options = f"--label {shlex.quote(visible(job.label))} --replication {job.replication}"
        data = _json(analysis, {**pack(read_events(job)), "options": options})
        wanted = not analysis.swept and label not in begun
        begun.add(label)
        if wanted or len(data) <= room:
            kept[label, job.replication], room = data, room - len(data)
        else:
            full.add(label)
    order = [(label, job.replication) for label, job in jobs]
    return {key: kept[key] for key in order if key in kept}, [key for key in order if key not in kept]


def _json(analysis: Analysis, packed: dict[str, Any]) -> str:
    colours = [palette.VARIABLES[palette.kind_colour(name, analysis.shared.kinds)] for name in packed["names"]]
    return json.dumps({**packed, "colours": colours}, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def pack(events: Events) -> dict[str, Any]:
    """Return the first :data:`MAX_EVENTS` events as a JSON object."""
    rows = events.rows[:MAX_EVENTS]
    tick = float(rows["time"].max(initial=0.0)) / TICKS or 1.0
    columns = {name: rows[name] for name in EVENT_COLUMNS}
    columns["time"] = np.diff(np.rint(rows["time"] / tick).astype(np.int64), prepend=0)
    columns["cause"] = np.where(rows["cause"] == trace.NONE, 0, np.arange(len(rows)) - rows["cause"])
    numbers = {"count": len(rows), "total": len(events), "tick": tick}
    packed = {name: _packed(column) for name, column in columns.items()}
    texts = {"words": [*map(visible, events.words)], "names": [*map(visible, events.names)]}
    return {**numbers, **texts, "columns": packed}


def _packed(values: NDArray[Any]) -> tuple[str, str]:
    kind = np.min_scalar_type(min(int(values.min(initial=0)), -1 - int(values.max(initial=0))))
    if values.dtype.kind == "f":
        kind = np.dtype("f4")  # numbers are shown with six digits
    elif kind.itemsize == 8:
        kind = np.dtype("f8")  # JavaScript has whole numbers up to 2^53
    data = zlib.compress(values.astype(kind.newbyteorder("<")).tobytes(), 9)
    return kind.str[1:], base64.b64encode(data).decode("ascii")
