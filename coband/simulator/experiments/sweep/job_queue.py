"""Workers that wait in the queue of a cluster: a Dask scheduler here, and jobs of Slurm, PBS and others that join it.

dask-jobqueue writes and submits the jobs. Everything is ended with the sweep: the jobs are cancelled.
"""

from __future__ import annotations

import signal
import warnings
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any

from coband.simulator.experiments.runs.executor import ExecutorError
from coband.simulator.experiments.sweep.cluster import Cluster
from coband.simulator.scenario_errors import did_you_mean, quoted

SYSTEMS = {
    **{"slurm": "SLURMCluster", "pbs": "PBSCluster", "sge": "SGECluster", "lsf": "LSFCluster"},
    **{"htcondor": "HTCondorCluster", "oar": "OARCluster", "jobqueue-local": "LocalCluster"},
}
"""The systems of queues, with their classes; the last one starts its jobs on this machine, for trying things out."""
SCHEDULER = ("host", "port", "dashboard_address")
"""Options of the scheduler: where it listens."""
LISTS = ("job_extra_directives", "job_script_prologue")
"""Options that are lists, with an item for each time that they are given."""
PRELOAD = ("--preload-nanny", "coband")
"""Lets coband choose the kind of BLAS before the worker's process imports numpy."""
CLOSE_SECONDS = 30.0
NO_JOBQUEUE = (
    "--cluster {} needs dask-jobqueue, which is not installed; `pip install 'coband[jobqueue]'` brings it "
    "(in a source tree: pip install -c constraints.txt -e '.[jobqueue]')."
)
Options = Mapping[str, Any] | Iterable[str]


class JobQueue(Cluster):
    """Workers in the queue of a cluster.

    Args:
        system: one of `SYSTEMS`.
        options: of the jobs, ``{"cores": 4, "memory": "8GB"}`` or ``["cores=4", "memory=8GB"]``; what they do not say
            is read from Dask's own configuration, ``jobqueue.yaml``.

    Raises:
        ExecutorError: no dask-jobqueue, an unknown option, or the system takes no jobs.
    """

    def __init__(self, system: str, options: Options = ()) -> None:
        kind, given = _kind(system), parsed_options(options)
        self._jobs: int = given.get("jobs", 1)
        self._queue: Any = None
        try:
            self._queue = _started(system, kind, given)
            super().__init__(self._queue.scheduler_address)
        except BaseException:
            self._end_jobs()
            raise
        self.cluster = f"{system} ({', '.join(f'{key}={value}' for key, value in given.items())})"

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take leave of the scheduler, cancel the jobs, and end the scheduler."""
        try:
            super().shutdown()
        finally:
            self._end_jobs()

    def advice(self) -> list[str]:
        """Whether anybody works yet."""
        if self._workers():
            return []
        return [f"{self._jobs} job{'s' * (self._jobs != 1)} in the queue; the sweep begins when the first one runs"]

    def _end_jobs(self) -> None:
        """Without a scheduler, workers of jobs that could not be cancelled end by themselves."""
        if self._queue is not None:
            _end(self._queue)
            self._queue = None


def cluster_of(name: str | None, options: Options = (), workers: int | None = None) -> Cluster | None:
    """The workers of a Dask scheduler, by its address, or in the queue of a cluster, by the name of its system.

    Args:
        name: an address such as tcp://HOST:8786, or one of `SYSTEMS`; None for no cluster.
        options: of jobs in a queue.
        workers: processes of this machine; None where there is a cluster.

    Raises:
        ExecutorError: the arguments contradict each other, there is no such cluster, or it cannot be used.
    """
    if name is None:
        if options:
            raise ExecutorError("--cluster-option goes with --cluster.")
        return None
    if workers is not None:
        raise ExecutorError("give --workers or --cluster, not both.")
    if name in SYSTEMS:
        return JobQueue(name, options)
    near = did_you_mean(name, list(SYSTEMS))
    if near:
        raise ExecutorError(f"--cluster {quoted(name)} is not a known system{near} There is {', '.join(SYSTEMS)}.")
    if list(options):
        raise ExecutorError(f"--cluster-option goes with the queue of a cluster: --cluster {'|'.join(SYSTEMS)}.")
    return Cluster(name)


def parsed_options(options: Options) -> dict[str, Any]:
    """Options by name; dask-jobqueue says which there are.

    Raises:
        ExecutorError: one has no value, or is given twice.
    """
    found: dict[str, Any] = {}
    pairs = options.items() if isinstance(options, Mapping) else (one.partition("=")[::2] for one in options)
    for given, value in pairs:
        key = given.replace("-", "_")
        if not key or value == "":
            raise ExecutorError(f"--cluster-option {quoted(given)} must be KEY=VALUE, such as cores=4 or memory=8GB.")
        if key in LISTS:
            found.setdefault(key, []).extend([value] if isinstance(value, str) else value)
        elif key in found:
            raise ExecutorError(f"--cluster-option {key} is given twice; only {', '.join(LISTS)} may be repeated.")
        else:
            found[key] = int(value) if str(value).isdecimal() else value
    return found


def _kind(system: str) -> Any:
    """The class of dask-jobqueue for a system; its import takes Ctrl-C over, which is given back here."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        return getattr(import_module(f"dask_jobqueue.{system.removeprefix('jobqueue-')}"), SYSTEMS[system])
    except ModuleNotFoundError:
        raise ExecutorError(NO_JOBQUEUE.format(system)) from None
    finally:
        for number, handler in handlers.items():
            if handler is not None and signal.getsignal(number) != handler:
                signal.signal(number, handler)


def _started(system: str, kind: Any, given: dict[str, Any]) -> Any:
    """A scheduler in this process, and jobs that have been submitted.

    Raises:
        ExecutorError: the options do not fit, or the system does not take the jobs.
    """
    import dask

    scheduler = {key: given[key] for key in SCHEDULER if key in given}
    job = {key: value for key, value in given.items() if key not in ("jobs", *SCHEDULER)}
    usual = dask.config.get(f"jobqueue.{kind.job_cls.default_config_name()}", {})
    if (cores := job.get("cores", usual.get("cores"))) is not None:  # as a job of coband uses one
        job.setdefault("processes", usual.get("processes") or cores)
    job["worker_extra_args"] = [*job.get("worker_extra_args", usual.get("worker-extra-args") or ()), *PRELOAD]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the dashboard has another port, for one
        try:
            queue = kind(scheduler_options=scheduler, **job) if scheduler else kind(**job)
        except (ValueError, TypeError, KeyError, OSError) as error:
            raise ExecutorError(f"--cluster {system}: {_first_lines(error)}") from error

    async def submitted() -> None:
        await queue  # which starts what its specification asks for, and raises what goes wrong, unlike its `scale`

    try:
        for _ in range(given.get("jobs", 1)):
            queue.worker_spec.update(queue.new_worker_spec())
        queue.sync(submitted)
    except BaseException as error:
        _end(queue)
        if isinstance(error, Exception):
            raise ExecutorError(f"--cluster {system}: no job could be started: {_first_lines(error)}") from error
        raise
    return queue


def _end(queue: Any) -> None:
    """Cancel the jobs and end the scheduler.

    dask-jobqueue leaves the status of jobs as it was, and Dask does not end what is around a job that has not ended.
    """
    from distributed import Status

    for job in queue.workers.values():
        job.status = Status.closing
    with suppress(Exception):
        queue.close(timeout=CLOSE_SECONDS)


def _first_lines(error: Exception) -> str:
    """What an error says, on one line."""
    return " ".join(str(error).split())[:200] or type(error).__name__
