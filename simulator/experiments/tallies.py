"""Counts over a stored trace: by event, kind, node or communication round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from simulator.experiments.store import StoredJob

GROUPS = ("event", "kind", "node", "round")

_COLUMNS = """count(*), sum(event = 'send'), coalesce(sum(CASE event WHEN 'send' THEN CAST(value AS INTEGER) END), 0),
    coalesce(sum(CASE event WHEN 'send' THEN scalars * CAST(value AS INTEGER) END), 0),
    coalesce(sum(CASE event WHEN 'deliver' THEN
        CASE node WHEN 'everyone' THEN CAST(value AS INTEGER) ELSE 1 END END), 0)"""


class Tally(NamedTuple):
    """Totals of one group of events of one label, over its replications.

    Attributes:
        group: name of the event, kind or node, or number of the round; None for events without one.
        messages: sends, each times its receivers.
        scalars: scalars sent, each times its receivers.
    """

    label: str
    group: str | int | None
    events: int
    sends: int
    messages: int
    scalars: int
    deliveries: int


def tally(jobs: Sequence[StoredJob], by: str) -> list[Tally]:
    """Totals by one of :data:`GROUPS`, label by label.

    Args:
        jobs: what to count.
        by: the column that groups.
    """
    totals: dict[tuple[str, str | int | None], list[int]] = {}
    query = f"SELECT {by}, {_COLUMNS} FROM trace WHERE job = ? GROUP BY {by} ORDER BY {by}"
    for job in jobs:
        for group, *counts in job.part.execute(query, (job.id,)):
            total = totals.setdefault((job.label, group), [0] * len(counts))
            totals[job.label, group] = [before + count for before, count in zip(total, counts, strict=True)]
    return [Tally(label, group, *counts) for (label, group), counts in totals.items()]
