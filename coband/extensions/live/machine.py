"""The nodes of one process with all that is around them: a function of the frames and times that it is given.

A machine knows neither sockets nor clocks. Given the same frames at the same times, and its events run at the same
times, it does the same and sends the same.

The pump drives a machine: it hands over frames as they come, and runs events when the clock on the wall says so.
Simulated time is the time since the start in units of ``speed`` seconds. With a speed of 0 time is virtual: it stands
still until the hub lets it go on, which it does when nothing is left to do at that time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from coband import SERVER, Address, Declined, Message, UnsupportedScenario
from coband.extending import (
    RAISED,
    Down,
    HostContext,
    Job,
    Network,
    Packet,
    Plan,
    Progress,
    RunContext,
    Scenario,
    ScenarioEntry,
    Setup,
    Streams,
    Turns,
    clock,
    entry_of,
    graph_and_world,
    ledger,
    make_hosts,
    make_nodes,
    make_wire,
    plan,
    veiled,
)
from coband.extending import trace as tr
from coband.extensions.live.codec import Codec, WireError
from coband.extensions.live.config import explain, guard
from coband.extensions.live.frames import named
from coband.extensions.live.payloads import PayloadCodec
from coband.extensions.live.schema import Ack, Advance, Copy, Gone, Kinds, Passing, Skipped, Start
from coband.extensions.live.transport import LiveAudit, LiveReliable, LocalRouter, OverSockets, Post

NUMBERS = 1 << 40
"""Events and messages of process p are numbered from p times this."""
AT_ONCE: clock.Due = (0.0, -1, 0)
"""Before everything that is due."""
Given = Passing | Start | Advance | Gone
"""What a machine is given."""
BACKWARD = Ack | Skipped
"""What goes from the receiver of a message to its sender."""


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
        self.share, self._begun = share, False
        self._who = "the server" if SERVER in share.nodes else "an agent"
        scenario, job = share.scenario, share.job
        entry, streams = entry_of(job, scenario), Streams(job.seed, job.replication)
        self.plan: Plan = plan(scenario, entry.ties)
        if self.plan.altered:
            self.plan = replace(self.plan, share=False)
        _, world = graph_and_world(scenario, streams)
        self._sends, self.until = post, AT_ONCE
        self.steps: dict[int, int] = {}  # of virtual time, by the number of events before
        self.rows: list[tr.PlainRow] = []
        self.names: Sequence[str] = ()
        setup = Setup(self.plan, world, streams, None)
        self.run = self._run_context(Down(setup.gone))
        self.clock = self.run.clock
        setup, self.noising = veiled(setup, entry.algorithm, self.clock)
        self.world = setup.world
        self.wire = make_wire(setup, self.clock, self.noising)
        self.progress = self._progress()
        self.router = LocalRouter(self.clock)
        self.router.post = self._post
        kinds: list[type[Message]] = [*(size.message for size in entry.algorithm.messages), Declined]
        self.kinds = {kind.__name__: kind for kind in kinds}  # as reports name them
        self.transport = self._transport(Network(self.plan.network, streams), kinds, self._post)
        self._host(entry, setup)

    def _run_context(self, down: Down) -> RunContext:
        network = self.plan.network
        accounts = ledger.Ledger(self.plan.agents.count, network.scalar_bits, network.header_bits)
        audit = LiveAudit(network.transport == "reliable", down)
        return RunContext(clock.Clock(), tr.Trace(self._keep, self._first), accounts, audit, down)

    @property
    def _first(self) -> int:
        """Number of the first event and message of this process."""
        return self.share.origin * NUMBERS

    def _progress(self) -> MarkedProgress:
        realised, full = getattr(self.world, "realised", False), self.plan.trace == tr.FULL
        progress = MarkedProgress(self.run.ledger, self.plan.schedule.duration, None, full, realised)
        progress.trace, progress.first, progress.rewards = self.run.trace, self._first, []
        return progress

    def _transport(self, links: Network, kinds: Sequence[type[Message]], post: Post) -> OverSockets:
        reliable = links.config.transport == "reliable"
        kind = LiveReliable if reliable and self.plan.faulty else OverSockets
        codec = Codec(kinds, self.world.dimension)
        if self.wire is not None:
            codec = PayloadCodec(kinds, self.world.dimension, self.wire.layout, not kind.mends)
        self.router.tells = self.plan.messages.encoding.remembers and not kind.mends
        transport = kind(
            self.run,
            links,
            self.router,
            reliable,
            codec=codec,
            post=post,
            first=self._first,
            told=self.router.tells,
            withholds=self.plan.withholds,
        )
        return transport

    def _host(self, entry: ScenarioEntry, setup: Setup) -> None:
        """Make the nodes, and hosts around them."""
        self.agents, self.server = make_nodes(setup, entry.algorithm, entry.config)
        for node in self.agents if self.server is None else (*self.agents, self.server):
            guard(node)
        if self.agents[0].context.sharing.has_common:
            raise UnsupportedScenario(
                f"{entry.label}: its nodes have storage in common, as in published code, which nodes of different "
                "processes cannot have; run it with `coband run`"
            )
        count = self.plan.agents.count
        self.turns = Turns(self.plan.schedule, count, self.clock, setup.streams, self.progress, None, None)
        around = HostContext(self.run, self.progress, self.router.send, None, self.turns.think)
        self.hosts = make_hosts(setup, self.agents, self.server, around)
        self.router.connect(self.hosts, self.transport, None, self.wire)

    def _post(self, node: Address, frame: Passing) -> None:
        self.until = AT_ONCE  # something of another process may come first now
        self._sends(node, frame)

    def _keep(self, rows: Sequence[tr.PlainRow], names: Sequence[str]) -> None:
        self.rows += rows
        self.names = names

    # --- what happens to it

    @property
    def next_due(self) -> clock.Due:
        """Its next event (`Clock.next_due`); never where all that is left are timers that will do nothing."""
        own = self.clock
        return own.next_due if own.ahead > self.transport.idle_timers else clock.NEVER_DUE

    def run_due(self, now: float) -> None:
        """Run its next event, which is due.

        Raises:
            LiveError: a node has failed.
        """
        try:
            self.clock.run_due(now)
        except RAISED as error:
            explain(error, self._who)

    def check(self, frame: Given) -> Packet | None:
        """Refuse a frame that has no place here; returns the packet that is in a copy.

        Raises:
            WireError: what is wrong.
        """
        if isinstance(frame, Start) == self._begun:
            raise WireError(f"{named(frame)} {'after' if self._begun else 'before'} the start")
        if isinstance(frame, Start | Advance):
            return None
        if isinstance(frame, Gone):
            if not self.share.nodes.isdisjoint(frame.agents) or max(frame.agents) >= self.plan.agents.count:
                raise WireError("a gone of agents that are here, or not in this run")
            return None
        check_passing(frame, self.plan.agents.count, self.transport.takes)
        if receiver(frame) not in self.share.nodes:
            raise WireError(f"{named(frame)} for node {receiver(frame)}, which is not in this process")
        return self.transport.packet_of(frame) if isinstance(frame, Copy) else None

    def take(self, now: float, frame: Given, packet: Packet | None = None) -> None:
        """Take a frame from another process.

        Args:
            packet: what is in a copy.

        Raises:
            LiveError: a node has failed.
        """
        sent = 0.0 if isinstance(frame, Start) else frame.time
        self.clock.advance(max(now, sent, self.clock.now))
        try:
            self._take(now, frame, packet)
        except RAISED as error:
            explain(error, self._who)

    def _take(self, now: float, frame: Given, packet: Packet | None) -> None:
        if isinstance(frame, Copy):
            assert packet is not None
            self.transport.transits.append(max(0.0, now - frame.time))
            self.transport.take(packet)
        elif isinstance(frame, Start):
            self._begun = True
            self.turns.start(self.hosts, self.share.nodes - {SERVER})
        elif isinstance(frame, Advance):
            self.until, self.steps[self.run.trace.events] = frame.until, frame.step
            self.clock.advance(now, frame.step << 32)
        elif isinstance(frame, Gone):
            self._lose(frame.agents)
        else:
            self.transport.settle(frame)

    def _lose(self, agents: Iterable[Address]) -> None:
        """Agents of another process are gone for good, as if they had left; whoever waits for them notices."""
        down, own = self.run.down, self.share.nodes
        for agent in agents:
            for nodes in (down, down.gone, down.left):
                nodes.add(agent)
            cause = self.run.trace.record(self.clock.now, tr.DOWN, agent) if self.share.origin == 0 else tr.NONE
            self.transport.went(agent)
            for node in own if self.server is None else own & {SERVER}:
                self.hosts[node].on_silence(agent, cause)

    @property
    def pulls(self) -> int:
        return self.progress.made


def receiver(frame: Passing) -> Address:
    """The node that a frame is for."""
    return frame.source if isinstance(frame, BACKWARD) else frame.destination


def check_passing(frame: Passing, agents: int, takes: Kinds) -> None:
    """Refuse a frame that no transport sends; ``takes``: those that one does.

    Raises:
        WireError: what is wrong.
    """
    if frame.source >= agents or frame.destination >= agents:
        raise WireError(f"{named(frame)} between nodes {frame.source} and {frame.destination}, which there are not")
    if not isinstance(frame, takes):
        raise WireError(f"{named(frame)}, for which there is no use where nothing is lost")


SLICE = 0.02
"""Seconds after which other tasks get their turn."""


class Pump:
    """Drives one machine.

    Args:
        speed: seconds of one unit of simulated time; 0 for virtual time.
        after: called when all that is due is done.
        fail: called when an event of the machine raises an exception.

    Attributes:
        epoch: time of the event loop at which the run began; None before.
    """

    def __init__(
        self,
        machine: Machine,
        speed: float,
        after: Callable[[], None],
        fail: Callable[[BaseException], None],
    ) -> None:
        self._machine, self._speed, self._after, self._fail = machine, speed, after, fail
        self.epoch: float | None = None
        self._timer: asyncio.Handle | None = None

    @property
    def now(self) -> float:
        """Simulated time, which never goes back."""
        known = self._machine.clock.now
        if self.epoch is None or not self._speed:
            return known
        return max(known, (asyncio.get_running_loop().time() - self.epoch) / self._speed)

    @property
    def due(self) -> bool:
        """Whether an event of the machine is to run now."""
        due = self._machine.next_due
        return due[0] <= self.now if self._speed else due < self._machine.until

    def frame(self, frame: Given) -> None:
        """Give the machine a frame.

        Raises:
            WireError: it is none that the machine takes.
        """
        now = frame.time if isinstance(frame, Advance) else 0.0 if isinstance(frame, Start) else self.now
        packet = self._machine.check(frame)
        try:
            self._machine.take(now, frame, packet)
        except RAISED as error:
            self._fail(error)
        self.drain()

    def drain(self) -> None:
        """Run all events that are due, and come back when the next one is."""
        try:
            self._run()
        except RAISED as error:
            self._fail(error)

    def _run(self) -> None:
        loop, machine = asyncio.get_running_loop(), self._machine
        until = loop.time() + SLICE
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self.due:
            now = self.now
            if loop.time() > until:
                self._timer = loop.call_soon(self.drain)
                return
            machine.run_due(now)
        if self.epoch is not None and self._speed and machine.next_due != clock.NEVER_DUE:
            self._timer = loop.call_at(self.epoch + machine.next_due[0] * self._speed, self.drain)
        self._after()

    def stop(self) -> None:
        """Run nothing any more."""
        if self._timer is not None:
            self._timer.cancel()
