"""Starts the processes of a run on this machine, starts them again when they are killed, and ends them; `LivePool` runs
the jobs of a study so, one after the other.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from coband.simulator.core.records.trace import Sink
from coband.simulator.core.result import RunResult
from coband.simulator.experiments.runs import workers
from coband.simulator.experiments.runs.code_version import ONE_THREAD
from coband.simulator.experiments.runs.job import Job, OnPull
from coband.simulator.experiments.runs.study import Study
from coband.simulator.experiments.runs.work import JobResult, Work, work
from coband.simulator.experiments.runs.workers import InProcess
from coband.simulator.experiments.scenario.scenario import Scenario
from coband.simulator.experiments.store.files import DATABASE, MANIFEST
from coband.simulator.experiments.store.manifest import Manifest
from coband.simulator.live.codec import pack
from coband.simulator.live.config import LiveError, Terms
from coband.simulator.live.hub import Hub
from coband.simulator.live.journal import Journal

TOKEN = "COBAND_LIVE_TOKEN"
"""The environment variable in which stations find the token: arguments are there for everybody to see."""
HUB, STATION, ENDED = "hub.journal", "station-{}.journal", pack(("ended",))
"""The journals of hub and stations, and the hub's last entry when the results of its run are stored."""
RESTARTS = 5
"""So often a station is started again."""


class Stations:
    """The stations of this machine.

    Args:
        arguments: of ``coband live agent``.
        count: how many.
        say: tells the user something.
        fail: ends the run.
    """

    def __init__(
        self,
        arguments: list[str],
        count: int,
        token: str,
        journals: Path,
        say: Callable[[str], None],
        fail: Callable[[BaseException], None],
    ) -> None:
        self._arguments, self._journals, self._say, self._fail = arguments, journals, say, fail
        self._environment = {**os.environ, **ONE_THREAD, TOKEN: token}
        self._tasks = [asyncio.create_task(self._keep(number)) for number in range(count)]
        self._processes: dict[int, asyncio.subprocess.Process] = {}
        self._ending = False

    async def _keep(self, number: int) -> None:
        """Start a station, and again when it ends too early."""
        journal = self._journals / STATION.format(number)
        for attempt in range(RESTARTS + 1):
            command = [sys.executable, "-m", "coband", "live", "agent", *self._arguments, "--journal", str(journal)]
            process = await asyncio.create_subprocess_exec(
                *command, env=self._environment, stdin=asyncio.subprocess.DEVNULL, start_new_session=True
            )
            self._processes[number] = process
            status = await process.wait()
            if self._ending or status == 0:
                return
            if status > 0:
                self._fail(LiveError(f"process {process.pid} of this run ended with status {status}"))
                return
            again = "starting it again" if attempt < RESTARTS else f"it was started {RESTARTS + 1} times"
            self._say(f"process {process.pid} was killed by signal {-status}; {again}")
        self._fail(LiveError(f"a process of this run was killed {RESTARTS + 1} times"))

    async def end(self) -> None:
        """End those that have not ended by themselves."""
        self._ending = True
        _, running = await asyncio.wait(self._tasks, timeout=2.0)
        for process in self._processes.values():
            if process.returncode is None:
                process.terminate()
        if running:
            await asyncio.wait(running, timeout=5.0)
        for task in self._tasks:
            task.cancel()


async def deploy(
    job: Job, scenario: Scenario, terms: Terms, sink: Sink | None, on_pull: OnPull | None, say: Callable[[str], None]
) -> RunResult:
    """Run a job on this machine's stations, or on those that join from elsewhere.

    Raises:
        JournalHeld: another process writes a journal of it.
        LiveError: it cannot go on.
        InvariantViolation: something was lost or counted twice.
    """
    with _journals(terms.journals) as place:
        journal = None if terms.journals is None else Journal(place / HUB)
        hub = Hub(job, scenario, terms, say, on_pull, journal)
        stations: Stations | None = None
        try:
            starts = terms.start and hub.alone  # those of a hub that was killed come again by themselves
            count = -(-scenario.agents.count // terms.share) if starts else 0
            for number in range(count):
                Journal(place / STATION.format(number)).close()
            address = f"tcp://{terms.host}:{await hub.listen()}"
            say(f"listening at {address}")
            if starts:
                stations = Stations([address], count, hub.token, place, say, hub.fail)
            return await hub.run(sink)
        finally:
            await hub.close()
            if stations is not None:
                await stations.end()  # before their journals go


def check_journals(place: Path, study: Study, terms: Terms) -> None:
    """Refuse a directory in whose journals this run, the first of a study, has no place.

    Raises:
        LiveError: the text says why, and what to do.
    """
    if any((place / name).exists() for name in (MANIFEST, DATABASE)):
        raise LiveError(f"{place} holds a run; give --journal a directory of its own")
    if not (place / HUB).exists():
        return
    with closing(Journal(place / HUB)) as journal:
        told, entries = journal.read()
    if told is None:
        return
    variant = study.variants[0]
    run = terms.facts(variant.scenario.to_yaml(), variant.entry, study.numbers[0])
    known = told.get("run", {}) if isinstance(told, dict) else {}
    if other := [name for name, value in run.items() if known.get(name) != value]:
        raise LiveError(
            f"the journal in {place} is of another run ({', '.join(other)}); give another --journal, or the same "
            "scenario and options"
        )
    if any(entry == ENDED for _, entry in entries):
        raise LiveError(
            f"the run of the journal in {place} has ended, and its results are in its run directory; to run once more, "
            f"give another --journal, or remove {place}"
        )


def end_journal(place: Path) -> None:
    """Note that the results of a run are stored."""
    with closing(Journal(place / HUB)) as journal:
        journal.write(0.0, ENDED)


@contextmanager
def _journals(place: Path | None) -> Iterator[Path]:
    """Where journals are: a directory that stays, or one for the time of the run."""
    if place is not None:
        place.mkdir(parents=True, exist_ok=True)
        yield place
        return
    with TemporaryDirectory(prefix="coband-live-") as scratch:
        yield Path(scratch)


class LivePool(InProcess):
    """Runs each job as processes that talk over sockets.

    Args:
        terms: how.
        say: tells the user something.
    """

    def __init__(self, terms: Terms, say: Callable[[str], None]) -> None:
        self._terms, self._say = terms, say

    def submit(self, item: Work, on_pull: OnPull | None = None, *, alone: bool = False) -> Future[JobResult]:
        future, journals = workers.Serial().submit(work, item, on_pull, self._run), self._terms.journals
        if journals is not None and future.exception() is None and future.result().outcome.record is not None:
            end_journal(journals)
        return future

    def _run(self, job: Job, scenario: Scenario, sink: Sink | None, on_pull: OnPull | None) -> RunResult:
        return asyncio.run(deploy(job, scenario, self._terms, sink, on_pull, self._say))

    def describe(self) -> str:
        return "live processes"


@dataclass(frozen=True)
class LiveStudy(Study):
    """A study whose runs are live; its manifest says how."""

    terms: Terms | None = None

    def facts(self) -> Manifest:
        terms = self.terms
        assert terms is not None
        return {"live": {"speed": terms.speed, "agents_per_process": terms.share, "host": terms.host}}

    @classmethod
    def of(cls, study: Study, terms: Terms) -> LiveStudy:
        """A study, to be run so."""
        return cls(**vars(study), terms=terms)
