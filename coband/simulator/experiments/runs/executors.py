"""Where jobs run: in this process, or in worker processes with one BLAS thread each; one interface for both."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

from coband.simulator.experiments.runs.blas import ONE_THREAD

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
