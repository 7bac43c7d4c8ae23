"""Steps that Ctrl-C does not cut in two."""

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from coband.simulator.experiments.runs.attempt import Outcome
from coband.simulator.experiments.runs.driver import finished_first
from coband.simulator.experiments.store.directory import RunDirectory
from tests.experiments.runs.fake_runs import perform


@pytest.fixture(autouse=True)
def as_at_the_start() -> Iterator[None]:
    """Handlers that libraries have set in this process are put aside."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupt_waits_for_the_end_of_the_step() -> None:
    steps, before = [], signal.getsignal(signal.SIGINT)

    def work() -> None:
        with finished_first():
            interrupt()
            steps.append("after the interrupt")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert steps == ["after the interrupt"]
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_interrupt_does_not_wait() -> None:
    steps = []

    def work() -> None:
        with finished_first():
            interrupt()
            steps.append("after the first")
            interrupt()
            steps.append("after the second")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert steps == ["after the first"]


def test_signals_that_nobody_handles_stay_as_they_are() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with finished_first():
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)


def test_other_threads_are_not_interrupted_anyway() -> None:
    handlers = []

    def work() -> None:
        with finished_first():
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert handlers == [signal.getsignal(signal.SIGINT)]


def test_a_job_whose_result_is_kept_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt between the two would leave a finished job that the report calls missing."""
    take = RunDirectory.take

    def taken(self: RunDirectory, tasks: Sequence[Any], outcome: Outcome) -> None:
        take(self, tasks, outcome)
        interrupt()

    monkeypatch.setattr(RunDirectory, "take", taken)
    report = perform(tmp_path / "run", replications=3, labels=("Often",))
    assert (report.interrupted, report.status.done, report.missing) == (True, 1, 2)
    assert [len(entry["replications"]) for entry in report.object["results"]] == [1]
