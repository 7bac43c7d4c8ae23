"""Runs of fake scenarios, here and in a process of their own."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from coband.simulator.experiments.runs.driver import drive
from coband.simulator.experiments.runs.reporting import Commands, Report
from coband.simulator.experiments.scenario.document import Until
from coband.simulator.experiments.store import directory
from tests.experiments.runs.fakes import FakeScenario, study

ROOT = Path(__file__).parents[3]


class Notes:
    def __init__(self) -> None:
        self.total = 0
        self.progress: list[float] = []
        self.failures: list[Any] = []
        self.states: list[str] = []
        self.ends: list[Any] = []

    def changed(self, status: Any) -> None:
        self.states.append(status.state)
        self.total = status.total
        self._come_to(status.ended + status.under_way)

    def ended(self, end: Any) -> None:
        self.ends.append(end)

    def _come_to(self, jobs: float) -> None:
        if jobs != ([0, *self.progress])[-1]:
            self.progress.append(jobs)

    def failed(self, failure: Any) -> None:
        self.failures.append(failure)


def perform(
    out: Path,
    workers: int = 1,
    listener: Any = None,
    only: Sequence[str] = (),
    numbers: Sequence[int] = (),
    until: Until | None = None,
    **scenario: Any,
) -> Report:
    fake: Any = FakeScenario(**scenario)
    what = study(fake, only, numbers, until)
    command = ["coband", "run", "my file.yaml"]
    place = directory.create(fake.name, out)
    return drive(what, place, workers=workers, commands=Commands(command, command), listener=listener)


@contextmanager
def python(code: str) -> Iterator[subprocess.Popen[str]]:
    """Python code in a process of its own, which can be killed or interrupted and does not outlive the block.

    It takes SIGINT as it does in the foreground of a terminal, even where this process ignores it, as under nohup.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", f"import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n{code}"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()  # not read to its end: workers that go on for a moment hold the other side open


def started(out: Path, workers: int = 1, **scenario: Any) -> AbstractContextManager[subprocess.Popen[str]]:
    return python(
        f"from pathlib import Path; from tests.experiments.runs import fake_runs\n"
        f"report = fake_runs.perform(Path({str(out)!r}), {workers}, **{scenario!r})\n"
        f"print(report.interrupted, report.missing)"
    )


def results_of(out: Path) -> int:
    """Finished jobs."""
    return len(list(out.glob("done/*/*.json.gz")))


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[str] | None = None) -> None:
    """Wait until something in another process has happened, however long that takes, unless the process ends.

    Args:
        condition: what is waited for.
        process: where it happens; None to wait for ten minutes at most.
    """
    end = time.monotonic() + 600.0
    while not condition():
        assert process is None or process.poll() is None, "the process has ended, and it did not happen"
        assert process is not None or time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)
