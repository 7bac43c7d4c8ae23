"""The nodes of one process with all that is around them: a function of the frames and times that it is given.

A machine knows neither sockets nor clocks. Given the same frames at the same times, and its events run at the same
times, it does the same and sends the same; so a process that was killed is made again from its journal.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from coband.simulator.core.assembly import Assembly, HostContext
from coband.simulator.core.audit import trace as tr
from coband.simulator.core.audit.ledger import Ledger
from coband.simulator.core.audit.progress import Progress
from coband.simulator.core.clock.clock import Clock
from coband.simulator.core.clock.schedule import OneAtATime, Phases, Recorded, Renewal, Rounds
from coband.simulator.core.hosts.host import ClientHost
from coband.simulator.core.hosts.phases import PhaseHost
from coband.simulator.core.hosts.turns import Turns
from coband.simulator.core.network.network import Network
from coband.simulator.core.node import SERVER, Address, BatchAgent, Client, UnsupportedScenario
from coband.simulator.core.plan import Plan
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.core.run_context import RunContext
from coband.simulator.experiments.runs.job import Job, entry_of, graph_and_world, plan
from coband.simulator.experiments.scenario.scenario import Scenario, ScenarioEntry
from coband.simulator.live.codec import Codec, WireError
from coband.simulator.live.transport import LiveAudit, LiveDatagrams, LiveReliable, LocalRouter, OverSockets, Post

NUMBERS = 1 << 40
"""Events and messages of process p are numbered from p times this."""
COPY = (int, int, int, int, int, int, float, bytes)
"""What a ``copy`` holds: source, destination, number, id, send, attempts, time, message."""
SETTLING = {
    "ack": (int, int, int),
    "skip": (int, int, int),
    "skipped": (int, int, int, bool),
    "silence": (int, int, int),
}
"""What the other frames between transports hold: source, destination, number (or cause), ..."""


@dataclass(frozen=True)
class Share:
    """What one process is to run.

    Attributes:
        job: the algorithm and replication, of the whole run.
        origin: number of the process; 0: the one with the server.
        nodes: the addresses of its nodes.
    """

    scenario: Scenario
    job: Job
    origin: int
    nodes: frozenset[Address]


class LocalTurns(Turns):
    """The schedule, for the agents of this process."""

    def __init__(self, schedule: Any, agents: int, clock: Clock, streams: Streams, progress: Progress) -> None:
        super().__init__(schedule, agents, clock, streams, progress, False, None)

    def start_for(self, agents: Collection[Address], hosts: Sequence[Any]) -> None:
        """Begin; ``hosts`` by address, the server's last."""
        self._hosts, schedule = hosts, self._schedule
        if isinstance(schedule, Renewal):
            self._thinking = self._paced(schedule)
            for agent in sorted(agents):
                self.think(agent)
        elif isinstance(schedule, Phases):
            for agent in sorted(agents):
                host = hosts[agent]
                assert isinstance(host, PhaseHost)
                host.call()
        else:
            assert isinstance(schedule, OneAtATime | Rounds | Recorded)
            ticks = schedule.ticks(self._agents, self._streams)
            self._ticks = (tick for tick in ticks if tick[1] in agents)
            self._schedule_tick()


class MarkedProgress(Progress):
    """Notes of pulls: the reward of each, and in ``scalars`` the event of the trace after which it was complete."""

    trace: tr.Trace
    first: int
    rewards: list[float]

    def pulled(self, agent: int, now: float, regret: float, reward: float, seq: int, pulls: int = 1) -> None:
        super().pulled(agent, now, regret, reward, seq, pulls)
        self.scalars[-1] = self.first + self.trace.events - 1
        self.rewards.append(reward)


class Machine:
    """The nodes of one process.

    Args:
        share: what it runs.
        post: sends a frame to the process in which a node is.

    Raises:
        UnsupportedScenario, DataError: the scenario cannot run so.
    """

    def __init__(self, share: Share, post: Post) -> None:
        self.share = share
        scenario, job = share.scenario, share.job
        entry, streams = entry_of(job, scenario), Streams(job.seed, job.replication)
        self.plan: Plan = plan(scenario, entry.ties)
        _, self.world = graph_and_world(scenario, streams)
        self.rows: list[tr.PlainRow] = []
        self.names: Sequence[str] = ()
        self.run = self._run_context()
        self.clock = self.run.clock
        self.progress = self._progress()
        self.router = LocalRouter(self.clock)
        self.router.post = post
        codec = Codec([size.message for size in entry.algorithm.messages], self.world.dimension)
        self.transport = self._transport(Network(self.plan.network, streams), codec, post)
        self._host(entry, Assembly(self.plan, self.world, streams, None), streams)

    def _run_context(self) -> RunContext:
        network, down = self.plan.network, set[Address]()
        ledger = Ledger(self.plan.agents.count, network.scalar_bits, network.header_bits)
        audit = LiveAudit(network.transport == "reliable", down)
        return RunContext(Clock(), tr.Trace(self._keep, self._first), ledger, audit, down)

    @property
    def _first(self) -> int:
        """Number of the first event and message of this process."""
        return self.share.origin * NUMBERS

    def _progress(self) -> MarkedProgress:
        realised, full = getattr(self.world, "realised", False), self.plan.trace == tr.FULL
        progress = MarkedProgress(self.run.ledger, self.plan.schedule.duration, None, full, realised)
        progress.trace, progress.first, progress.rewards = self.run.trace, self._first, []
        return progress

    def _transport(self, links: Network, codec: Codec, post: Post) -> OverSockets:
        reliable = links.config.transport == "reliable"
        kind = LiveReliable if reliable and links.config.faulty else LiveDatagrams
        return kind(self.run, links, self.router, reliable, codec, post, self._first)

    def _host(self, entry: ScenarioEntry, assembly: Assembly, streams: Streams) -> None:
        """Make the nodes, and hosts around them."""
        self.agents, self.server = assembly.nodes(entry.algorithm, entry.config)
        if self.agents[0].context.sharing.has_common:
            raise UnsupportedScenario(
                f"{entry.label}: its nodes have storage in common, as in published code, which nodes of different "
                "processes cannot have; run it with `coband run`"
            )
        count = self.plan.agents.count
        self.turns = LocalTurns(self.plan.schedule, count, self.clock, streams, self.progress)
        around = HostContext(self.run, self.progress, self.router.send, None, self.turns.think)
        self.hosts = assembly.hosts(self.agents, self.server, around)
        self.router.connect(self.hosts, self.transport, None)

    def _keep(self, rows: Sequence[tr.PlainRow], names: Sequence[str]) -> None:
        self.rows += rows
        self.names = names

    # --- what happens to it

    @property
    def next_due(self) -> float:
        """When its next event is due; infinity where all that is left are timers that will do nothing."""
        clock = self.clock
        return clock.next_due if clock.ahead > self.transport.idle_timers else math.inf

    def run_due(self, now: float) -> None:
        """Run its next event, which is due."""
        self.clock.run_due(now)

    def on_frame(self, now: float, frame: Sequence[Any]) -> None:
        """Take a frame from another process.

        Raises:
            WireError: it is none that this process takes; nothing of it was done.
        """
        self.clock.advance(max(now, self.clock.now))
        what = frame[0] if frame else None
        if what == "copy":
            self._check(frame, COPY)
            packet = self.transport.packet_of(frame)
            self.transport.transits.append(max(0.0, now - frame[7]))
            self.clock.advance(max(self.clock.now, frame[7]))
            self.transport.take(packet)
        elif what == "start":
            self.turns.start_for([node for node in self.share.nodes if node != SERVER], self.hosts)
        elif what in SETTLING:
            self._check(frame, SETTLING[what])
            if what == "silence":
                self.router.silence(*frame[1:])
            else:
                self.transport.settle(frame)
        elif what != "advance":
            raise WireError(f"a frame {what!r:.20}, which there is not")

    def _check(self, frame: Sequence[Any], types: Sequence[type]) -> None:
        """Refuse a frame whose parts are of other types, or that is for a node elsewhere."""
        check_parts(frame, types, self.plan.agents.count)
        to = frame[1] if frame[0] in ("ack", "skipped") else frame[2]
        if to not in self.share.nodes:
            raise WireError(f"a {frame[0]} for node {to}, which is not in this process")

    def note_state(self, now: float, nodes: Iterable[Address], up: bool) -> None:
        """Take note that nodes of other processes have gone down or come up."""
        self.clock.advance(max(now, self.clock.now))
        for node in nodes:
            (self.run.down.discard if up else self.run.down.add)(node)
            self.run.trace.record(self.clock.now, tr.UP if up else tr.DOWN, node)

    @property
    def pulls(self) -> int:
        """Pulls that its agents have made."""
        return self.progress.made

    # --- what comes out of it

    def report(self) -> dict[str, Any]:
        """All that the result needs but for the trace, in types that can be sent."""
        progress, ledger = self.progress, self.run.ledger
        self.run.trace.flush()
        return {
            "origin": self.share.origin,
            "names": list(self.names),
            "ledger": {
                "kinds": [[*key, *_numbers(entry)] for key, entry in ledger.by_kind.items()],
                "rounds": [list(item) for item in ledger.by_round.items()],
                "agents": [ledger.uplink_by_agent, ledger.downlink_by_agent, ledger.peer_by_agent],
                "repeated": [ledger.repeated_messages, ledger.repeated_scalars, ledger.acknowledgements],
            },
            "copies": {kind: _numbers(copies) for kind, copies in self.run.audit.copies.items()},
            "pulls": [
                progress.agents,
                progress.pulls,
                progress.times,
                progress.regrets,
                progress.rewards,
                progress.scalars,
            ],
            "last_delivery": self.router.last_delivery,
            "bytes": self.transport.written_bytes,
            "lateness": self.transport.lateness,
            "transits": self.transport.transits,
            "agents": [self._agent(agent) for agent in self._clients],
        }

    @property
    def _clients(self) -> list[Client]:
        return [agent for agent in self.agents if agent.context.index in self.share.nodes]

    def _agent(self, agent: Client) -> dict[str, Any]:
        index = agent.context.index
        host = self.hosts[index]
        assert isinstance(host, ClientHost)
        closest = agent.context.closest
        hindsight: dict[str, Any] = {}
        if isinstance(agent, BatchAgent) and hasattr(self.world, "means"):
            import numpy as np

            means = np.stack([self.world.means(other, 1) for other in range(len(self.agents))])
            hindsight = agent.report_in_hindsight(means)
        return {
            "index": index,
            "rounds": agent.rounds,
            "unshared": agent.unshared,
            "answer": getattr(agent, "answer", None),
            "stalled": 0 if agent.done else host.due,
            "report": agent.report(),
            "own": agent.report_own(),
            "hindsight": hindsight,
            "warnings": list(agent.warnings()),
            "closest": None if closest is None else closest.of_agents()[index],
        }


def check_parts(frame: Sequence[Any], types: Sequence[type], agents: int) -> None:
    """Refuse a frame whose parts are not of these types, or that speaks of nodes that there are not.

    Raises:
        WireError: what is wrong.
    """
    if len(frame) != 1 + len(types) or any(type(part) is not kind for part, kind in zip(frame[1:], types, strict=True)):
        raise WireError(f"a {frame[0]} whose parts are not what they should be")
    if not all(SERVER <= node < agents for node in frame[1:3]):
        raise WireError(f"a {frame[0]} between nodes {frame[1]} and {frame[2]}, which there are not")


def _differs(part: Any, kind: type) -> bool:
    return type(part) is not kind


def _numbers(record: Any) -> list[int]:
    return [getattr(record, name) for name in record.__dataclass_fields__]
