"""Making the nodes of a run and the hosts around them."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import BaseModel

from coband.simulator.core.algorithm import Algorithm
from coband.simulator.core.audit.progress import Progress
from coband.simulator.core.audit.trace import Trace
from coband.simulator.core.clock.clock import Clock
from coband.simulator.core.clock.schedule import Phases, Renewal
from coband.simulator.core.hosts.agent_host import AgentHost
from coband.simulator.core.hosts.host import ClientHost, Host, Inspect, Send
from coband.simulator.core.hosts.phases import BatchWorld, PhaseHost, PhaseTiming
from coband.simulator.core.hosts.speed import SlowPeriod, SlowPeriodDraws
from coband.simulator.core.network.graphs import Graph
from coband.simulator.core.node import SERVER, BatchAgent, Client, NodeContext, Server, Sharing
from coband.simulator.core.plan import Plan, World
from coband.simulator.core.randomness.distributions import BaseDistribution, Draws, is_zero
from coband.simulator.core.randomness.streams import Streams


@dataclass(frozen=True)
class HostContext:
    """What hosts are connected to.

    Attributes:
        send, reply: put an agent's, or the server's, message on the network.
        check: called after every message and turn; None for no checks.
        think: renewal schedules: called with the agent's index when one of its turns has ended.
    """

    clock: Clock
    trace: Trace
    progress: Progress
    send: Send
    reply: Send
    check: Inspect | None
    think: Callable[[int], None]


class Assembly:
    """Builds what a plan describes."""

    def __init__(self, plan: Plan, world: World, streams: Streams, graph: Graph | None) -> None:
        self._plan, self._world, self._streams, self._graph = plan, world, streams, graph

    def nodes(self, algorithm: Algorithm, config: BaseModel) -> tuple[list[Client], Server | None]:
        """The agents and the server, if the algorithm has one."""
        sharing, count, world = Sharing(self._plan.share), self._plan.agents.count, self._world
        domain = world.arms(0, 1) if world.fixed_arms else None
        count_turns = cache(lambda: self._plan.schedule.turns_per_agent(count, self._streams))
        knowledge = world.knowledge() if isinstance(world, BatchWorld) else None
        contexts, norms = getattr(world, "contexts", None), getattr(world, "norms", None)

        def context_of(index: int) -> NodeContext:
            network_context = None if contexts is None or index == SERVER else contexts[index]
            return NodeContext(
                index,
                count,
                world.dimension,
                config,
                sharing,
                self._streams.coin,
                domain,
                count_turns,
                self._graph,
                network_context,
                knowledge,
                None if norms is None or index == SERVER else float(norms[index]),
            )

        agents: list[Client] = [algorithm.agent(context_of(index)) for index in range(count)]
        if algorithm.server is None:
            return agents, None
        module, _, name = algorithm.server.partition(":")
        return agents, getattr(importlib.import_module(module), name)(context_of(SERVER))

    def hosts(self, agents: list[Client], server: Server | None, wiring: HostContext) -> list[Host]:
        """A host around every agent, by index, and around the server last."""
        hosts: list[Host] = []
        slowness = self._plan.agents.slowness(self._streams)
        slow_periods = self._plan.agents.episodes(self._streams, wiring.clock)
        for agent, factor, slow_period in zip(agents, slowness, slow_periods, strict=True):
            handling = self._draws(self._plan.agents.handling, agent.context.index, "handling", factor, slow_period)
            compute = self._draws(self._plan.agents.compute, agent.context.index, "compute", factor, slow_period)
            parts = (agent, wiring.clock, wiring.trace, handling, wiring.send, wiring.check)
            hosts.append(self._client_host(agent, factor, slow_period, compute, parts, wiring))
        if server is not None:
            handling = self._draws(self._plan.server.handling, SERVER + len(agents) + 1, "handling", 1.0)
            hosts.append(Host(server, wiring.clock, wiring.trace, handling, wiring.reply, wiring.check))
        return hosts

    def _client_host(
        self,
        agent: Client,
        factor: float,
        slow_period: SlowPeriod | None,
        compute: Draws | None,
        parts: tuple[Any, ...],
        wiring: HostContext,
    ) -> ClientHost:
        schedule, world = self._plan.schedule, self._world
        if isinstance(agent, BatchAgent):
            if not isinstance(schedule, Phases) or not isinstance(world, BatchWorld):
                raise TypeError("a batch agent needs schedule.kind phases and a problem that can be pulled in batches")
            pace = PhaseTiming(schedule.pull_time * factor, compute, schedule.limit, slow_period)
            return PhaseHost(*parts, world=world, pace=pace, progress=wiring.progress)
        after_turn = wiring.think if isinstance(schedule, Renewal) else None
        return AgentHost(*parts, world=world, compute=compute, progress=wiring.progress, after_turn=after_turn)

    def _draws(
        self,
        distribution: BaseDistribution,
        index: int,
        purpose: str,
        factor: float,
        slow_period: SlowPeriod | None = None,
    ) -> Draws | None:
        if is_zero(distribution):
            return None
        parts = (distribution, self._streams("compute", index, purpose), factor)
        return Draws(*parts) if slow_period is None else SlowPeriodDraws(slow_period, *parts)
