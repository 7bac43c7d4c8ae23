"""Where jobs run: in this process, or in worker processes with one BLAS thread each; one interface for both."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, ParamSpec, TypeVar

from coband.simulator.experiments.runs.blas import ONE_THREAD

P = ParamSpec("P")
T = TypeVar("T")

IDLE_SECONDS = 30.0  # a worker ends when it has had nothing to do for so long, be it that its driver has been killed


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
    """A pool of worker processes that ignore Ctrl-C, which is the driver's business."""
    from joblib.externals.loky import ProcessPoolExecutor  # not needed, and not quick to import, for serial runs

    pool: Executor = ProcessPoolExecutor(
        max_workers=workers, timeout=IDLE_SECONDS, initializer=_ignore_interrupts, env=ONE_THREAD
    )
    return pool


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def stop(executor: Executor) -> None:
    """Stop at once: jobs under way are abandoned."""
    if isinstance(executor, Serial):
        return
    keywords: dict[str, Any] = {"kill_workers": True}  # loky's own; the standard library has no such thing
    executor.shutdown(wait=True, **keywords)
