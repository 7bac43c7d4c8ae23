"""Driving studies from Python: the workers, and how a study's end is told."""

from __future__ import annotations

import multiprocessing
import warnings
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from numbers import Integral

import coband
from coband.simulator.api.callbacks import Callback, Following
from coband.simulator.api.errors import RunError, RunWarning
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.runs.code_version import jobs_run_on, kernels
from coband.simulator.experiments.runs.driver import drive
from coband.simulator.experiments.runs.executor import InProcess, JobExecutor, Local, cores
from coband.simulator.experiments.runs.reporting import Commands, Listener, Report
from coband.simulator.experiments.runs.study import Study
from coband.simulator.experiments.store.directory import RunDirectory
from coband.simulator.terminal import progress
from coband.simulator.terminal.progress import Bar


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
