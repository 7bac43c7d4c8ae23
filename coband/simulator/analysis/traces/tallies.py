"""Totals over a stored trace, grouped by event, kind, node or communication round, or by several of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from coband.simulator.experiments.store import schema
from coband.simulator.experiments.store.store import StoredJob

GROUPS = ("event", "kind", "node", "round")
COUNTS = ("events", "sends", "messages", "scalars", "deliveries")

_COUNTS = """count(*), sum(event = 'send'), coalesce(sum(CASE event WHEN 'send' THEN CAST(value AS INTEGER) END), 0),
    coalesce(sum(CASE event WHEN 'send' THEN scalars * CAST(value AS INTEGER) END), 0),
    coalesce(sum(CASE event WHEN 'deliver' THEN
        CASE node WHEN 'everyone' THEN CAST(value AS INTEGER) ELSE 1 END END), 0)"""


class Tally(NamedTuple):
    """Totals of one group of events of one label, summed over replications.

    Attributes:
        groups: value of each grouping column (name of the event, kind or node, number of the round); None if missing.
        messages: number of messages; a multicast counts once per receiver.
        scalars: scalars sent; a multicast counts once per receiver.
    """

    label: str
    groups: tuple[str | int | None, ...]
    events: int
    sends: int
    messages: int
    scalars: int
    deliveries: int


def tally(jobs: Sequence[StoredJob], *by: str) -> list[Tally]:
    """Totals of each label, grouped by one or more of :data:`GROUPS`."""
    totals: dict[tuple[str, tuple[str | int | None, ...]], list[int]] = {}
    columns, width = ", ".join(by), len(by)
    query = f"{schema.TRACE} SELECT {columns}, {_COUNTS} FROM trace WHERE job = ? GROUP BY {columns} ORDER BY {columns}"
    for job in jobs:
        for row in job.part.execute(query, (job.id,)):
            groups, counts = tuple(row[:width]), row[width:]
            total = totals.setdefault((job.label, groups), [0] * len(counts))
            totals[job.label, groups] = [before + count for before, count in zip(total, counts, strict=True)]
    return [Tally(label, groups, *counts) for (label, groups), counts in totals.items()]
