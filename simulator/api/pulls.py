"""Every pull of stored jobs, as a table."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import ExitStack
from itertools import chain

import coband
from coband.simulator.analysis.whatif.original import originals
from coband.simulator.analysis.whatif.question import QuestionError
from coband.simulator.api.driving import count_of
from coband.simulator.api.table import Table
from coband.simulator.experiments.runs import executors
from coband.simulator.experiments.runs.job import Job
from coband.simulator.experiments.runs.pulls import PULL
from coband.simulator.experiments.runs.pulls import pulls as repeated
from coband.simulator.experiments.runs.work import PickledScenario
from coband.simulator.experiments.store.store import StoredRun


def pulls(run: StoredRun, label: str | None, replication: int | None, workers: int | None) -> Table:
    """The pulls of the finished jobs of a label and a replication; None for all."""
    jobs = list(_jobs(run, label, replication))
    count = count_of(workers, len(jobs))
    with ExitStack() as stack:
        executor: Executor = executors.Serial()
        if count > 1 or not coband.BLAS_IS_PINNED:
            executor = executors.processes(count)
            stack.callback(executors.stop, executor)
        found = [(job, executor.submit(_pulls, job, scenario, fingerprint)) for job, scenario, fingerprint in jobs]
        rows = chain.from_iterable(((job.label, job.replication, *pull) for pull in one.result()) for job, one in found)
        return Table.from_rows(("label", "replication", *PULL), rows, ("label",))


def _pulls(job: Job, scenario: PickledScenario, fingerprint: str) -> list[tuple[float | None, ...]]:
    return list(repeated(job, scenario.load(), fingerprint))


def _jobs(run: StoredRun, label: str | None, replication: int | None) -> Iterator[tuple[Job, PickledScenario, str]]:
    """The finished jobs, with their scenarios and fingerprints."""
    names = list(dict.fromkeys(job.label for job in run.select(label, replication) if job.record is not None))
    if not names:
        raise QuestionError(f"{run.path}: no job has finished, so there are no pulls.")
    for name in names:
        (found,) = originals(run, name, replication)
        scenario = found.scenario()
        for number, fingerprint in found.fingerprints.items():
            entry = next(one for one in scenario.algorithms if one.label == found.entry)
            job = Job(0, name, entry.algorithm.name, number, scenario.seed, "protocol", entry=found.entry)
            yield job, PickledScenario.of(scenario), fingerprint
