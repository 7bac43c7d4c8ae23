"""Runs of fake scenarios, here and in a process of their own."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from coband.simulator.experiments.runs import runner
from coband.simulator.experiments.store import directory
from tests.experiments.runs.fakes import FakeScenario

ROOT = Path(__file__).parents[3]


class Notes:
    """A listener that remembers."""

    def __init__(self) -> None:
        self.total = 0
        self.progress: list[float] = []
        self.failures: list[Any] = []

    def begin(self, jobs: int) -> None:
        self.total = jobs

    def progressed(self, jobs: float) -> None:
        self.progress.append(jobs)

    def failed(self, failure: Any) -> None:
        self.failures.append(failure)


def perform(
    out: Path,
    workers: int = 1,
    listener: Any = None,
    only: Sequence[str] = (),
    numbers: Sequence[int] = (),
    **scenario: Any,
) -> runner.Report:
    """Run a fake scenario into ``out``."""
    fake: Any = FakeScenario(**scenario)
    return runner.Driver(
        fake,
        fake,
        runner.jobs_of(fake, only, numbers),
        directory.create(fake.name, out),
        workers=workers,
        replay=["coband", "run", "my file.yaml"],
        command=["coband", "run", "my file.yaml"],
        listener=listener,
    ).run()


def start(out: Path, workers: int = 1, **scenario: Any) -> subprocess.Popen[str]:
    """The same in a process of its own, which can be killed."""
    code = (
        f"from pathlib import Path; from tests.experiments.runs import fake_runs\n"
        f"report = fake_runs.perform(Path({str(out)!r}), {workers}, **{scenario!r})\n"
        f"print(report.interrupted, report.missing)"
    )
    return subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)


def wait_until(condition: Callable[[], bool], seconds: float = 120.0) -> None:
    """Wait until something in another process has happened."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)
