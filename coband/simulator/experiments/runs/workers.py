"""Where jobs run: in this process, or in worker processes with one BLAS thread each; one interface for both."""

from __future__ import annotations

import os
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

from coband.simulator.experiments.runs.code_version import ONE_THREAD
from coband.simulator.experiments.runs.job import OnPull
from coband.simulator.experiments.runs.work import JobResult, Work, work
from coband.simulator.scenario_errors import RequestError

P = ParamSpec("P")
T = TypeVar("T")

IDLE_SECONDS = 30.0  # a worker ends when it has had nothing to do for so long
LOOK_SECONDS = 0.5  # a worker looks so often whether its driver still runs
THREADS = ("ExecutorManagerThread", "QueueFeederThread")  # of a pool, in the driver


class Serial(Executor):
    """Runs each call at once, in this process."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call ``fn`` and return its result in a finished future."""
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processes(workers: int) -> Executor:
    """A pool of worker processes that ignore Ctrl-C, which is the driver's business, and end when the driver does."""
    from joblib.externals.loky import ProcessPoolExecutor  # not needed, and not quick to import, for serial runs

    pool: Executor = ProcessPoolExecutor(
        max_workers=workers, timeout=IDLE_SECONDS, initializer=_begin, initargs=(os.getpid(),), env=ONE_THREAD
    )
    return pool


def _begin(driver: int) -> None:
    """What a worker does first."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(driver,), daemon=True).start()


def _end_with(driver: int) -> None:
    """End this process soon after its parent has ended, whatever it does."""
    while os.getppid() == driver:
        time.sleep(LOOK_SECONDS)
    os._exit(1)  # the pool's own way out waits for the driver to hang up


@contextmanager
def interrupts_held(first: bool) -> Iterator[None]:
    """Let Ctrl-C wait: processes that start meanwhile never hear it, not even before they can ignore it themselves.

    Threads that start meanwhile, such as the pool's, hand this down to the processes that they start later.

    Args:
        first: whether a pool is made. Its resource tracker is then started, or woken to see whether it lives; doing so
            for each job takes a tenth of what a job costs beside its own work.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    if first:
        from multiprocessing import resource_tracker  # not needed for serial runs

        resource_tracker.ensure_running()  # its start lets signals through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def stop(executor: Executor) -> None:
    """Stop at once: jobs under way are abandoned."""
    if isinstance(executor, Serial):
        return
    keywords: dict[str, bool] = {"kill_workers": True}  # loky's own; the standard library has no such thing
    with _failing_threads():
        executor.shutdown(wait=True, **keywords)


@contextmanager
def _failing_threads() -> Iterator[None]:
    """Say nothing of the pool's own threads, which may find closed what they wait for."""
    before = threading.excepthook

    def told(given: threading.ExceptHookArgs) -> None:
        if given.thread is None or given.thread.name not in THREADS:
            before(given)

    threading.excepthook = told
    try:
        yield
    finally:
        threading.excepthook = before


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
        return Serial().submit(work, item, on_pull)

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
        self._workers = workers or cores()
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
        with interrupts_held(first=self._executor is None):
            if self._executor is None:
                self._executor, self._made = processes(wanted), wanted
            return self._executor.submit(work, item)

    def breaks(self) -> bool:
        return True

    def abandon(self) -> None:
        if self._executor is not None:
            stop(self._executor)
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
