"""Hands jobs to workers, and finds out which of them kills its worker."""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from typing import Generic, TypeVar

from coband.simulator.experiments.runs.job import OnPull, Outcome
from coband.simulator.experiments.runs.work import JobResult, OtherCodeError, Work
from coband.simulator.experiments.runs.workers import WorkerPool, WorkerPoolError
from coband.simulator.experiments.scenario.loading import BAD_INPUT
from coband.simulator.scenario_errors import RAISED

TICK_SECONDS = 0.5
WORKER_DIED = "its worker process died, twice: it ran out of memory, crashed or was killed"

Key = TypeVar("Key", bound=Hashable)


class Dispatcher(Generic[Key]):
    """Runs jobs until none waits.

    Jobs under way when a worker dies are suspects. They run again when nothing else is left, one at a time with nothing
    beside them, so a job that always kills its worker costs itself alone.

    Args:
        work_of: key of a job -> what a worker gets.
        settle: called with the key of a job that has ended and what it has given; it may make further jobs wait.
        tick: called after jobs have ended, and at least twice a second while other processes work.
        on_pull: follows a job that runs in this process.

    Attributes:
        waiting: keys of jobs that are not handed out yet.
    """

    def __init__(
        self,
        pool: WorkerPool,
        work_of: Callable[[Key], Work],
        settle: Callable[[Key, JobResult], None],
        tick: Callable[[], None],
        on_pull: OnPull | None = None,
    ) -> None:
        self._pool, self._work_of, self._settle, self._tick, self._on_pull = pool, work_of, settle, tick, on_pull
        self.waiting: deque[Key] = deque()

    def run(self) -> None:
        """Run until nothing waits.

        Raises:
            WorkerPoolError: the workers cannot be reached any more, or run another coband.
        """
        suspects: deque[Key] = deque()
        while self.waiting or suspects:
            suspects.extend(self._together())
            while suspects:
                self._alone(suspects.popleft())

    def _together(self) -> list[Key]:
        """Run jobs side by side; returns the suspects."""
        running: dict[Future[JobResult], Key] = {}
        suspects: list[Key] = []
        while self.waiting or running:
            whole = self._fill(running)
            for future in wait(running, timeout=TICK_SECONDS, return_when=FIRST_COMPLETED).done:
                job = running.pop(future)
                if not self._take(job, future):
                    suspects.append(job)
                    whole = whole and not self._pool.breaks()
            if not whole:
                suspects += [job for future, job in running.items() if not self._came_in_time(job, future)]
                running.clear()
                self._pool.abandon()
            self._tick()
        return suspects

    def _fill(self, running: dict[Future[JobResult], Key]) -> bool:
        """Hand out as many jobs as there is room for; False when the executor turns out to be broken."""
        room = self._pool.window()
        while self.waiting and len(running) < room:
            try:
                running[self._submit(self.waiting[0])] = self.waiting[0]
            except BrokenExecutor:
                return False
            self.waiting.popleft()
        return True

    def _came_in_time(self, job: Key, future: Future[JobResult]) -> bool:
        """Whether a job had ended before the executor broke."""
        return future.done() and not future.cancelled() and future.exception() is None and self._take(job, future)

    def _alone(self, job: Key) -> None:
        future = self._submit(job, alone=True)
        while not wait([future], timeout=TICK_SECONDS).done:
            self._tick()
        if not self._take(job, future):
            if self._pool.breaks():
                self._pool.abandon()
            self._settle(job, JobResult(Outcome("failed", error=WORKER_DIED)))
        self._tick()

    def _submit(self, job: Key, alone: bool = False) -> Future[JobResult]:
        return self._pool.submit(self._work_of(job), self._on_pull, alone=alone)

    def _take(self, job: Key, future: Future[JobResult]) -> bool:
        """Settle a job that has ended; False when its worker died."""
        try:
            result = future.result()
        except self._pool.died:
            return False
        except CancelledError:
            raise WorkerPoolError("the scheduler of the cluster has gone.") from None
        except OtherCodeError as error:
            raise WorkerPoolError(str(error)) from error
        except BAD_INPUT as error:
            result = JobResult(Outcome("failed", error=str(error)), refusal=error)
        except RAISED:
            result = JobResult(Outcome("failed", error=traceback.format_exc()))
        self._settle(job, result)
        return True
