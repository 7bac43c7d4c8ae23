"""Live runs whose hub and stations are tasks of one process, over TCP on loopback."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from coband.extensions.live.config import Terms
from coband.extensions.live.hub import Hub
from coband.extensions.live.station import Invitation, Station
from coband.simulator.core.records import trace as tr
from coband.simulator.core.result import RunResult
from coband.simulator.experiments.runs.attempt import attempt
from coband.simulator.experiments.runs.job import Job
from coband.simulator.experiments.scenario.loading import loads
from coband.simulator.experiments.scenario.scenario import Scenario

TOKEN = "a token of tests"
SERIAL = """
name: serial
seed: 3
replications: 1
agents: {count: 3}
schedule: {kind: one_at_a_time, turns: 60}
problem:
  kind: contextual
  arms: {kind: ball, dimension: 3, count: 6}
  reward: {kind: cosine}
  noise: 0.1
algorithms:
  - {algorithm: async_kernel_ucb, label: Async, alpha: 0.1, q: 0.5, threshold: 0.3}
  - {algorithm: approx_dis_kernel_ucb, label: Approx-Dis, alpha: 0.1, q: 0.3, threshold: 0.3}
  - {algorithm: dis_kernel_ucb, label: Dis, alpha: 0.1, threshold: 5}
  - {algorithm: one_kernel_ucb, label: One, alpha: 0.1}
  - {algorithm: n_kernel_ucb, label: Alone, alpha: 0.1}
  - {algorithm: dis_lin_ucb, label: DisLin, threshold: 1}
  - {algorithm: fed_lin_ucb, label: FedLin}
"""
SECONDS = 60.0
"""No test takes longer, whatever goes wrong."""


@dataclass
class Live:
    """A live run of a test.

    Attributes:
        said: what the user was told.
        rows: the trace.
        tasks: the stations.
        pulls: called with the number of pulls so far.
    """

    scenario: Scenario
    label: str
    terms: Terms
    said: list[str] = field(default_factory=list)
    rows: list[tr.Row] = field(default_factory=list)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)
    pulls: Callable[[int], None] = lambda pulls: None
    hub: Hub | None = None
    port: int = 0

    def join(self, agents: int | None = None) -> asyncio.Task[None]:
        """Start one more station."""
        invitation = Invitation("127.0.0.1", self.port, self.terms.token, agents, 10.0)
        self.tasks.append(asyncio.create_task(Station(invitation).run()))
        return self.tasks[-1]

    async def open(self) -> None:
        """Open the port."""
        job = job_of(self.scenario, self.label)
        self.hub = Hub(job, self.scenario, self.terms, self.said.append, lambda pulls: self.pulls(pulls))
        self.port = await self.hub.listen()

    async def result(self) -> RunResult:
        """Wait for the end."""
        assert self.hub is not None
        try:
            async with asyncio.timeout(SECONDS):
                return await self.hub.run(tr.keep(self.rows))
        finally:
            await self.hub.close()
            for task in self.tasks:
                with suppress(asyncio.CancelledError, Exception):
                    async with asyncio.timeout(5.0):
                        await task


def job_of(scenario: Scenario, label: str) -> Job:
    entry = next(entry for entry in scenario.algorithms if entry.label == label)
    return Job(0, label, entry.algorithm.name, 0, scenario.seed, scenario.trace)


def live(
    text: str, label: str, changes: Sequence[str] = (), share: int = 1, speed: float = 0.0, **terms: float
) -> Live:
    scenario = loads(text, overrides=changes)
    return Live(scenario, label, Terms(speed, share, TOKEN, start=False, **terms))  # type: ignore[arg-type]


def run(live: Live) -> RunResult:
    """Run with as many stations as are needed."""

    async def main() -> RunResult:
        await live.open()
        for _ in range(-(-live.scenario.agents.count // live.terms.share)):
            _ = live.join()
        return await live.result()

    return asyncio.run(main())


def simulated(scenario: Scenario, label: str) -> tuple[RunResult, list[tr.Row]]:
    """The same run in the simulator."""
    rows: list[tr.Row] = []
    found: list[RunResult] = []
    outcome = attempt(job_of(scenario, label), scenario, found.append, tr.keep(rows))
    assert outcome.error is None
    return found[0], rows
