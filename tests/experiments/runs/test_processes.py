"""Real processes: Ctrl-C at any moment, drivers that are killed, limits of the system."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from pathlib import Path

import pytest

from coband.simulator.experiments.runs import executor
from tests.experiments.runs.fake_runs import wait_until

PROC = Path("/proc/self/task")
COMMAND = [sys.executable, "-m", "coband", "sweep", "quickstart", "--workers", "2", "--out", "out"]
GRID = ["--set", "grid={problem.noise: [0.1]}"]
LONG = [*GRID, "--set", "schedule.turns=200", "--replications", "40"]

pytestmark = pytest.mark.skipif(not PROC.is_dir(), reason="needs /proc, to find children of processes")


@contextmanager
def started(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A long sweep in a process group of its own, as a terminal makes one; nothing of it is left behind."""
    with subprocess.Popen(
        [*COMMAND, *LONG], cwd=folder, text=True, stdout=-1, stderr=-1, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def workers_of(process: subprocess.Popen[str]) -> list[int]:
    """Process ids of its workers."""
    files = Path(f"/proc/{process.pid}/task").glob("*/children")
    children = [int(word) for file in files for word in file.read_text().split()]
    return [child for child in children if b"popen_loky" in command_of(child)]


def command_of(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


@pytest.mark.parametrize("seconds", [0.0, 0.1, 0.2, 0.4])
def test_ctrl_c_while_workers_start_shows_no_traceback(seconds: float, tmp_path: Path) -> None:
    with started(tmp_path) as process:
        wait_until(lambda: workers_of(process), process)
        time.sleep(seconds)
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=20)
    assert process.returncode == 130
    *_, first, second = said.splitlines()  # after how much there is to run, and how long it takes
    assert "Traceback" not in said
    assert first.startswith("interrupted: ")
    assert second.startswith("to go on: ")


def test_threads_of_a_pool_that_is_stopped_may_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    class Pool(Executor):
        def shutdown(self, wait: bool = True, **keywords: bool) -> None:
            for name in ("QueueFeederThread", "another"):
                thread = threading.Thread(target=[].pop, name=name)
                thread.start()
                thread.join()

    told = list[str]()
    monkeypatch.setattr(threading, "excepthook", lambda given: told.append(given.thread.name))
    hook = threading.excepthook
    executor.stop(Pool())
    assert (told, threading.excepthook) == (["another"], hook)


def test_workers_ignore_ctrl_c_from_their_first_moment(tmp_path: Path) -> None:
    with started(tmp_path) as process:
        wait_until(lambda: workers_of(process), process)
        for worker in workers_of(process):
            lines = Path(f"/proc/{worker}/status").read_text().splitlines()
            masks = [int(line.split()[1], 16) for line in lines if line.startswith(("SigBlk:", "SigIgn:"))]
            assert any(mask >> (signal.SIGINT - 1) & 1 for mask in masks)


IDLE = """
import os, time
from coband.simulator.experiments.runs import executor
print(executor.processes(1).submit(os.getpid).result(), flush=True)
time.sleep(60)
"""


def test_idle_workers_end_soon_after_their_driver_was_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", IDLE], text=True, stdout=subprocess.PIPE) as process:
        worker = int(process.stdout.readline())
        process.kill()
    killed = time.monotonic()
    wait_until(lambda: not command_of(worker))
    assert time.monotonic() - killed < 2.5


@pytest.mark.parametrize("command", ["run", "sweep", "live run"])
def test_too_few_files_may_be_open(command: str, tmp_path: Path) -> None:
    limited = (
        "import os, resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20)); "
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    words = [sys.executable, "-c", limited, *COMMAND, *(GRID if command == "sweep" else [])]
    words[words.index("sweep") : words.index("sweep") + 1] = command.split()
    processes, instead = "2 workers", "run with --workers 1"
    if command == "live run":  # 20 agents
        words[words.index("--workers")] = "--agents-per-process"
        processes, instead = "10 processes", "give each more agents (--agents-per-process)"
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    needed = 40 + 2 * int(processes.split()[0])
    assert done.stderr.split("of disk\n")[-1].split("pulls\n")[-1] == (
        f"coband: this process may have 20 files open, and {processes} need {needed}; raise the limit (ulimit -n 256), "
        f"or {instead}\n"
    )
    assert done.returncode == 2
    assert list(tmp_path.iterdir()) == []
