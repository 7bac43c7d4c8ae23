"""A run and the one that it repeats: whether fingerprints are equal, and what has changed for each label."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from coband.simulator.analysis.comparison.analysis import measures
from coband.simulator.analysis.comparison.data import Contender, RunComparison
from coband.simulator.analysis.comparison.differences import Difference
from coband.simulator.experiments.statistics.estimates import LEVEL, mean
from coband.simulator.experiments.store.store import StoredRun


@dataclass(frozen=True, eq=False)
class Change:
    """What has changed for one label.

    Attributes:
        differences: now minus before, of the measures that are no longer equal, and of the aim.
    """

    before: Contender
    now: Contender
    differences: tuple[Difference, ...]

    def means(self, difference: Difference) -> tuple[float, float]:
        """Before and now, over the replications and at the pulls that are compared."""
        now, before = difference.footing.values
        common = before.keys() & now.keys() if difference.paired else None
        return tuple(mean([one[key] for key in sorted(common or one)]) for one in (before, now))  # type: ignore[return-value]


def changes(comparison: RunComparison) -> Iterator[Change]:
    """Yield the changes of labels that both runs of a comparison have; the second repeats the first."""
    first, second = comparison.runs
    before = {one.own: one for one in comparison.contenders if one.run is first}
    for now in comparison.contenders:
        if now.run is second and now.own in before:
            pair = now, before[now.own]
            both = replace(comparison, contenders=pair)
            found = measures(both, [both])
            yield Change(pair[1], now, tuple(Difference(one, comparison, pair, LEVEL) for one in found))


def other_fingerprints(before: StoredRun, now: StoredRun) -> tuple[int, list[str], list[str]]:
    """How many jobs both runs have finished, which of them have other fingerprints, and which only this run has."""
    known = {(job.label, job.replication): job.record["fingerprint"] for job in before.jobs if job.record is not None}
    done = {(job.label, job.replication): job.record["fingerprint"] for job in now.jobs if job.record is not None}
    names = {key: f"{key[0]}, replication {key[1]}" for key in done}
    both = [key for key in done if key in known]
    others = [names[key] for key in both if known[key] != done[key]]
    return len(both), others, [names[key] for key in done if key not in known]
