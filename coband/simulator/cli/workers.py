"""Options that say where jobs run: processes of this machine, a Dask scheduler, or the queue of a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from coband.simulator.cli.options import loud, options, workers

if TYPE_CHECKING:
    from coband.simulator.experiments.runs.executor import JobExecutor

placed = options(
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
    loud,
)

RESUME = click.option("--resume", is_flag=True, help="Go on in a directory with finished jobs: they do not run again.")


@contextmanager
def pool(workers: int | None, cluster: str | None, cluster_options: Sequence[str] = ()) -> Iterator[JobExecutor]:
    """Who runs jobs, as long as the block lasts.

    Raises:
        ExecutorError: the options contradict each other, or there is no such cluster.
    """
    from coband.simulator.experiments.sweep.job_queue import require_one_place

    require_one_place(workers, cluster, cluster_options)
    with pool_of(workers, cluster, cluster_options) as found:
        yield found


def pool_of(workers: int | None, cluster: str | None, options: Sequence[str]) -> JobExecutor:
    """The processes, or the workers of the cluster."""
    from coband.simulator.experiments.runs.executor import Local
    from coband.simulator.experiments.sweep.job_queue import cluster_of

    if cluster is None:
        return Local(workers)
    found = cluster_of(cluster, options)
    click.echo(f"{found.describe()}; dashboard: {found.dashboard}", err=True)
    for advice in found.advice():
        click.echo(f"warning: {advice}", err=True)
    return found
