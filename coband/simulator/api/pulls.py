"""Every pull of a stored run: its jobs run again, with the same random draws."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from operator import attrgetter

import pandas as pd

import coband
from coband.simulator.api.driving import count_of
from coband.simulator.experiments.runs.attempt import PickledScenario
from coband.simulator.experiments.runs.executor import InProcess, Local
from coband.simulator.experiments.runs.job import Job
from coband.simulator.experiments.runs.repeating import PULL
from coband.simulator.experiments.runs.repeating import pulls as repeated
from coband.simulator.experiments.scenario.files import ScenarioText
from coband.simulator.experiments.scenario.loading import load_point
from coband.simulator.experiments.store.store import StoredJob, StoredRun, StoreError
from coband.simulator.experiments.store.variants import variants


def pulls(run: StoredRun, label: str | None, replication: int | None, workers: int | None) -> pd.DataFrame:
    """The pulls of the finished jobs of a label and a replication; None for all."""
    jobs = list(_jobs(run, label, replication))
    count = count_of(workers, len(jobs))
    with Local(count) if count > 1 or not coband.BLAS_IS_PINNED else InProcess() as executor:
        found = [(job, executor.submit(_pulls, job, scenario, fingerprint)) for job, scenario, fingerprint in jobs]
        rows = chain.from_iterable(((job.label, job.replication, *pull) for pull in one.result()) for job, one in found)
        return pd.DataFrame(rows, columns=["label", "replication", *PULL])


def _pulls(job: Job, scenario: PickledScenario, fingerprint: str) -> list[tuple[float | None, ...]]:
    return list(repeated(job, scenario.load(), fingerprint))


def _jobs(run: StoredRun, label: str | None, replication: int | None) -> Iterator[tuple[Job, PickledScenario, str]]:
    """The finished jobs, with their scenarios and fingerprints."""
    by_label: dict[str, list[StoredJob]] = {}
    for job in run.select(label, replication):
        if job.record is not None:
            by_label.setdefault(job.label, []).append(job)
    if not by_label:
        raise StoreError(f"{run.path}: no job has finished, so there are no pulls.")
    swept, base = variants(run), run.path if run.path.is_dir() else run.path.parent
    for name, jobs in by_label.items():
        text, entry = (swept[name].text, swept[name].entry) if name in swept else (run.scenario, name)
        scenario = load_point(ScenarioText(text, str(run.path), base), ["expect=[]"]).scenario
        algorithm = next(one.algorithm.name for one in scenario.algorithms if one.label == entry)
        for stored in sorted(jobs, key=attrgetter("replication")):
            assert stored.record is not None
            again = Job(0, name, algorithm, stored.replication, scenario.seed, "protocol", entry=entry)
            yield again, PickledScenario.of(scenario), str(stored.record["fingerprint"])
