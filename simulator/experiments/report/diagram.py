"""The events of a job, packed for the page's space-time diagram.

Columns of the smallest integer type that holds them (little-endian), one after the other in the order of
:data:`PACKED`, compressed by zlib and written in base64. Causes are stored as distances back, 0 for none, because
small numbers compress well. The seq of an event is its index.
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
MOST_EVENTS = 400_000
"""More of a job's events are not embedded, so that a page stays a page."""


def pack(events: Events) -> dict[str, Any]:
    """The first :data:`MOST_EVENTS` events as an object for JSON."""
    kept = events.first(MOST_EVENTS)
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
    return values.astype("<f8")  # whole numbers up to 2^53, as JavaScript has them
