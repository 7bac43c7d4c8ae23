"""Worker pools: who runs the jobs, in this process or in others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from concurrent.futures import BrokenExecutor, Executor, Future

from coband.simulator.experiments.runs import executors
from coband.simulator.experiments.runs.job import OnPull
from coband.simulator.experiments.runs.work import JobResult, Work, work
from coband.simulator.scenario_errors import RequestError

FILES, FILES_OF_A_WORKER = 40, 2  # that a driver has open at most (measured: 23, and 1 for each worker)
AHEAD = 2  # jobs handed out for each one that runs, so that no worker waits for the driver


class WorkerPoolError(RequestError):
    """There is nobody to run the jobs; the text says why and what to do."""


class WorkerPool(ABC):
    """Workers.

    Attributes:
        died: what a future raises when the process that ran its job has died.
        in_process: whether jobs run in the driver's process, where scenarios need not be pickled.
        children: whether jobs run in child processes of the driver, which must not go on without it.
        cluster: the cluster that they are part of, if it is one.
    """

    died: tuple[type[BaseException], ...] = ()
    in_process = False
    children = False
    cluster: str | None = None

    @property
    def dashboard(self) -> str | None:
        """Address of a page about the workers, if there is one."""
        return None

    @abstractmethod
    def size(self) -> int:
        """How many jobs run at once."""

    def window(self) -> int:
        """How many jobs may be handed out at once."""
        return AHEAD * max(1, self.size())

    @abstractmethod
    def submit(self, item: Work, on_pull: OnPull | None = None, *, alone: bool = False) -> Future[JobResult]:
        """Hand out a job.

        Args:
            item: the job.
            on_pull: called now and then with the number of pulls so far, where the job runs in this process.
            alone: with no other job in the same pool of processes.

        Raises:
            BrokenExecutor: a process has died; :meth:`abandon` comes first.
            WorkerPoolError: the workers cannot be reached.
        """

    def breaks(self) -> bool:
        """Whether the death of one worker ends all jobs that are under way."""
        return False

    def abandon(self) -> None:  # noqa: B027, where nothing is ever under way
        """Abandon jobs that have not ended: they are lost."""

    def close(self) -> None:
        self.abandon()

    @abstractmethod
    def describe(self) -> str:
        """Who they are, in a few words."""


class InProcess(WorkerPool):
    """This process, which runs one job after the other as they are submitted."""

    in_process = True

    def size(self) -> int:
        return 1

    def window(self) -> int:
        """One job, so that each is kept before the next one begins."""
        return 1

    def submit(self, item: Work, on_pull: OnPull | None = None, *, alone: bool = False) -> Future[JobResult]:
        return executors.Serial().submit(work, item, on_pull)

    def describe(self) -> str:
        return "this process"


class Local(WorkerPool):
    """Processes of this machine.

    Args:
        workers: how many; None for one per core.

    Raises:
        WorkerPoolError: the driver may not open enough files for so many.
    """

    died = (BrokenExecutor,)
    children = True

    def __init__(self, workers: int | None = None) -> None:
        self._workers = workers or executors.cores()
        check_open_files(self._workers)
        self._executor: Executor | None = None
        self._made = 0

    def size(self) -> int:
        return self._workers

    def submit(self, item: Work, on_pull: OnPull | None = None, *, alone: bool = False) -> Future[JobResult]:
        """Give a job to the pool of processes; to another one when another size is asked for."""
        wanted = 1 if alone else self._workers
        if self._executor is not None and self._made != wanted:
            self.abandon()
        with executors.interrupts_held(first=self._executor is None):
            if self._executor is None:
                self._executor, self._made = executors.processes(wanted), wanted
            return self._executor.submit(work, item)

    def breaks(self) -> bool:
        return True

    def abandon(self) -> None:
        if self._executor is not None:
            executors.stop(self._executor)
            self._executor = None

    def describe(self) -> str:
        return f"{self._workers} process{'es' * (self._workers != 1)}"


def check_open_files(count: int, what: str = "workers", instead: str = "run with --workers 1") -> None:
    """Refuse so many processes where this one may not open enough files, pipes and sockets for them.

    Args:
        what: what they are called.
        instead: what else helps.

    Raises:
        WorkerPoolError: they are too many.
    """
    limit, needed = _most_open_files(), FILES + FILES_OF_A_WORKER * count
    if limit is not None and limit < needed:
        raise WorkerPoolError(
            f"this process may have {limit} files open, and {count} {what} need {needed}; raise the limit "
            f"(ulimit -n {max(needed, 256)}), or {instead}"
        )


def _most_open_files() -> int | None:
    """How many files and pipes this process may have open (``ulimit -n``); None for any number."""
    try:
        import resource
    except ImportError:  # Windows has no such limits
        return None
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def workers_for(count: int) -> WorkerPool:
    """A pool of so many workers; a single one is this process."""
    return InProcess() if count == 1 else Local(count)
