"""The communication of a label: messages and scalars by kind and direction, as means over replications."""

from __future__ import annotations

from dataclasses import dataclass

from coband.simulator.analysis.comparison.data import Contender

DIRECTIONS = ("up", "down", "peer")
ARROWS = {"up": "to the server", "down": "from the server", "peer": "among agents"}


@dataclass(frozen=True)
class Flow:
    """Messages of one kind in one direction; means over replications.

    Attributes:
        direction: one of :data:`DIRECTIONS`.
        messages: number of messages; a broadcast counts once per receiver.
        scalars: scalars sent; a broadcast counts once per receiver.
    """

    kind: str
    direction: str
    messages: float
    scalars: float

    @property
    def named(self) -> str:
        """Kind and direction in words."""
        return f"{self.kind}, {ARROWS[self.direction]}"


def flows(contender: Contender) -> list[Flow]:
    """The flows of a contender: up, then down, then among agents; sorted by kind."""
    query = "SELECT kind, direction, messages, scalars FROM ledger WHERE job = ?"
    totals: dict[tuple[str, str], list[float]] = {}
    for job in contender.jobs:
        for kind, direction, *counts in job.part.execute(query, (job.id,)):
            total = totals.setdefault((kind, direction), [0.0] * len(counts))
            totals[kind, direction] = [before + count for before, count in zip(total, counts, strict=True)]
    order = sorted(totals, key=lambda key: (DIRECTIONS.index(key[1]), key[0]))
    return [Flow(*key, *(total / len(contender.jobs) for total in totals[key])) for key in order]
