"""Compute times, delays of messages and losses, as a trace shows them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from coband.simulator.analysis.traces.reading import TraceReader
from coband.simulator.arrays import FloatArray
from coband.simulator.core.audit import trace as tr
from coband.simulator.core.nodes.node import SERVER

LOSS = "loss"


@dataclass
class Samples:
    """What was measured.

    Attributes:
        compute: by agent, the times from the start of a turn to the choice of an arm, without those at which it was
            down.
        delays: by direction (up, down, peer), of messages that found their link free and came with the first copy:
            (time from sending to arrival, scalars). Others also waited for messages before them, or for a repetition.
        copies: put on links.
        lost: of them, lost on their link.
    """

    compute: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    delays: dict[str, list[tuple[float, int]]] = field(default_factory=lambda: defaultdict(list))
    copies: int = 0
    lost: int = 0

    def delay_table(self, direction: str) -> FloatArray:
        """Delays and scalars of a direction, (n, 2)."""
        return np.array(self.delays.get(direction, ()), dtype=np.float64).reshape(-1, 2)


def samples(reader: TraceReader) -> Samples:
    """What a trace shows."""
    found = Samples()
    turns: dict[int, float] = {}  # start of a turn, less how long its agent had been down before
    away: dict[int, float] = defaultdict(float)  # how long an agent was down so far
    sends: dict[int, float] = {}
    latest: dict[tuple[int, int], float] = {}  # when a pair's last message arrived
    for row in reader.raw():
        if row.event == tr.TURN:
            turns[row.seq] = row.time - away[row.node]
        elif row.event == tr.CHOOSE and row.cause in turns:
            found.compute[row.node].append(row.time - away[row.node] - turns.pop(row.cause))
        elif row.event in (tr.DOWN, tr.UP):  # noticed so long after it was
            away[row.node] += (row.time - row.value) * (1 if row.event == tr.UP else -1)
        elif row.event == tr.SEND:
            sends[row.seq] = row.time
            found.copies += int(row.value)
        elif row.event == tr.DELIVER and row.cause in sends:
            sent, pair = sends[row.cause], (row.peer, row.node)
            if latest.get(pair, -np.inf) < sent and row.value == 1:
                way = "down" if row.peer == SERVER else "up" if row.node == SERVER else "peer"
                found.delays[way].append((row.time - sent, row.scalars))
            latest[pair] = row.time
        elif row.event == tr.RETRANSMIT:
            found.copies += 1
        elif row.event == tr.DROP and reader.names.get(row.reason) == LOSS:
            found.lost += 1
    return found
