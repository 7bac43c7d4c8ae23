"""Sweeps on a Dask cluster: a scheduler and two workers on this machine, started and ended here."""

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from coband.simulator.analysis.traces import verification
from coband.simulator.experiments.runs.executor import WORKER_DIED, ExecutorError
from coband.simulator.experiments.store import store
from coband.simulator.experiments.sweep.cluster import LOST, Cluster
from tests.experiments.runs.fake_runs import ROOT, wait_until
from tests.experiments.sweep.sweeps import GATED_JOBS, fingerprints, gated, perform, result_cache, started, study

pytest.importorskip("distributed")

GRID = "grid:\n  problem.noise: [0.1, 0.2]\n  algorithms.D.size: [1, 2]\n"


PR_SET_PDEATHSIG = 1


def _end_with_parent() -> None:
    """Have the kernel end this process when that of the tests ends, however that happens."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


@dataclass
class Processes:
    folder: Path
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def dask(self, command: str, *more: str) -> subprocess.Popen[bytes]:
        """Start one of them; what it says goes to a file."""
        with (self.folder / "dask.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "dask", *command.split(), *more],
                cwd=ROOT,
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                preexec_fn=_end_with_parent,
            )
        self.running.append(process)
        return process

    def address(self) -> str:
        file = self.folder / "scheduler.json"
        wait_until(lambda: file.exists() and file.read_text().endswith("}"))
        return str(json.loads(file.read_text())["address"])

    def end(self) -> None:
        for process in reversed(self.running):
            process.terminate()
        for process in self.running:
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:  # a nanny that waits for workers that were killed
                process.kill()
                process.wait()


@contextmanager
def made(folder: Path, *more: str) -> Iterator[tuple[str, Processes]]:
    """The address of a scheduler with two workers, and their processes, which end with the block.

    Args:
        more: further arguments of the scheduler.
    """
    processes = Processes(folder)
    try:
        scheduler = "scheduler --host 127.0.0.1 --port 0 --no-dashboard --scheduler-file"
        processes.dask(scheduler, str(folder / "scheduler.json"), *more)
        worker = "worker --nworkers 2 --nthreads 1 --no-dashboard --preload-nanny coband --local-directory"
        processes.dask(worker, str(folder), address := processes.address())
        wait_until(lambda: workers(address) == 2)
        yield address, processes
    finally:
        processes.end()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with made(tmp_path_factory.mktemp("cluster")) as (address, _):
        yield address


def workers(address: str) -> int:
    pool = Cluster(address)
    try:
        return pool.size()
    finally:
        pool.shutdown()


def pids(address: str) -> list[int]:
    from distributed import Client

    with Client(address, set_as_default=False) as client:
        return list(client.run(os.getpid).values())


def test_a_cluster_gives_what_this_machine_gives(cluster: str, tmp_path: Path) -> None:
    here = perform(study(tmp_path, GRID), tmp_path / "here")
    there = perform(study(tmp_path, GRID, trace="protocol"), tmp_path / "there", Cluster(cluster))
    assert len(fingerprints(here.object)) == 12
    with store.open_run(tmp_path / "there") as run:
        assert all(score.events and not score.differences for score in verification.verify(run))
    assert fingerprints(there.object) == fingerprints(here.object)
    assert there.status.workers == f"2 workers of {cluster}"


def test_a_worker_killed_in_mid_sweep_costs_nothing(cluster: str, tmp_path: Path) -> None:
    out, (more, gate) = tmp_path / "out", gated(tmp_path)
    with started(tmp_path, out, more, cluster) as process:
        wait_until(lambda: len(result_cache(out)) >= 2, process)
        os.kill(pids(cluster)[0], signal.SIGKILL)
        gate.unlink()
        output, _ = process.communicate()
    assert output.split() == ["finished", str(GATED_JOBS), "0"]
    found = json.loads((out / "results.json").read_text())
    assert fingerprints(found) == fingerprints(perform(study(tmp_path, more), tmp_path / "here").object)


def test_resume_after_the_driver_was_killed(cluster: str, tmp_path: Path) -> None:
    out, (more, gate) = tmp_path / "out", gated(tmp_path)
    with started(tmp_path, out, more, cluster) as process:
        wait_until(lambda: len(result_cache(out)) >= 2, process)
    gate.unlink()
    kept = len(result_cache(out))
    report = perform(study(tmp_path, more), out, Cluster(cluster))
    assert sum(entry.kept for entry in report.status.entries.values()) == kept < GATED_JOBS
    assert len(fingerprints(report.object)) == GATED_JOBS


@pytest.mark.slow
def test_a_job_that_kills_its_worker_costs_only_itself(cluster: str, tmp_path: Path) -> None:
    what = study(tmp_path, "grid: {algorithms.D.mischief: [none, kill]}\n", "replications=1")
    report = perform(what, tmp_path / "out", Cluster(cluster))
    assert [(item["label"], item["error"]) for item in report.object["failures"]] == [
        ("D [mischief=kill]", WORKER_DIED)
    ]
    assert set(fingerprints(report.object)) == {("D [mischief=none]", 0), ("K", 0)}


@pytest.mark.slow
def test_a_scheduler_lost_in_mid_sweep_keeps_what_is_finished(tmp_path: Path) -> None:
    out, (more, gate) = tmp_path / "out", gated(tmp_path)
    with made(tmp_path) as (address, processes):
        with started(tmp_path, out, more, address) as process:
            wait_until(lambda: len(result_cache(out)) >= 2, process)
            processes.running[0].kill()
            output, _ = process.communicate(timeout=120)
        state, done, missing = output.split()
        assert state == "stopped"
        assert int(done) == len(result_cache(out)) == GATED_JOBS - int(missing)
        assert json.loads((out / "status.json").read_text())["message"] == LOST
    gate.unlink()
    report = perform(study(tmp_path, more), out)
    assert sum(entry.kept for entry in report.status.entries.values()) == int(done)
    assert len(fingerprints(report.object)) == GATED_JOBS


@pytest.mark.parametrize(
    "address", ["", "http://x", "tcp://[::1", "tcp://host", "tcp://x:99999", "tcp://:8786", "tcp://a b:1", "x"]
)
def test_a_malformed_address_is_refused_at_once(address: str) -> None:
    with pytest.raises(ExecutorError, match=r"is not the address of a Dask scheduler: give .* such as tcp://127"):
        Cluster(address)


def test_somebody_else_who_listens_is_one_clear_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coband.simulator.experiments.sweep.cluster.CONNECT_SECONDS", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(ExecutorError, match=rf"no Dask scheduler answers at {address} \(it takes connections"):
            Cluster(address)


def test_no_scheduler_is_one_clear_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coband.simulator.experiments.sweep.cluster.CONNECT_SECONDS", 1.0)
    said = r"no Dask scheduler answers at tcp://127.0.0.1:9 .*Start one with `dask sch"
    with pytest.raises(ExecutorError, match=said):
        Cluster("tcp://127.0.0.1:9")


def test_without_dask_the_message_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ExecutorError, match=r"pip install 'coband\[cluster\]'"):
        Cluster("tcp://127.0.0.1:9")


def test_workers_of_another_kind_are_refused(cluster: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coband.simulator.experiments.sweep.cluster.code_version", lambda: "another")
    said = r"(\d) of \1 workers .* its code or its libraries are of another version"
    with pytest.raises(ExecutorError, match=said):
        Cluster(cluster)
    monkeypatch.setattr("coband.simulator.experiments.sweep.cluster.kernels", lambda: ("mkl 2025 avx2",))
    with pytest.raises(ExecutorError, match=r"in their last bits. Start it with `dask worker .*-nanny coband`"):
        Cluster(cluster)
