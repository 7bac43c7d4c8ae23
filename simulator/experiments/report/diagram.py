"""Packs the events of a job for the space-time diagram of the page.

Each column has the smallest integer type that can hold its values (little-endian). The columns are concatenated,
compressed by zlib and encoded in base64. A cause is stored as its distance from the event, 0 for none, because small
numbers compress well. The seq of an event is its index.
"""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coband.simulator.experiments.report.events import NONE, Events

PACKED = (
    "time",
    "event",
    "node",
    "peer",
    "message",
    "back",
    "kind",
    "scalars",
    "hop",
    "round",
    "version",
    "value",
    "reason",
)
INTEGERS = ("i1", "i2", "i4")
MAX_EVENTS = 400_000
"""Largest number of events of a job that are embedded in the page."""


def pack(events: Events) -> dict[str, Any]:
    """The first :data:`MAX_EVENTS` events as a JSON object."""
    kept = events.first(MAX_EVENTS)
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
        causes = events.cause
        return _smallest(np.where(causes == NONE, 0, np.arange(len(causes)) - causes))
    return _smallest(events[name])


def _smallest(values: NDArray[Any]) -> NDArray[Any]:
    low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    for name in INTEGERS:
        bounds = np.iinfo(name)
        if bounds.min <= low and high <= bounds.max:
            return values.astype(f"<{name}")
    return values.astype("<f8")  # JavaScript represents whole numbers exactly up to 2^53
