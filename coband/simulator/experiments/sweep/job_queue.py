"""Workers that wait in the queue of a cluster: a Dask scheduler here, and jobs of Slurm, PBS and others that join it.

dask-jobqueue writes and submits the jobs. Everything is ended with the sweep: the jobs are cancelled.
"""

from __future__ import annotations

import inspect
import shlex
import shutil
import signal
import warnings
from collections.abc import Iterable, Mapping, Sequence
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
OWN = ("jobs", *SCHEDULER)
"""Options that are not those of a single job."""
WHOLE = ("jobs", "port", "cores", "processes", "death_timeout", "job_cpu", "ncpus", "mem")
"""Options that are whole numbers."""
LISTS = (
    *("job_extra_directives", "job_directives_skip", "job_script_prologue"),
    *("worker_extra_args", "submit_command_extra", "cancel_command_extra"),
)
"""Options that are lists, with an item for each time that they are given."""
_NOT_FOR_USERS = (
    *("self", "args", "scheduler", "name", "nanny", "protocol", "security", "worker_command", "base_class_kwargs"),
    *("extra", "env_extra", "job_extra", "header_skip", "kwargs"),
)
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
        kind = _kind(system)
        given = parsed_options(system, options, _allowed(kind))
        self._jobs: int = given.get("jobs", 1)
        self._queue: Any = None
        job = _of_a_job(system, kind, given)
        try:
            self._queue = _started(
                system, kind, {key: given[key] for key in SCHEDULER if key in given}, job, self._jobs
            )
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


def parsed_options(system: str, options: Options, allowed: Sequence[str]) -> dict[str, Any]:
    """Options by name, with values of the types that dask-jobqueue wants.

    Raises:
        ExecutorError: an unknown name, or no value.
    """
    found: dict[str, Any] = {}
    for given, value in options.items() if isinstance(options, Mapping) else map(_pair, options):
        key = given.replace("-", "_")
        if key not in allowed:
            near = did_you_mean(key, allowed)
            raise ExecutorError(
                f"--cluster-option {quoted(given)} is not an option of {system}{near or '.'} "
                f"There is {', '.join(sorted(allowed))}."
            )
        if key in LISTS:
            found.setdefault(key, []).extend([value] if isinstance(value, str) else value)
        elif key in found:
            raise ExecutorError(f"--cluster-option {key} is given twice; only {', '.join(LISTS)} may be repeated.")
        elif key not in WHOLE:
            found[key] = value
        elif str(value).isdecimal() and int(value) > 0:
            found[key] = int(value)
        else:
            raise ExecutorError(f"--cluster-option {key}={value}: must be a whole number, at least 1.")
    return found


def _pair(text: str) -> tuple[str, str]:
    key, _, value = text.partition("=")
    if not key or not value:
        raise ExecutorError(f"--cluster-option {quoted(text)} must be KEY=VALUE, such as cores=4 or memory=8GB.")
    return key, value


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


def _allowed(kind: Any) -> list[str]:
    """The options of the jobs of a system, as its classes declare them, and `OWN`."""
    declared = [name for one in kind.job_cls.__mro__ for name in inspect.signature(one.__init__).parameters]
    return sorted({*declared, *OWN}.difference(_NOT_FOR_USERS))


def _of_a_job(system: str, kind: Any, given: dict[str, Any]) -> dict[str, Any]:
    """The options of a job.

    Raises:
        ExecutorError: cores or memory are said nowhere.
    """
    import dask
    import dask.utils

    job = {key: value for key, value in given.items() if key not in OWN}
    section = f"jobqueue.{job.get('config_name', kind.job_cls.default_config_name())}"
    known = {key: job.get(key, dask.config.get(f"{section}.{key}", None)) for key in ("cores", "memory", "processes")}
    missing = [key for key in ("cores", "memory") if known[key] is None]
    if missing:
        raise ExecutorError(
            f"--cluster {system} must know {' and '.join(missing)} of a job: --cluster-option cores=4 --cluster-option "
            f"memory=8GB, or {section} in Dask's configuration."
        )
    try:
        dask.utils.parse_bytes(known["memory"])
    except (ValueError, TypeError):
        raise ExecutorError(f"--cluster-option memory={known['memory']}: must be a size such as 8GB.") from None
    job["processes"] = known["processes"] or known["cores"]  # as a job of coband uses one core
    extra = job.get("worker_extra_args", dask.config.get(f"{section}.worker-extra-args", None) or [])
    job["worker_extra_args"] = [*extra, *PRELOAD]
    if system == "htcondor" and "job_extra_directives" in job:
        job["job_extra_directives"] = dict(_pair(text) for text in job["job_extra_directives"])
    return job


def _started(system: str, kind: Any, scheduler: dict[str, Any], job: dict[str, Any], jobs: int) -> Any:
    """A scheduler in this process, and jobs that have been submitted.

    Raises:
        ExecutorError: the options do not fit, or the system does not take the jobs.
    """
    command = kind.job_cls.submit_command
    if command is not None and shutil.which(shlex.split(command)[0]) is None:
        raise ExecutorError(
            f"--cluster {system} submits jobs by `{command}`, which is not here: start the sweep where it is."
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the dashboard has another port, for one
        try:
            queue = kind(scheduler_options=scheduler, **job) if scheduler else kind(**job)
        except (ValueError, TypeError, KeyError, OSError) as error:
            raise ExecutorError(f"--cluster {system}: {_first_lines(error)}") from error

    async def submitted() -> None:
        await queue  # which starts what its specification asks for, and raises what goes wrong, unlike its `scale`

    try:
        for _ in range(jobs):
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
    return " ".join(str(error).split())[:500] or type(error).__name__
