"""Driving studies from Python: the workers, how a study's end is told, and the pulls of jobs that run again."""

from __future__ import annotations

import multiprocessing
import warnings
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from numbers import Integral
from operator import attrgetter
from typing import TYPE_CHECKING

import coband
from coband.simulator.api.callbacks import Callback, Following
from coband.simulator.api.errors import RunError, RunWarning
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.runs import repeating
from coband.simulator.experiments.runs.attempt import PickledScenario
from coband.simulator.experiments.runs.code_version import jobs_run_on, kernels
from coband.simulator.experiments.runs.driver import drive
from coband.simulator.experiments.runs.executor import InProcess, JobExecutor, Local, cores
from coband.simulator.experiments.runs.job import Job
from coband.simulator.experiments.runs.reporting import Commands, Listener, Report
from coband.simulator.experiments.runs.study import Study
from coband.simulator.experiments.scenario.files import ScenarioText
from coband.simulator.experiments.scenario.loading import load_point
from coband.simulator.experiments.store.directory import RunDirectory
from coband.simulator.experiments.store.store import StoredRun, StoreError
from coband.simulator.experiments.store.variants import variants
from coband.simulator.terminal import progress
from coband.simulator.terminal.progress import Bar

if TYPE_CHECKING:
    import pandas as pd


def drive_study(
    study: Study,
    place: RunDirectory,
    pool: JobExecutor,
    commands: Commands,
    bar: Bar | None,
    callbacks: Iterable[Callback] = (),
) -> Report:
    """Run a study, and say in Python's ways how it ended."""
    for sentence in Registry.installed().warnings:
        warnings.warn(sentence, RunWarning, stacklevel=3)
    if bar is not None and bar.visible():
        progress.announce(study)
    shown: AbstractContextManager[Listener | None] = nullcontext() if bar is None else bar
    with shown as listener:
        report = drive(study, place, workers=pool, commands=commands, listener=Following(listener, callbacks))
    if (early := progress.early_end(report)) is not None and report.status.called_off:
        warnings.warn(early, RunWarning, stacklevel=3)
    elif early is not None:
        text = early if report.gone else f"{early}; coband.load({str(report.directory)!r}) reads them"
        raise KeyboardInterrupt(text) if report.interrupted else RunError(text)
    for sentence in progress.warnings(report):
        warnings.warn(sentence, RunWarning, stacklevel=3)
    if report.failures:
        count = f"{len(report.failures)} of {report.status.total} jobs broke off"
        warnings.warn(f"{count}; the failures of the run say why", RunWarning, stacklevel=3)
    return report


def count_of(workers: int | None, most: int) -> int:
    """How many processes there are for at most so many jobs; None for one per job, at most one per core.

    Raises:
        RunError: there are none.
    """
    if workers is not None and not (isinstance(workers, Integral) and workers >= 1):
        raise RunError(f"workers={workers!r}: at least one is needed, a whole number.")
    return max(1, min(most, cores())) if workers is None else int(workers)


def pool_of(workers: int | None, most: int) -> JobExecutor:
    """Workers; a single one is this process, if its BLAS is the one that results are made with."""
    count = count_of(workers, most)
    if multiprocessing.current_process().daemon:  # such a process may have no children
        return InProcess()
    if coband.BLAS_IS_PINNED:
        return InProcess() if count == 1 else Local(count)
    with Local(1) as executor:
        jobs_run_on(executor.submit(kernels).result())
    return Local(count)


def pulls(run: StoredRun) -> pd.DataFrame:
    """The pulls of all finished jobs, which run again."""
    import pandas as pd

    jobs = list(_jobs(run))
    count = count_of(None, len(jobs))
    with Local(count) if count > 1 or not coband.BLAS_IS_PINNED else InProcess() as executor:
        found = [(job, executor.submit(_pulls, job, scenario, fingerprint)) for job, scenario, fingerprint in jobs]
        rows = [(job.label, job.replication, *pull) for job, one in found for pull in one.result()]
    return pd.DataFrame(rows, columns=["label", "replication", *repeating.PULL])


def _pulls(job: Job, scenario: PickledScenario, fingerprint: str) -> list[repeating.Pull]:
    return repeating.pulls(job, scenario.load(), fingerprint)


def _jobs(run: StoredRun) -> Iterator[tuple[Job, PickledScenario, str]]:
    """The finished jobs, with their scenarios and fingerprints."""
    finished = [job for job in run.jobs if job.record is not None]
    if not finished:
        raise StoreError(f"{run.path}: no job has finished, so there are no pulls.")
    swept, base = variants(run), run.path if run.path.is_dir() else run.path.parent
    for name in run.labels:
        text, entry = (swept[name].text, swept[name].entry) if name in swept else (run.scenario, name)
        scenario = load_point(ScenarioText(text, str(run.path), base), ["expect=[]"]).scenario
        algorithm = next(one.algorithm.name for one in scenario.algorithms if one.label == entry)
        for stored in sorted((job for job in finished if job.label == name), key=attrgetter("replication")):
            assert stored.record is not None
            again = Job(0, name, algorithm, stored.replication, scenario.seed, "protocol", entry=entry)
            yield again, PickledScenario.of(scenario), str(stored.record["fingerprint"])
