"""The workers of a Dask cluster."""

from __future__ import annotations

import time
import warnings
from concurrent.futures import Executor, Future
from typing import Any

from coband.simulator.experiments.runs.code_version import code_version, kernels
from coband.simulator.experiments.runs.job import OnPull
from coband.simulator.experiments.runs.work import JobResult, Work, work
from coband.simulator.experiments.runs.workers import AHEAD, WorkerPoolError

CONNECT_SECONDS = 10.0
LOOK_SECONDS = 2.0
WORKER = "dask worker ADDRESS --nworkers -1 --nthreads 1 --preload-nanny coband"
"""Starts a worker process per core; the preload lets coband choose the kind of BLAS before numpy is imported."""
NO_DASK = (
    "--cluster needs Dask, which is not installed; `pip install 'coband[cluster]'` brings it "
    "(in a source tree: pip install -c constraints.txt -e '.[cluster]')."
)


def identity() -> tuple[str, tuple[str, ...]]:
    """What must be the same for driver and workers, and the part of it that a worker's command line decides."""
    return code_version(), kernels()


class Cluster:
    """The workers of a Dask cluster that already runs.

    Args:
        address: of its scheduler, such as tcp://HOST:8786.

    Raises:
        WorkerPoolError: no Dask here, no scheduler there, or its workers run another coband.
    """

    in_process = False
    children = False

    def __init__(self, address: str) -> None:
        self._client: Any = _connected(address)
        self._executor: Executor | None = None
        self._address = address
        self._size, self._looked = 0, -LOOK_SECONDS
        self._check_code()
        from distributed.scheduler import KilledWorker

        self.died: tuple[type[BaseException], ...] = (KilledWorker,)

    @property
    def dashboard(self) -> str | None:
        """Dask's own page."""
        link: str | None = self._client.dashboard_link
        return link

    def _workers(self) -> dict[str, Any]:
        found: dict[str, Any] = self._client.scheduler_info(n_workers=-1)["workers"]
        return found

    def _check_code(self) -> None:
        """Refuse workers whose results would be of another kind; those that come later refuse by themselves."""
        try:
            found = self._client.run(identity, on_error="return")
        except OSError as error:
            raise WorkerPoolError(f"the workers of {self._address} do not answer: {error}") from error
        ours, wrong = identity(), [worker for worker, theirs in found.items() if theirs != identity()]
        if wrong:
            head = f"{len(wrong)} of {len(found)} workers of {self._address} differ from this coband, first {wrong[0]}"
            raise WorkerPoolError(f"{head}: {_difference(ours, found[wrong[0]])}")

    def size(self) -> int:
        """One job for each thread of each worker; looked up now and then."""
        moment = time.monotonic()
        if moment - self._looked > LOOK_SECONDS:
            self._looked = moment
            self._size = sum(int(worker["nthreads"]) for worker in self._workers().values())
        return self._size

    def window(self) -> int:
        """Twice as many as run at once."""
        return AHEAD * max(1, self.size())

    def submit(self, item: Work, on_pull: OnPull | None = None, *, alone: bool = False) -> Future[JobResult]:
        """Give a job to the scheduler.

        Raises:
            WorkerPoolError: it does not answer.
        """
        try:
            if self._executor is None:
                self._executor = self._client.get_executor(pure=False)
            return self._executor.submit(work, item)
        except (OSError, RuntimeError) as error:
            raise WorkerPoolError(f"the workers cannot be reached any more: {error}") from error

    def breaks(self) -> bool:
        """Dask gives the jobs of a dead worker to others."""
        return False

    def abandon(self) -> None:
        """Take back the jobs that have not begun, and forget about the others."""
        if self._executor is not None:
            self._executor.shutdown(wait=False)
            self._executor = None

    def close(self) -> None:
        """Take leave of the scheduler."""
        self.abandon()
        self._client.close(timeout=5)

    def describe(self) -> str:
        """Where they are, and how many."""
        workers = self._workers()
        return f"{len(workers)} worker{'s' * (len(workers) != 1)} of {self._address}"

    def advice(self) -> list[str]:
        """What could be better about the cluster."""
        workers = self._workers()
        if not workers:
            return [f"no worker yet: start some with `{WORKER}`"]
        if any(worker["nthreads"] > 1 for worker in workers.values()):
            return [
                "some workers have several threads, which share one Python interpreter: they are faster as "
                f"processes, `{WORKER}`"
            ]
        return []


def _difference(ours: tuple[str, tuple[str, ...]], theirs: Any) -> str:
    if isinstance(theirs, BaseException):
        return f"{type(theirs).__name__}: {theirs}. Install coband there, and start the worker again."
    if ours[1] != theirs[1]:
        return (
            f"it computes with {', '.join(theirs[1])}, and this process with {', '.join(ours[1])}, so results would "
            f"differ in their last bits. Start it with `{WORKER}`."
        )
    return "its code or its libraries are of another version. Install the same there, and start the worker again."


def _connected(address: str) -> Any:
    try:
        from distributed import Client
    except ModuleNotFoundError:
        raise WorkerPoolError(NO_DASK) from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about versions: what matters to results is compared by `code_version`
            untyped: Any = Client
            return untyped(address, timeout=CONNECT_SECONDS, name="coband", set_as_default=False)
    except (OSError, ValueError) as error:
        reason = str(error) or type(error).__name__
        raise WorkerPoolError(
            f"no Dask scheduler answers at {address} ({reason}). Start one with `dask scheduler`, which prints its "
            f"address, and workers with `{WORKER}`."
        ) from error
