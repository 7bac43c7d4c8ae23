"""The trace: every event of a run, numbered, each with the event that caused it; and the run's fingerprint.

The fingerprint is a SHA-256 over the events' numbers, packed little-endian in the order of :data:`NUMERIC`, followed
by the table of names. It is computed at every level, so that tracing on or off, and at any level, gives the same
fingerprint.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Callable, Iterable, Sequence
from itertools import starmap
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from coband.simulator.core.nodes.message import Message
    from coband.simulator.core.packet import Packet

OFF, PROTOCOL, FULL = "off", "protocol", "full"
RECORD = struct.Struct("<qdhiiqqhqhiidh")
BATCH = 1024
MANY = 8
"""Turns without anything else in between from which on a block takes less time than rows."""

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
    "timer",
)
TURN, CHOOSE, REWARD, TRIGGER, SEND, DELIVER, DROP, DUPLICATE, EXPIRE = range(9)
RETRANSMIT, APPLY, MODEL, WAIT, RESUME, DOWN, UP = range(9, 16)
VIOLATION, TIMER = range(18, 20)
CODES = {name: code for code, name in enumerate(EVENTS)}
NONE = -1
EVERYONE, NOBODY = -2, -3  # peers: of a multicast, of an event that concerns one node only


class Row(NamedTuple):
    """One event as it is read. The first 14 columns are numbers, which make the fingerprint.

    Attributes:
        seq: number of the event, from 0.
        time: simulated time.
        event: its code, an index into :data:`EVENTS`.
        node: address of the node at which it happens; of a copy's sender where the event is about a copy.
        peer: the node at the other end; EVERYONE for several, NOBODY where there is none.
        message: number of the send that it belongs to.
        cause: seq of the event that led to this one.
        kind: code of the kind of message in the table of names.
        scalars: payload of one copy.
        hop: links that a LOCAL message has passed, from 1; 0 for other messages.
        round: communication round.
        version: of the model that it is about.
        value: arm, reward, turn number, number of receivers, or number of copies: whatever the event counts. Of a
            down or up, how long ago it happened: an absence is recorded when it matters (``core.churn``).
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

Block = NDArray[np.void]
"""Events as one array with a field for each of :data:`NUMERIC`, without details: many that are recorded at once."""

_NUMBERS_OF = itemgetter(slice(NUMBERS))
_TYPES = {"q": "<i8", "d": "<f8", "h": "<i2", "i": "<i4"}
_BLOCK = np.dtype([(name, _TYPES[code]) for name, code in zip(NUMERIC, RECORD.format[1:], strict=True)])
_BLANK = np.array(Row(0, 0.0, 0, 0)[:NUMBERS], dtype=_BLOCK).tobytes()


def keep(rows: list[Row]) -> Sink:
    """A sink that appends all events to ``rows``."""
    return lambda batch, names: rows.extend(map(Row._make, batch))


class Names(dict[str, int]):
    """Codes of names, in the order in which they were first asked for."""

    def __missing__(self, name: str) -> int:
        code = self[name] = len(self)
        return code


class Trace:
    """Numbers events, fingerprints them and hands them to a sink in batches.

    Args:
        sink: called with (rows, all names so far) for every batch; None when nothing is to be kept.
        first: number of the first event.

    Attributes:
        kept: whether anybody keeps the events, and their details with them.
        names: the code of a message kind or a reason; the table of names travels with the trace.
    """

    def __init__(self, sink: Sink | None = None, first: int = 0) -> None:
        self._sink, self._first = sink, first
        self._hash = hashlib.sha256()
        self._rows: list[PlainRow] = []
        self._turns: list[tuple[float, int, int, int, int, float]] = []  # that take no time, after the rows
        self._room = BATCH  # rows that fit in the batch, beside those that are sealed
        self._sealed: list[list[PlainRow] | Block] = []  # in the fingerprint, not yet passed on
        self._previous: list[list[PlainRow] | Block] = []
        self.names, self.kept = Names(), sink is not None
        self._next = first

    @property
    def events(self) -> int:
        """Number of events so far."""
        return self._next - self._first

    def record(
        self,
        time: float,
        event: int,
        node: int,
        peer: int = NOBODY,
        *,
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
        if self._turns:
            self._end_turns()
        seq = self._next
        self._next = seq + 1
        self._rows.append(
            (seq, time, event, node, peer, message, cause, kind, scalars, hop, round, version, value, reason, detail)
        )
        if len(self._rows) >= self._room:
            self.flush()
        return seq

    def record_send(
        self,
        time: float,
        node: int,
        peer: int,
        message: Message,
        *,
        id: int,
        cause: int,
        copies: int,
        hop: int = 0,
        detail: str | None = None,
    ) -> int:
        """Record that a node puts ``copies`` of a message on links; ``id``: number of the send."""
        return self.record(
            time,
            SEND,
            node,
            peer,
            message=id,
            cause=cause,
            kind=self.names[message.kind],
            scalars=message.scalars,
            round=message.round,
            version=message.version,
            value=copies,
            hop=hop,
            detail=detail,
        )

    def record_copy(self, time: float, event: int, node: int, peer: int, packet: Packet, reason: int = NONE) -> int:
        """Record what has happened to one copy of a message; its cause is the send."""
        message = packet.message
        return self.record(
            time,
            event,
            node,
            peer,
            message=packet.id,
            cause=packet.send,
            kind=packet.kind,
            scalars=packet.scalars,
            hop=packet.hop,
            round=message.round,
            version=message.version,
            value=packet.attempts,
            reason=reason,
        )

    def record_turn(
        self, time: float, node: int, cause: int, number: int, arm: int, reward: float, detail: str | None
    ) -> int:
        """Record a turn that takes no time: its start, the choice of an arm, and the reward.

        Args:
            cause: seq of the event that led to the turn.
            number: of the turn.
            detail: of the choice.

        Returns:
            The number of the last of the three events.
        """
        seq, rows = self._next, self._rows
        if detail is None and (self._turns or (rows and rows[-1][2] == REWARD)):  # right after another turn
            self._turns.append((time, node, cause, number, arm, reward))
        else:
            self._end_turns()
            self._rows += _rows_of(seq, time, node, cause, number, arm, reward, detail)
        self._next = seq + 3
        if len(self._rows) + 3 * len(self._turns) >= self._room:
            self.flush()
        return seq + 2

    def _end_turns(self) -> None:
        """Take the turns at hand, right after which something else happens, into a block or, if they are few, rows."""
        if not (count := len(self._turns)):
            return
        turns, self._turns = self._turns, []
        first = self._next - 3 * count
        if count < MANY:
            for place, turn in enumerate(turns):
                self._rows += _rows_of(first + 3 * place, *turn)
            return
        self._seal()
        block: Block = np.frombuffer(bytearray(3 * count * _BLANK), dtype=_BLOCK).reshape(count, 3)
        block["seq"] = np.arange(first, self._next).reshape(count, 3)
        block["event"] = TURN, CHOOSE, REWARD
        times, nodes, causes, numbers, arms, rewards = zip(*turns, strict=True)
        block["time"], block["node"] = np.array(times)[:, None], np.array(nodes)[:, None]
        block["cause"][:, 0], block["cause"][:, 1:] = causes, block["seq"][:, :-1]
        for column, values in enumerate((numbers, arms, rewards)):
            block["value"][:, column] = values
        self._add(block)

    def block(self, time: float, shape: tuple[int, ...]) -> Block:
        """The next events, numbered in C order, all at one time; ``record_block`` records them when they are filled in.

        Fields that are not filled in mean that nothing applies, as in ``record``. Nothing else may be recorded before.
        """
        # Bytes are repeated in a tenth of the time in which numpy fills an array of records.
        block: Block = np.frombuffer(bytearray(_BLANK * math.prod(shape)), dtype=_BLOCK).reshape(shape)
        block["seq"] = np.arange(self._next, self._next + block.size).reshape(shape)
        block["time"] = time
        return block

    def record_block(self, block: Block) -> None:
        """Record events that ``block`` has numbered."""
        self._seal()
        self._next += block.size
        self._add(block)
        if self._room <= 0:
            self.flush()

    def _add(self, block: Block) -> None:
        self._room -= block.size
        self._hash.update(block.tobytes())
        self._sealed.append(block)

    def _seal(self) -> None:
        """Take the events at hand into the fingerprint."""
        self._end_turns()
        rows = self._rows
        if rows:
            self._hash.update(b"".join(starmap(RECORD.pack, map(_NUMBERS_OF, rows))))
            self._sealed.append(rows)
            self._room -= len(rows)
            self._rows = []

    def flush(self) -> None:
        """Fingerprint the events at hand and pass them on."""
        self._seal()
        if not self._sealed:
            return
        if self._sink is not None:
            self._sink(_plain(self._sealed), tuple(self.names))
        self._previous, self._sealed, self._room = self._sealed, [], BATCH

    def fingerprint(self) -> str:
        """The run's fingerprint: 64 hexadecimal digits."""
        self.flush()
        digest = self._hash.copy()
        digest.update("\n".join(self.names).encode())
        return digest.hexdigest()

    def chain(self, seq: int) -> list[Row]:
        """The event ``seq`` and what led to it, nearest first, as far back as the last two batches reach."""
        self._end_turns()
        recent = _plain([*self._previous, *self._sealed, self._rows])
        known = {row.seq: row for row in map(Row._make, recent)}
        chain = []
        while seq in known:
            chain.append(known[seq])
            seq = known[seq].cause
        return chain


def _rows_of(
    seq: int, time: float, node: int, cause: int, number: int, arm: int, reward: float, detail: str | None = None
) -> tuple[PlainRow, ...]:
    """The three events of a turn that takes no time."""
    return (
        (seq, time, TURN, node, NOBODY, NONE, cause, NONE, 0, 0, NONE, NONE, number, NONE, None),
        (seq + 1, time, CHOOSE, node, NOBODY, NONE, seq, NONE, 0, 0, NONE, NONE, arm, NONE, detail),
        (seq + 2, time, REWARD, node, NOBODY, NONE, seq + 1, NONE, 0, 0, NONE, NONE, reward, NONE, None),
    )


def _plain(parts: Sequence[list[PlainRow] | Block]) -> Sequence[PlainRow]:
    """The events of several lists and blocks."""
    if len(parts) == 1 and isinstance(parts[0], list):
        return parts[0]
    rows: list[PlainRow] = []
    for part in parts:
        rows += part if isinstance(part, list) else [(*numbers, None) for numbers in part.ravel().tolist()]
    return rows


def fingerprint_of(rows: Iterable[Row], names: Sequence[str]) -> str:
    """The fingerprint of recorded events, recomputed; ``rows`` in order of seq."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(RECORD.pack(*row[:NUMBERS]))
    digest.update("\n".join(names).encode())
    return digest.hexdigest()
