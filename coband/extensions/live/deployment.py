"""Starts the processes of a run on this machine, and ends them; `LivePool` runs the jobs of a study so, one after the
other.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

from coband import RunResult
from coband.extending import Job, OnPull, Scenario, Study, code_version, executor, manifest, trace
from coband.extensions.live.config import LiveError, Terms
from coband.extensions.live.hub import Hub

TOKEN = "COBAND_LIVE_TOKEN"
"""The environment variable in which stations find the token: arguments are there for everybody to see."""


class Stations:
    """The stations of this machine.

    Args:
        address: of the hub.
        count: how many.
        fail: ends the run.
    """

    def __init__(self, address: str, count: int, token: str, fail: Callable[[BaseException], None]) -> None:
        self._command = [sys.executable, "-m", "coband", "live", "agent", address]
        self._environment, self._fail = {**os.environ, **code_version.ONE_THREAD, TOKEN: token}, fail
        self._tasks = [asyncio.create_task(self._keep()) for _ in range(count)]
        self._processes: list[asyncio.subprocess.Process] = []
        self._ending = False

    async def _keep(self) -> None:
        """Start a station; one that fails ends the run, one that is killed is lost, as the hub notices."""
        process = await asyncio.create_subprocess_exec(
            *self._command, env=self._environment, stdin=asyncio.subprocess.DEVNULL, start_new_session=True
        )
        self._processes.append(process)
        status = await process.wait()
        if status > 0 and not self._ending:
            self._fail(LiveError(f"process {process.pid} of this run ended with status {status}"))

    async def end(self) -> None:
        """End those that have not ended by themselves."""
        self._ending = True
        _, running = await asyncio.wait(self._tasks, timeout=2.0)
        for process in self._processes:
            if process.returncode is None:
                process.terminate()
        if running:
            await asyncio.wait(running, timeout=5.0)
        for task in self._tasks:
            task.cancel()


async def deploy(
    job: Job,
    scenario: Scenario,
    terms: Terms,
    sink: trace.Sink | None,
    on_pull: OnPull | None,
    say: Callable[[str], None],
) -> RunResult:
    """Run a job on this machine's stations, or on those that join from elsewhere.

    Raises:
        LiveError: it cannot go on.
        InvariantViolation: something was lost or counted twice.
    """
    hub, stations = Hub(job, scenario, terms, say, on_pull), None
    try:
        address = f"tcp://{terms.host}:{await hub.listen()}"
        say(f"listening at {address}")
        if terms.start:
            stations = Stations(address, -(-scenario.agents.count // terms.share), terms.token, hub.fail)
        return await hub.run(sink)
    finally:
        await hub.close()
        if stations is not None:
            await stations.end()


class LivePool(executor.InProcess):
    """Runs each job as processes that talk over sockets.

    Args:
        terms: how.
        say: tells the user something.
    """

    def __init__(self, terms: Terms, say: Callable[[str], None]) -> None:
        self._terms, self._say = terms, say

    def submit(self, fn: Callable[..., executor.T], /, *args: Any, **kwargs: Any) -> Future[executor.T]:
        return super().submit(partial(fn, run=self._run), *args, **kwargs)

    def _run(self, job: Job, scenario: Scenario, sink: trace.Sink | None, on_pull: OnPull | None) -> RunResult:
        return asyncio.run(deploy(job, scenario, self._terms, sink, on_pull, self._say))

    def describe(self) -> str:
        return "live processes"


@dataclass(frozen=True)
class LiveStudy(Study):
    """A study whose runs are live; its manifest says how."""

    terms: Terms | None = None

    def facts(self) -> manifest.Manifest:
        terms = self.terms
        assert terms is not None
        return {"live": {"speed": terms.speed, "agents_per_process": terms.share, "host": terms.host}}

    @classmethod
    def of(cls, study: Study, terms: Terms) -> LiveStudy:
        """A study, to be run so."""
        return cls(**vars(study), terms=terms)
