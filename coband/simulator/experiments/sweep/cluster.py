"""The workers of a Dask cluster."""

from __future__ import annotations

import queue
import socket
import time
import warnings
from collections.abc import Callable
from concurrent.futures import Executor, Future
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

from coband.simulator.experiments.runs.code_version import arithmetic, code_version, kernels
from coband.simulator.experiments.runs.executor import ExecutorError, JobExecutor, P, T

CONNECT_SECONDS = 10.0
RETRY_SECONDS = 0.25
LOST = "the scheduler of the cluster has gone."
SCHEMES = ("tcp", "tls", "ws", "wss")
LOOK_SECONDS = 2.0
WORKER = "dask worker ADDRESS --nworkers -1 --nthreads 1 --preload-nanny coband"
"""Starts a worker process per core; the preload lets coband choose the kind of BLAS before numpy is imported."""
NO_DASK = (
    "--cluster needs Dask, which is not installed; `pip install 'coband[cluster]'` brings it "
    "(in a source tree: pip install -c constraints.txt -e '.[cluster]')."
)


def identity() -> tuple[str, tuple[str, ...]]:
    """What must be the same for driver and workers, and the part of it that a worker's command line decides."""
    return code_version(), (*kernels(), *arithmetic())


class Cluster(JobExecutor):
    """The workers of a Dask cluster that already runs.

    Args:
        address: of its scheduler, such as tcp://HOST:8786.

    Attributes:
        cluster: what the manifest calls it.

    Raises:
        ExecutorError: no Dask here, no scheduler there, or its workers run another coband.
    """

    def __init__(self, address: str) -> None:
        self._client: Any = _connected(address)
        self._executor: Executor | None = None
        self._address = self.cluster = address
        self._size, self._looked = 0, -LOOK_SECONDS
        self._check_code()
        from distributed.scheduler import KilledWorker

        self.died = (KilledWorker,)  # for good: Dask gives the jobs of a dead worker to others

    @property
    def dashboard(self) -> str | None:
        """Dask's own page."""
        link: str | None = self._client.dashboard_link
        return link

    def _workers(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = self._client.scheduler_info(n_workers=-1)["workers"]
        except (OSError, RuntimeError) as error:
            raise ExecutorError(LOST) from error
        return found

    def _check_code(self) -> None:
        """Refuse workers whose results would be of another kind; those that come later refuse by themselves."""
        try:
            found = self._client.run(identity, on_error="return")
        except OSError as error:
            raise ExecutorError(f"the workers of {self._address} do not answer: {error}") from error
        ours, wrong = identity(), [worker for worker, theirs in found.items() if theirs != identity()]
        if wrong:
            head = f"{len(wrong)} of {len(found)} workers of {self._address} differ from this coband, first {wrong[0]}"
            raise ExecutorError(f"{head}: {_difference(ours, found[wrong[0]])}")

    def size(self) -> int:
        """One job for each thread of each worker; looked up now and then."""
        moment = time.monotonic()
        if moment - self._looked > LOOK_SECONDS:
            self._looked = moment
            self._size = sum(int(worker["nthreads"]) for worker in self._workers().values())
        return self._size

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Give a job to the scheduler.

        Raises:
            ExecutorError: it does not answer.
        """
        try:
            if self._executor is None:
                self._executor = self._client.get_executor(pure=False)
            return self._executor.submit(fn, *args, **kwargs)
        except (OSError, RuntimeError) as error:
            raise ExecutorError(f"the workers cannot be reached any more: {error}") from error

    def abandon(self) -> None:
        """Take back the jobs that have not begun, and forget about the others."""
        if self._executor is not None:
            self._executor.shutdown(wait=False)
            self._executor = None

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take leave of the scheduler."""
        self.abandon()
        self._client.close(timeout=5)

    def describe(self) -> str:
        """Where they are, and how many."""
        workers = self._workers()
        return f"{len(workers)} worker{'s' * (len(workers) != 1)} of {self.cluster}"

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
            f"differ in their last bits. Start it with `{WORKER}`; if it has another kind of processor, switch off "
            "what one of the two has not (NPY_DISABLE_CPU_FEATURES, GLIBC_TUNABLES), or leave it out."
        )
    return "its code or its libraries are of another version. Install the same there, and start the worker again."


def _connected(address: str) -> Any:
    host, port = parsed(address)
    try:
        from distributed import Client
    except ModuleNotFoundError:
        raise ExecutorError(NO_DASK) from None
    end = time.monotonic() + CONNECT_SECONDS
    try:
        _wait_for_listener(host, port, end)  # by itself, as a client of Dask tries for half a minute
        return _client(Client, address, max(1.0, end - time.monotonic()))
    except (OSError, ValueError) as error:
        reason = str(error) or "it takes connections, but says nothing that a scheduler says"
        raise ExecutorError(
            f"no Dask scheduler answers at {address} ({reason}). Start one with `dask scheduler`, which prints its "
            f"address, and workers with `{WORKER}`."
        ) from error


def parsed(address: str) -> tuple[str, int]:
    """Host and port of an address of a scheduler.

    Raises:
        ExecutorError: it is none.
    """
    try:
        parts = urlsplit(address if "://" in address else f"tcp://{address}")
        host, port, scheme = parts.hostname, parts.port, parts.scheme
    except ValueError:
        host, port, scheme = None, None, ""
    if not host or not port or scheme not in SCHEMES or parts.path.strip("/") or any(map(str.isspace, address)):
        raise ExecutorError(
            f"--cluster {address!r} is not the address of a Dask scheduler: give {' or '.join(SCHEMES)}, a host and a "
            "port, such as tcp://127.0.0.1:8786 or tcp://[::1]:8786; `dask scheduler` prints its address."
        )
    return host, port


def _wait_for_listener(host: str, port: int, end: float) -> None:
    """Wait until somebody listens: a scheduler may just be starting.

    Raises:
        OSError: nobody does in time, or the host is unknown.
    """
    while True:
        try:
            socket.create_connection((host, port), timeout=max(0.1, end - time.monotonic())).close()
            return
        except (ConnectionRefusedError, TimeoutError):
            if time.monotonic() + RETRY_SECONDS >= end:
                raise
            time.sleep(RETRY_SECONDS)


def _client(kind: Any, address: str, seconds: float) -> Any:
    """A client of Dask, made in a thread of its own, since it may try for longer than it was told.

    Raises:
        OSError: there is none after so many seconds.
        ValueError: it refuses the address.
    """
    made: queue.Queue[Any] = queue.Queue()

    def make() -> None:
        try:
            made.put(kind(address, timeout=seconds, name="coband", set_as_default=False))
        except Exception as error:
            made.put(error)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about versions: what matters to results is compared by `code_version`
        Thread(target=make, daemon=True).start()
        try:
            found = made.get(timeout=seconds + 1.0)
        except queue.Empty:
            raise TimeoutError from None
    if isinstance(found, Exception):
        raise found if isinstance(found, (OSError, ValueError)) else OSError(str(found))
    return found
