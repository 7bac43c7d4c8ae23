"""The trace: every event of a run, numbered, each with the event that caused it; and the run's fingerprint.

The fingerprint is a SHA-256 over the events' numbers, packed little-endian in the order of :data:`NUMERIC`, followed
by the table of names. It is computed at every level, so that tracing on or off, and at any level, gives the same
fingerprint.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

OFF, PROTOCOL, FULL = "off", "protocol", "full"
RECORD = struct.Struct("<qdhiiqqhqhiidh")
BATCH = 4096

EVENTS = (
    "turn",
    "choose",
    "reward",
    "trigger",
    "send",
    "deliver",
    "drop",
    "duplicate",
    "expire",
    "retransmit",
    "apply",
    "model",
    "wait",
    "resume",
    "down",
    "up",
    "eliminate",
    "stop",
    "violation",
)
TURN, CHOOSE, REWARD, TRIGGER, SEND, DELIVER, DROP, DUPLICATE, EXPIRE = range(9)
RETRANSMIT, APPLY, MODEL, WAIT, RESUME, DOWN, UP = range(9, 16)
VIOLATION = EVENTS.index("violation")
CODES = {name: code for code, name in enumerate(EVENTS)}
NONE = -1
EVERYONE, NOBODY = -2, -3  # peers: of a multicast, of an event that concerns one node only


class Row(NamedTuple):
    """One event as it is read. The first 14 columns are numbers, which make the fingerprint.

    Attributes:
        seq: number of the event, from 0.
        time: simulated time.
        event: its code, an index into :data:`EVENTS`.
        node: address of the node at which it happens; of a copy's sender where a transport speaks of the copy.
        peer: the node at the other end; EVERYONE for several, NOBODY where there is none.
        message: number of the send that it belongs to.
        cause: seq of the event that led to this one.
        kind: code of the kind of message in the table of names.
        scalars: payload of one copy.
        hop: links that a LOCAL message has passed, from 1; 0 for other messages.
        round: communication round.
        version: of the model that it is about.
        value: arm, reward, turn number, number of receivers, or number of copies: whatever the event counts.
        reason: code of why a copy was dropped or doubled, in the table of names.
        detail: JSON or a number as text.
    """

    seq: int
    time: float
    event: int
    node: int
    peer: int = NOBODY
    message: int = NONE
    cause: int = NONE
    kind: int = NONE
    scalars: int = 0
    hop: int = 0
    round: int = NONE
    version: int = NONE
    value: float = 0.0
    reason: int = NONE
    detail: str | None = None


COLUMNS = Row._fields
NUMERIC = COLUMNS[:-1]
NUMBERS = len(NUMERIC)

PlainRow = tuple[int, float, int, int, int, int, int, int, int, int, int, int, float, int, str | None]
"""The columns of a :class:`Row` as a plain tuple, which takes a fifth of the time to make."""
Sink = Callable[[Sequence[PlainRow], Sequence[str]], None]


def keep(rows: list[Row]) -> Sink:
    """A sink that appends all events to ``rows``."""
    return lambda batch, names: rows.extend(map(Row._make, batch))


class Trace:
    """Numbers events, fingerprints them and hands them to a sink in batches.

    Args:
        sink: called with (rows, all names so far) for every batch; None when nothing is to be kept.
    """

    def __init__(self, sink: Sink | None = None) -> None:
        self._sink = sink
        self._hash = hashlib.sha256()
        self._rows: list[PlainRow] = []
        self._previous: list[PlainRow] = []
        self._names: dict[str, int] = {}
        self._next = 0

    @property
    def events(self) -> int:
        """Number of events so far."""
        return self._next

    def name(self, text: str) -> int:
        """The code of a message kind or a reason; the table of names travels with the trace."""
        code = self._names.get(text)
        if code is None:
            code = self._names[text] = len(self._names)
        return code

    def record(
        self,
        time: float,
        event: int,
        node: int,
        peer: int = NOBODY,
        message: int = NONE,
        cause: int = NONE,
        kind: int = NONE,
        scalars: int = 0,
        hop: int = 0,
        round: int = NONE,
        version: int = NONE,
        value: float = 0.0,
        reason: int = NONE,
        detail: str | None = None,
    ) -> int:
        """Record one event and return its number. Codes of ``event``: :data:`EVENTS`; NONE where nothing applies."""
        seq = self._next
        self._next = seq + 1
        self._rows.append(
            (seq, time, event, node, peer, message, cause, kind, scalars, hop, round, version, value, reason, detail)
        )
        if len(self._rows) >= BATCH:
            self.flush()
        return seq

    def flush(self) -> None:
        """Fingerprint the events at hand and pass them on."""
        rows = self._rows
        if not rows:
            return
        pack = RECORD.pack
        self._hash.update(b"".join([pack(*row[:NUMBERS]) for row in rows]))
        if self._sink is not None:
            self._sink(rows, tuple(self._names))
        self._previous, self._rows = rows, []

    def fingerprint(self) -> str:
        """The run's fingerprint: 64 hexadecimal digits."""
        self.flush()
        digest = self._hash.copy()
        digest.update("\n".join(self._names).encode())
        return digest.hexdigest()

    def chain(self, seq: int) -> list[Row]:
        """The event ``seq`` and what led to it, nearest first, as far back as the last two batches reach."""
        known = {row.seq: row for row in map(Row._make, (*self._previous, *self._rows))}
        chain = []
        while seq in known:
            chain.append(known[seq])
            seq = known[seq].cause
        return chain


def fingerprint_of(rows: Iterable[Row], names: Sequence[str]) -> str:
    """The fingerprint of recorded events, recomputed; ``rows`` in order of seq."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(RECORD.pack(*row[:NUMBERS]))
    digest.update("\n".join(names).encode())
    return digest.hexdigest()
