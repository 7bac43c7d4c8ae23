"""One run: builds nodes and network from a validated scenario, runs the clock, returns the result.

algorithm + agents + schedule + network + world + streams  ->  events  ->  ledger, trace, result
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from pydantic import BaseModel

from coband.simulator.core.algorithm import Algorithm
from coband.simulator.core.assembly import Assembly, HostContext
from coband.simulator.core.audit import trace as tr
from coband.simulator.core.audit.inspection import FullAudit, Inspection
from coband.simulator.core.audit.invariants import Audit, InvariantViolation, check_pulls
from coband.simulator.core.audit.ledger import Ledger
from coband.simulator.core.audit.per_agent import AgentMetrics, per_agent_metrics
from coband.simulator.core.audit.progress import Progress, RunResult
from coband.simulator.core.audit.trace import Trace
from coband.simulator.core.clock.clock import Clock
from coband.simulator.core.clock.schedule import OneAtATime, Rounds
from coband.simulator.core.clock.turns import Turns
from coband.simulator.core.hosts.availability import Always, Switch
from coband.simulator.core.hosts.host import ClientHost
from coband.simulator.core.hosts.phases import BatchWorld
from coband.simulator.core.message import Message
from coband.simulator.core.network.graphs import Graph
from coband.simulator.core.network.local import Direct, HopByHop, Local, LocalContext
from coband.simulator.core.network.network import Network
from coband.simulator.core.network.reliable import ReliableTransport
from coband.simulator.core.network.transport import Packet, Transport
from coband.simulator.core.node import (
    SERVER,
    Address,
    Agent,
    BatchAgent,
    Client,
    Neighbours,
    Node,
    Recipient,
    UnsupportedScenario,
)
from coband.simulator.core.plan import Plan, World
from coband.simulator.core.randomness.distributions import is_zero
from coband.simulator.core.randomness.streams import Streams

__all__ = ["Engine", "Plan", "Progress", "RunResult", "World"]


class Engine:
    """Builds and runs one run.

    Args:
        plan: agents, schedule, network, levels.
        algorithm: the registry entry.
        config: the algorithm's validated parameters.
        world: the problem, built for this replication.
        streams: of this replication.
        sink: where trace batches go; None to keep none.
        on_pull: called now and then with the number of pulls so far.
        graph: of the agents; None to make the one that the plan's network describes.

    Raises:
        GraphError: the graph cannot be made.
        UnsupportedScenario: the algorithm cannot do what is asked of it.
    """

    def __init__(
        self,
        plan: Plan,
        algorithm: Algorithm,
        config: BaseModel,
        world: World,
        streams: Streams,
        sink: tr.Sink | None = None,
        on_pull: Callable[[int], None] | None = None,
        graph: Graph | None = None,
    ) -> None:
        self.plan, self.world, self.streams, self._algorithm = plan, world, streams, algorithm
        count = plan.agents.count
        self.clock = Clock()
        self.trace = Trace(sink if plan.trace != tr.OFF else None)
        self.ledger = Ledger(count, plan.network.scalar_bits, plan.network.header_bits)
        reliable = plan.network.transport == "reliable"
        self._down: set[Address] = set()
        self.audit = (FullAudit if plan.checks == "full" else Audit)(reliable, self._down)
        self.progress = Progress(
            self.ledger,
            plan.schedule.duration,
            on_pull,
            plan.trace == tr.FULL,
            realised=getattr(world, "realised", False),
        )
        mending = reliable and (plan.network.faulty or plan.intermittent)
        self.transport = (ReliableTransport if mending else Transport)(
            self.clock,
            Network(plan.network, streams),
            self.ledger,
            self.trace,
            self.audit,
            self._down,
            self,
            self._describe,
            reliable,
        )
        spec = plan.network.graph
        self.graph = graph if graph is not None or spec is None else spec.build(count, streams)
        self.local = None if self.graph is None else self._make_local(self.graph)
        if algorithm.needs.fixed_arms and not world.fixed_arms:
            raise UnsupportedScenario(
                f"{algorithm.name} needs one arm set for all turns of all agents; this problem offers fresh arms each "
                "turn; give problem.arms kind: pool"
            )
        self._simulated_time = 0.0
        # In a round all agents are about to act on what they know, so turns can be prepared together.
        prepares = _prefetches(algorithm.agent) and is_zero(plan.agents.compute)
        prefetching = prepares and plan.share and isinstance(plan.schedule, Rounds)
        self._turns = Turns(plan.schedule, count, self.clock, streams, self.progress, prefetching)
        assembly = Assembly(plan, world, streams, self.graph)
        self.agents, self.server = assembly.nodes(algorithm, config)
        self._inspection: Inspection | None = None
        if isinstance(self.audit, FullAudit):
            self._inspection = Inspection(self.audit, self.progress, self.agents, self.server)
        self._hosts = assembly.hosts(
            self.agents,
            self.server,
            HostContext(
                self.clock,
                self.trace,
                self.progress,
                self._send,
                self.transport.send,
                self._inspection,
                self._turns.think,
            ),
        )
        if plan.intermittent:
            self._make_switch()

    def _make_local(self, graph: Graph) -> Local:
        plan = self.plan
        interval = plan.schedule.interval if isinstance(plan.schedule, OneAtATime | Rounds) else 1.0
        trial = interval if plan.network.local.trial is None else plan.network.local.trial
        around = LocalContext(graph, trial, self.clock, self.transport, self.ledger, self.trace, self.audit, self._down)
        mode = plan.network.local.mode
        if mode == "hop_by_hop" or (mode == "auto" and not plan.ideal):
            return HopByHop(around, self._hand_over)
        return Direct(around, self._hear)

    def _send(self, source: Address, recipient: Recipient, message: Message, cause: int) -> None:
        if self.local is None:
            self.transport.send(source, recipient, message, cause)
        elif isinstance(recipient, Neighbours):
            self.local.send(source, recipient.hops, message, cause)
        else:
            raise TypeError(f"agents of a graph write to NEIGHBOURS, not to {recipient}")

    def _make_switch(self) -> None:
        """Let nodes go down and come up as the plan says."""
        switch = Switch(self.clock, self.trace, self._down, self._switched, self._idle)
        availability = self.plan.agents.availability
        for agent in range(len(self.agents)):
            if not isinstance(availability, Always):
                switch.follow(agent, availability.windows(agent, self.streams("faults", agent, "availability")))
        for outage in self.plan.network.outages:
            for node in outage.addresses:
                if node != SERVER or self.server is not None:
                    switch.follow(node, iter([(outage.start, outage.end)]))

    def _switched(self, node: Address, up: bool, cause: int) -> None:
        host = self._hosts[node]
        if not up:
            host.go_down()
            return
        host.come_up(cause)
        self.transport.came_up(node)
        if self.local is not None:
            self.local.came_up(node)

    def _idle(self, changes: int) -> bool:
        """Whether nobody need go down any more.

        That is when nothing is ahead but so many changes of availability, and no node that is down has work left.
        """
        heals = self.plan.network.heals
        if heals is not None and self.clock.now >= heals:
            return True
        if self.clock.ahead > changes + self.transport.idle_timers:
            return False
        postponed = self.transport.postponed or (self.local is not None and self.local.postponed)
        return not postponed and not any(self._hosts[node].has_work for node in self._down)

    def deliver(self, packet: Packet) -> None:
        """A packet has reached its receiver."""
        if self.local is None:
            self._hand_over(packet)
        else:
            self.local.arrive(packet)

    def _hear(self, agent: Address, messages: Sequence[tuple[Address, Message]], cause: int) -> None:
        self._simulated_time = self.clock.now
        self._turns.host(agent).hear(messages, cause)

    def _hand_over(self, packet: Packet) -> None:
        self._simulated_time = self.clock.now
        self._hosts[packet.destination].on_packet(packet)  # the server is last, so its address -1 finds it

    def give_up(self, packet: Packet, cause: int) -> None:
        """The transport has given up a packet; neighbours' copies of LOCAL messages are nobody's own.

        Raises:
            InvariantViolation: what follows from the order of all messages is wrong without this one.
        """
        if self._algorithm.needs.ordered:
            text = (
                f"{self._algorithm.name} needs every message, and a {packet.message.kind!r} was given up after "
                f"{packet.attempts} copies; give network.retransmission a larger max_attempts"
            )
            raise InvariantViolation(text, cause)
        if packet.flood is None:
            self._hosts[packet.source].on_expiry(packet, cause)

    def _describe(self, message: Message) -> str | None:
        if self.plan.trace != tr.FULL:
            return None
        return json.dumps({name: _plain(getattr(message, name)) for name in message.payload_fields()})

    def run(self) -> RunResult:
        """Run until every turn is taken and every message has arrived.

        Raises:
            InvariantViolation: with the causal chain of the event that broke an invariant.
        """
        try:
            self._turns.start(self._hosts)
            self.clock.run()
            self._check_end()
        except InvariantViolation as violation:
            self.trace.record(self.clock.now, tr.VIOLATION, SERVER, cause=violation.cause)
            chain = [self._described(row) for row in self.trace.chain(violation.cause)]
            self.trace.flush()
            raise InvariantViolation("\n".join([str(violation), *chain]), violation.cause) from None
        finally:
            self.trace.flush()
        return self._result()

    def _described(self, row: tr.Row) -> str:
        words = {SERVER: "server", tr.EVERYONE: "several agents"}
        names = [words.get(node, f"agent {node}") for node in row[3:5]]
        return f"  <- event {row[0]} at time {row[1]:g}: {tr.EVENTS[row[2]]} at {names[0]}"

    @property
    def _nodes(self) -> list[Node]:
        return [*self.agents, *([self.server] if self.server else [])]

    def _check_end(self) -> None:
        self.audit.at_end()
        if self._inspection is not None:
            for node in self._nodes:
                self._inspection(node, None, tr.NONE)
            self._inspection.at_end(self.ledger, float(np.sum(self.progress.regrets)))
        unshared = sum(agent.unshared for agent in self.agents)
        applied = self.server.applied if self.server is not None else 0
        check_pulls(self.progress.made, unshared, applied, self.audit.lost_for_good)

    def _result(self) -> RunResult:
        progress = self.progress
        totals = self.ledger.totals()
        totals.update(dropped=self.audit.dropped_copies, expired=self.audit.given_up)
        for node in self._nodes:
            for key, value in node.report().items():
                totals[key] = totals.get(key, 0) + value
        if isinstance(self.world, BatchWorld):
            batchers = [agent for agent in self.agents if isinstance(agent, BatchAgent)]
            totals.update(self.world.score([agent.answer for agent in batchers]))
            if (means_of := getattr(self.world, "means", None)) is not None:
                means = np.stack([means_of(agent, 1) for agent in range(len(batchers))])
                for agent in batchers:
                    totals.update(agent.report_in_hindsight(means))
        last_pull = max(progress.times, default=0.0)
        regret = np.cumsum(progress.regrets)
        return RunResult(
            turns=sum(progress.pulls),
            regret=float(regret[-1]) if regret.size else 0.0,
            reward=progress.reward,
            totals=totals,
            rounds=max([agent.rounds for agent in self.agents] + ([self.server.rounds] if self.server else [])),
            simulated_time=max(last_pull, self._simulated_time),
            fingerprint=self.trace.fingerprint(),
            graph=self._graph_in_words(),
            stalled=sum(host.due for host in self._hosts if isinstance(host, ClientHost) and not host.node.done),
            times=np.asarray(progress.times),
            regret_series=regret,
            scalars_series=np.asarray(progress.scalars, dtype=np.int64),
            turns_series=np.cumsum(progress.pulls, dtype=np.int64),
            by_agent=per_agent_metrics(
                self.agents, (progress.agents, progress.pulls, progress.regrets), self.ledger, self._judge
            ),
            ledger=self.ledger,
            audit=self.audit,
            agents=self.agents,
            server=self.server,
        )

    def _judge(self, index: int) -> AgentMetrics:
        agent = self.agents[index]
        if isinstance(self.world, BatchWorld) and isinstance(agent, BatchAgent):
            return dict(self.world.score_of(index, agent.answer))
        return {}

    def _graph_in_words(self) -> str | None:
        graph = self.graph
        if graph is None:
            return None
        return f"{graph.description}; {graph.nodes} nodes, {graph.edges} edges, diameter {graph.diameter}"


def _prefetches(kind: type[Client]) -> bool:
    return issubclass(kind, Agent) and kind.prefetch is not Agent.prefetch


def _plain(value: Any) -> Any:
    """A payload value as JSON can hold it."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if hasattr(value, "__dataclass_fields__"):
        return {item.name: _plain(getattr(value, item.name)) for item in fields(value)}
    return value
