"""The lies of a run, from its trace."""

from __future__ import annotations

import json
from dataclasses import dataclass

from coband.simulator.analysis.report.data import Contender
from coband.simulator.experiments.store.store import StoredJob


@dataclass(frozen=True)
class Lie:
    """One message that was changed."""

    time: float
    agent: int
    behaviour: str


def lies(job: StoredJob) -> list[Lie]:
    """The lies of a job, in order; none without a trace."""
    query = "SELECT time, node, detail FROM events WHERE job = ? AND detail LIKE '%\"adversary\"%' ORDER BY seq"
    found = []
    for time, node, detail in job.part.execute(query, (job.id,)) if job.trace != "off" else ():
        done = json.loads(detail).get("wire", {})
        if "adversary" in done:
            found.append(Lie(float(time), int(node), str(done["adversary"])))
    return found


def first_lies(contender: Contender) -> list[Lie]:
    """The lies of the first replication that has any."""
    return next((found for job in contender.jobs if (found := lies(job))), [])
