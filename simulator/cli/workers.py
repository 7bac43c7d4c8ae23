"""Options that say where jobs run: processes of this machine, a Dask scheduler, or the queue of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from coband.simulator.cli.options import BadInput, workers

if TYPE_CHECKING:
    from coband.simulator.experiments.runs.workers import WorkerPool

OPTIONS = (
    workers("Processes on this machine; by default one per core."),
    click.option(
        "--cluster",
        metavar="tcp://HOST:PORT|SYSTEM",
        help="Run on the workers of this Dask scheduler instead, or in a queue: slurm, pbs, sge, lsf, htcondor, oar.",
    ),
    click.option(
        "--cluster-option",
        "cluster_options",
        multiple=True,
        metavar="KEY=VALUE",
        help="With a queue: jobs=10, cores=4, memory=8GB, queue=short, walltime=01:00:00, and others; repeatable.",
    ),
)

RESUME = click.option("--resume", is_flag=True, help="Go on in a directory with finished jobs: they do not run again.")


def placed(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command these options."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


@contextmanager
def pool(workers: int | None, cluster: str | None, options: Sequence[str] = ()) -> Iterator[WorkerPool]:
    """Who runs jobs, as long as the block lasts.

    Raises:
        BadInput: the options contradict each other, or there is no such cluster; or, in the block, what a driver says
            about directories and workers.
    """
    from coband.simulator.experiments.runs.workers import WorkerPoolError
    from coband.simulator.experiments.store.directory import OutputError, StorageError
    from coband.simulator.experiments.sweep.lock import LockedError

    if workers is not None and cluster is not None:
        raise BadInput("give --workers or --cluster, not both.")
    if options and cluster is None:
        raise BadInput("--cluster-option goes with --cluster.")
    try:
        found = pool_of(workers, cluster, options)
        try:
            yield found
        finally:
            found.close()
    except (OutputError, LockedError, WorkerPoolError, StorageError) as error:
        raise BadInput(str(error)) from error


def pool_of(workers: int | None, cluster: str | None, options: Sequence[str]) -> WorkerPool:
    """The processes, or the workers of the cluster."""
    from coband.simulator.experiments.runs.workers import Local
    from coband.simulator.experiments.sweep.job_queue import cluster_of

    if cluster is None:
        return Local(workers)
    found = cluster_of(cluster, options)
    click.echo(f"{found.describe()}; dashboard: {found.dashboard}", err=True)
    for advice in found.advice():
        click.echo(f"warning: {advice}", err=True)
    return found
