"""The events of a job as numpy columns, for questions that look at all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coband.simulator.arrays import IntArray
from coband.simulator.experiments.store.store import StoredJob, StoreError

SERVER, NONE = -1, -1
EVENT_COLUMNS = {
    "time": "f8",
    "event": "i4",
    "node": "i4",
    "peer": "i4",
    "message": "i8",
    "cause": "i8",
    "kind": "i4",
    "scalars": "i8",
    "hop": "i4",
    "round": "i4",
    "version": "i4",
    "value": "f8",
    "reason": "i4",
}


@dataclass(frozen=True, eq=False)
class Events:
    """Events in order of ``seq``, which is their index; docs/store.md explains the codes.

    Attributes:
        rows: one record per event, with the fields of :data:`EVENT_COLUMNS`.
        words: the names of events by code.
        names: the texts of kinds and reasons by code.
    """

    rows: NDArray[np.void]
    words: tuple[str, ...]
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, column: str) -> NDArray[Any]:
        return self.rows[column]

    def code(self, word: str) -> int:
        """The code of an event name; -1, which no event has, if the name is unknown."""
        return self.words.index(word) if word in self.words else NONE

    def where(self, *words: str) -> IntArray:
        """Indices of the events with these names."""
        return np.flatnonzero(np.isin(self["event"], [self.code(word) for word in words]))


def read_events(job: StoredJob) -> Events:
    """Read the stored events of a job; there are none if its trace was off.

    Raises:
        StoreError: something that is not a number stands where one belongs.
    """
    columns = ", ".join("ifnull(value, 0.0)" if name == "value" else name for name in EVENT_COLUMNS)
    rows = job.part.execute(f"SELECT {columns} FROM events WHERE job = ? ORDER BY seq", (job.id,))
    words = job.part.execute("SELECT name FROM event_names ORDER BY code")
    names = job.part.execute("SELECT text FROM names WHERE job = ? ORDER BY code", (job.id,))
    try:
        packed = np.fromiter(rows, dtype=list(EVENT_COLUMNS.items()))
    except (TypeError, ValueError, OverflowError) as error:
        raise StoreError(f"the events of {job.label}, replication {job.replication}, are damaged: {error}.") from error
    return Events(packed, tuple(row[0] for row in words), tuple(row[0] for row in names))
