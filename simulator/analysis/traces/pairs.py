"""Pairs of jobs of two runs that are compared with each other."""

from __future__ import annotations

from coband.simulator.experiments.store.store import StoredJob, StoredRun, StoreError


def pairs(
    first: StoredRun, second: StoredRun, label: str | None, other_label: str | None, replication: int | None
) -> list[tuple[StoredJob, StoredJob]]:
    """Pairs of jobs with the same label and replication, in the order of the first run.

    Args:
        other_label: the corresponding label in the second run, if it differs.

    Raises:
        StoreError: a name does not exist, or the runs have no common label and replication.
    """
    if other_label is not None and label is None:
        raise StoreError("--other-label needs --label, the label in A that it stands against.")
    here = first.select(label, replication)
    there = {(job.label, job.replication): job for job in second.select(other_label or label, replication)}
    found = [(job, there[key]) for job in here if (key := (other_label or job.label, job.replication)) in there]
    if not found:
        raise StoreError(
            f"{first.path} and {second.path} have no label and replication in common: {', '.join(first.labels)} "
            f"and {', '.join(second.labels)}. Name one of each with --label and --other-label."
        )
    return found
