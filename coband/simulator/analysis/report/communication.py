"""Communication of a label: scalars and messages by kind and direction, as means over replications."""

from __future__ import annotations

from dataclasses import dataclass

from coband.simulator.analysis.report.data import Contender

DIRECTIONS = ("up", "down", "peer")
ARROWS = {"up": "to the server", "down": "from the server", "peer": "among agents"}


@dataclass(frozen=True)
class Flow:
    """Messages of one kind in one direction; means over replications.

    Attributes:
        direction: one of :data:`DIRECTIONS`.
        sends: number of sends; a broadcast is one send.
        messages: number of messages; a broadcast counts once per receiver.
        scalars: scalars sent; a broadcast counts once per receiver.
        once: scalars sent; a broadcast counts once.
    """

    kind: str
    direction: str
    sends: float
    messages: float
    scalars: float
    once: float


def flows(contender: Contender) -> list[Flow]:
    """The flows of a contender: up, then down, then among agents; sorted by kind."""
    query = "SELECT kind, direction, sends, messages, scalars, scalars_broadcast_once FROM ledger WHERE job = ?"
    totals: dict[tuple[str, str], list[float]] = {}
    for job in contender.jobs:
        for kind, direction, *counts in job.part.execute(query, (job.id,)):
            total = totals.setdefault((kind, direction), [0.0] * len(counts))
            totals[kind, direction] = [before + count for before, count in zip(total, counts, strict=True)]
    order = sorted(totals, key=lambda key: (DIRECTIONS.index(key[1]), key[0]))
    return [Flow(*key, *(total / len(contender.jobs) for total in totals[key])) for key in order]


def fields(contender: Contender) -> list[tuple[str, str, str, str, float, float]]:
    """Kind of message, direction, field, what it holds, and mean scalars and bits; empty for stores of before."""
    query = "SELECT kind, direction, field, meaning, scalars, bits FROM ledger_by_field WHERE job = ?"
    there = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'ledger_by_field'"
    totals: dict[tuple[str, str, str, str], tuple[float, float]] = {}
    for job in contender.jobs:
        for *key, scalars, bits in job.part.execute(query, (job.id,)) if job.part.execute(there).fetchone() else ():
            so_far = totals.get((*key,), (0.0, 0.0))
            totals[*key,] = so_far[0] + scalars / len(contender.jobs), so_far[1] + bits / len(contender.jobs)
    order = sorted(totals, key=lambda key: (DIRECTIONS.index(key[1]), key[0], key[2]))
    return [(*key, *totals[key]) for key in order if totals[key][0]]
