"""Hands jobs to workers, and finds out which of them kills its worker."""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from typing import Any

from coband.simulator.experiments.runs.job import Outcome
from coband.simulator.experiments.runs.runner import WORKER_DIED
from coband.simulator.experiments.sweep.work import OtherCodeError, Work, work
from coband.simulator.experiments.sweep.workers import WorkerPool, WorkerPoolError

TICK_SECONDS = 0.5
WINDOW = 2  # jobs handed out for each one that runs, so that no worker waits for the driver

Settle = Callable[[str, Outcome, bytes], None]


class Dispatcher:
    """Runs jobs until none waits.

    Jobs under way when a worker dies are suspects. They run again when nothing else is left, one at a time with nothing
    beside them, so a job that always kills its worker costs itself alone.

    Args:
        crew: who does the jobs.
        work_of: address of a job -> what a worker gets.
        settle: called with address, outcome and done-file of a job that has ended; it may make further jobs wait.
        tick: called at least twice a second.

    Attributes:
        waiting: addresses of jobs that are not handed out yet.
    """

    def __init__(
        self, crew: WorkerPool, work_of: Callable[[str], Work], settle: Settle, tick: Callable[[], None]
    ) -> None:
        self._crew, self._work_of, self._settle, self._tick = crew, work_of, settle, tick
        self.waiting: deque[str] = deque()

    def run(self) -> None:
        """Run until nothing waits.

        Raises:
            CrewError: the workers cannot be reached any more, or run another coband.
        """
        suspects: deque[str] = deque()
        while self.waiting or suspects:
            suspects.extend(self._crowd())
            while suspects:
                self._alone(suspects.popleft())

    def _crowd(self) -> list[str]:
        """Run jobs side by side; returns the suspects."""
        running: dict[Future[Any], str] = {}
        suspects: list[str] = []
        while self.waiting or running:
            whole = self._fill(running)
            for future in wait(running, timeout=TICK_SECONDS, return_when=FIRST_COMPLETED).done:
                job = running.pop(future)
                if not self._take(job, future):
                    suspects.append(job)
                    whole = whole and not self._crew.breaks()
            if not whole:
                suspects += [job for future, job in running.items() if not self._came_in_time(job, future)]
                running.clear()
                self._crew.abandon()
            self._tick()
        return suspects

    def _fill(self, running: dict[Future[Any], str]) -> bool:
        """Hand out as many jobs as there is room for; False when the executor turns out to be broken."""
        room = WINDOW * max(1, self._crew.size())
        while self.waiting and len(running) < room:
            try:
                running[self._submit(self.waiting[0])] = self.waiting[0]
            except BrokenExecutor:
                return False
            self.waiting.popleft()
        return True

    def _came_in_time(self, job: str, future: Future[Any]) -> bool:
        """Whether a job had ended before the executor broke."""
        return future.done() and not future.cancelled() and future.exception() is None and self._take(job, future)

    def _alone(self, job: str) -> None:
        future = self._submit(job, workers=1)
        while not wait([future], timeout=TICK_SECONDS).done:
            self._tick()
        if not self._take(job, future):
            if self._crew.breaks():
                self._crew.abandon()
            self._settle(job, Outcome("failed", error=WORKER_DIED), b"")
        self._tick()

    def _submit(self, job: str, workers: int | None = None) -> Future[Any]:
        try:
            return self._crew.executor(workers).submit(work, self._work_of(job))
        except BrokenExecutor:
            raise
        except (OSError, RuntimeError) as error:
            raise WorkerPoolError(f"the workers cannot be reached any more: {error}") from error

    def _take(self, job: str, future: Future[Any]) -> bool:
        """Settle a job that has ended; False when its worker died."""
        try:
            outcome, content = future.result()
        except self._crew.died:
            return False
        except CancelledError:
            raise WorkerPoolError("the scheduler of the cluster has gone.") from None
        except OtherCodeError as error:
            raise WorkerPoolError(str(error)) from error
        except Exception:
            outcome, content = Outcome("failed", error=traceback.format_exc()), b""
        self._settle(job, outcome, content)
        return True
