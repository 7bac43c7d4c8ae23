"""Where jobs run: in this process, or in worker processes with one BLAS thread each; one interface for all, that of
`concurrent.futures`. A `Dispatcher` hands jobs out, and finds out which of them kills its worker.
"""

from __future__ import annotations

import os
import signal
import threading
import time
import traceback
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Generic, ParamSpec, TypeVar

from coband.simulator.experiments.runs.attempt import OtherCodeError, Outcome
from coband.simulator.experiments.runs.code_version import ONE_THREAD
from coband.simulator.experiments.scenario.loading import BAD_INPUT
from coband.simulator.scenario_errors import RAISED, RequestError

P = ParamSpec("P")
T = TypeVar("T")
Key = TypeVar("Key", bound=Hashable)

IDLE_SECONDS = 30.0  # a worker ends when it has had nothing to do for so long
PARENT_SECONDS = 0.5  # a worker looks so often whether its driver still runs
THREADS = ("ExecutorManagerThread", "QueueFeederThread")  # of a pool, in the driver


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
        time.sleep(PARENT_SECONDS)
    os._exit(1)  # the pool's own way out waits for the driver to hang up


@contextmanager
def interrupts_held(first: bool) -> Iterator[None]:
    """Let Ctrl-C wait: processes that start meanwhile never hear it, not even before they can ignore it themselves.

    Threads that start meanwhile, such as the pool's, hand this down to the processes that they start later.

    Args:
        first: whether a pool is made. Its resource tracker is then started, or woken to see whether it lives; doing so
            for each job takes a tenth of what a job costs in addition to its own work.
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
    """Stop worker processes at once: jobs under way are abandoned."""
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


class ExecutorError(RequestError):
    """There is nobody to run the jobs; the text says why and what to do."""


class JobExecutor(Executor):
    """Runs jobs.

    `submit` raises BrokenExecutor when a process has died and `abandon` has to come first, and ExecutorError when the
    workers cannot be reached. `shutdown` ends it; jobs under way are lost.

    Attributes:
        died: what a future raises when the process that ran its job has died.
        breaks: whether the death of one worker ends all jobs that are under way.
        in_process: whether jobs run in the driver's process, where scenarios need not be pickled.
        children: whether jobs run in child processes of the driver, which must not go on without it.
        cluster: the cluster that it is part of, if it is one.
    """

    died: tuple[type[BaseException], ...] = ()
    breaks = False
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

    def alone(self) -> AbstractContextManager[JobExecutor]:
        """Where a job runs with no other one in the same pool of processes."""
        return nullcontext(self)

    def abandon(self) -> None:
        """Abandon jobs that have not ended: they are lost."""

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Abandon jobs that have not ended."""
        self.abandon()

    @abstractmethod
    def describe(self) -> str:
        """Who they are, in a few words."""


class InProcess(JobExecutor):
    """This process, which runs each job as it is submitted."""

    in_process = True

    def size(self) -> int:
        return 1

    def window(self) -> int:
        """One job, so that each is kept before the next one begins."""
        return 1

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call ``fn`` and return its result in a finished future."""
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future

    def describe(self) -> str:
        return "this process"


class Local(JobExecutor):
    """Processes of this machine.

    Args:
        workers: how many; None for one per core.

    Raises:
        ExecutorError: the driver may not open enough files for so many.
    """

    died = (BrokenExecutor,)
    breaks = True
    children = True

    def __init__(self, workers: int | None = None) -> None:
        self._workers = workers or cores()
        check_open_files(self._workers)
        self._pool: Executor | None = None

    def size(self) -> int:
        return self._workers

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Give a job to the pool of processes."""
        with interrupts_held(first=self._pool is None):
            if self._pool is None:
                self._pool = processes(self._workers)
            return self._pool.submit(fn, *args, **kwargs)

    def alone(self) -> Local:
        return Local(1)

    def abandon(self) -> None:
        if self._pool is not None:
            stop(self._pool)
            self._pool = None

    def describe(self) -> str:
        return f"{self._workers} process{'es' * (self._workers != 1)}"


def check_open_files(count: int, what: str = "workers", instead: str = "run with --workers 1") -> None:
    """Refuse so many processes where this one may not open enough files, pipes and sockets for them.

    Args:
        what: what they are called.
        instead: what else helps.

    Raises:
        ExecutorError: they are too many.
    """
    limit, needed = _most_open_files(), FILES + FILES_OF_A_WORKER * count
    if limit is not None and limit < needed:
        raise ExecutorError(
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


TICK_SECONDS = 0.5
WORKER_DIED = "its worker process died, twice: it ran out of memory, crashed or was killed"


class Dispatcher(Generic[Key]):
    """Runs jobs until none waits.

    Jobs under way when a worker dies are suspects. They run again when nothing else is left, one at a time, so that
    a job which always kills its worker is the only one that fails.

    Args:
        submit: hands the job with a key to an executor.
        settle: called with the key of a job that has ended and what it has given; it may make further jobs wait.
        tick: called after jobs have ended, and at least twice a second while other processes work.

    Attributes:
        waiting: keys of jobs that are not handed out yet.
    """

    def __init__(
        self,
        executor: JobExecutor,
        submit: Callable[[JobExecutor, Key], Future[Outcome]],
        settle: Callable[[Key, Outcome], None],
        tick: Callable[[], None],
    ) -> None:
        self._executor, self._submit, self._settle, self._tick = executor, submit, settle, tick
        self.waiting: deque[Key] = deque()

    def run(self) -> None:
        """Run until nothing waits.

        Raises:
            ExecutorError: the workers cannot be reached any more, or run another coband.
        """
        while self.waiting:
            if suspects := self._run(self._executor, self.waiting):
                with self._executor.alone() as executor:
                    self._run(executor, suspects, alone=True)

    def _run(self, executor: JobExecutor, waiting: deque[Key], *, alone: bool = False) -> deque[Key]:
        """Run jobs side by side, or one at a time, when the death of a worker is held against its job.

        Returns:
            The suspects.
        """
        running: dict[Future[Outcome], Key] = {}
        suspects: deque[Key] = deque()
        while waiting or running:
            whole = self._fill(executor, running, waiting, 1 if alone else executor.window())
            for future in wait(running, timeout=TICK_SECONDS, return_when=FIRST_COMPLETED).done:
                key = running.pop(future)
                if self._take(executor, key, future):
                    continue
                whole = whole and not executor.breaks
                if alone:
                    self._settle(key, Outcome("failed", error=WORKER_DIED))
                else:
                    suspects.append(key)
            if not whole:
                suspects += [key for future, key in running.items() if not self._came_in_time(executor, key, future)]
                running.clear()
                executor.abandon()
            self._tick()
        return suspects

    def _fill(self, executor: JobExecutor, running: dict[Future[Outcome], Key], waiting: deque[Key], room: int) -> bool:
        """Hand out as many jobs as there is room for; False when the executor turns out to be broken."""
        while waiting and len(running) < room:
            try:
                running[self._submit(executor, waiting[0])] = waiting[0]
            except BrokenExecutor:
                return False
            waiting.popleft()
        return True

    def _came_in_time(self, executor: JobExecutor, key: Key, future: Future[Outcome]) -> bool:
        """Whether a job had ended before the executor broke."""
        ended = future.done() and not future.cancelled() and future.exception() is None
        return ended and self._take(executor, key, future)

    def _take(self, executor: JobExecutor, key: Key, future: Future[Outcome]) -> bool:
        """Settle a job that has ended; False when its worker died."""
        try:
            outcome = future.result()
        except executor.died:
            return False
        except CancelledError:
            raise ExecutorError("the scheduler of the cluster has gone.") from None
        except OtherCodeError as error:
            raise ExecutorError(str(error)) from error
        except BAD_INPUT as error:
            outcome = Outcome("failed", error=str(error), refusal=error)
        except RAISED:
            outcome = Outcome("failed", error=traceback.format_exc())
        self._settle(key, outcome)
        return True
