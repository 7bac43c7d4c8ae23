"""Making the hosts around the nodes of a run: how long they take, and how their rewards come."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from coband.simulator.core.clock.schedule import Phases, Renewal
from coband.simulator.core.hosts.agent_host import AgentHost
from coband.simulator.core.hosts.host import ClientHost, Host, Inspector, Send
from coband.simulator.core.hosts.speed import SlowPeriod, SlowPeriodDraws
from coband.simulator.core.making.nodes import Setup, made_later
from coband.simulator.core.nodes.lazy_sequence import LazySequence
from coband.simulator.core.nodes.node import Agent, BatchAgent, Client, Server
from coband.simulator.core.randomness.distributions import BaseDistribution, Draws, is_zero
from coband.simulator.core.records.progress import Progress
from coband.simulator.core.run_context import RunContext
from coband.simulator.core.world import in_batches


@dataclass(frozen=True)
class HostContext:
    """What hosts are connected to.

    Attributes:
        send: puts a node's message on the network.
        check: looks at every message and turn with ``checks: full``, else None.
        think: renewal schedules: called with the agent's index when one of its turns has ended.
    """

    run: RunContext
    progress: Progress
    send: Send
    check: Inspector | None
    think: Callable[[int], None]


def make_hosts(setup: Setup, agents: Sequence[Client], server: Server | None, around: HostContext) -> Sequence[Host]:
    """A host around every agent, by index, and around the server last."""
    run, config = around.run, setup.plan.agents
    slowness, slow_periods = config.slowness(setup.streams), config.episodes(setup.streams, run.clock)

    def host(index: int) -> Host:
        if index == len(agents):
            assert server is not None
            handling = _draws(setup, setup.plan.server.handling, index, "handling", 1.0)
            return Host(server, run, handling, around.send, around.check)
        agent, factor, slow_period = agents[index], slowness[index], slow_periods[index]
        handling = _draws(setup, config.handling.of(index), index, "handling", factor, slow_period)
        compute = _draws(setup, config.compute.of(index), index, "compute", factor, slow_period)
        parts = (agent, run, handling, around.send, around.check)
        return _client_host(setup, agent, factor, slow_period, compute, parts, around)

    count = len(agents) + (server is not None)
    return LazySequence(count, host) if made_later(setup) else list(map(host, range(count)))


def _client_host(
    setup: Setup,
    agent: Client,
    factor: float,
    slow_period: SlowPeriod | None,
    compute: Draws | None,
    parts: tuple[Any, ...],
    around: HostContext,
) -> ClientHost:
    schedule, world = setup.plan.schedule, setup.world
    assert isinstance(agent, Agent | BatchAgent)
    if isinstance(agent, BatchAgent):
        if not isinstance(schedule, Phases) or not in_batches(world):
            raise TypeError("a batch agent needs schedule.kind phases and a problem that can be pulled in batches")
        from coband.simulator.core.hosts.phases import PhaseHost, PhaseTiming

        pace = PhaseTiming(schedule.pull_time * factor, compute, schedule.limit, slow_period)
        return PhaseHost(*parts, world=world, pace=pace, progress=around.progress)
    after_turn = around.think if isinstance(schedule, Renewal) else None
    late = setup.plan.late_rewards
    looks = setup.plan.cohorts and not late and type(agent).look_ahead is not Agent.look_ahead
    rest: dict[str, Any] = {
        "world": world,
        "compute": compute,
        "progress": around.progress,
        "after_turn": after_turn,
        "upcoming": getattr(world, "upcoming", None) if looks else None,
    }
    if not late:
        return AgentHost(*parts, **rest)
    from coband.simulator.core.hosts.late_rewards import LateRewardsHost

    delay = setup.plan.agents.reward_delay
    assert delay is not None
    stream = setup.streams("compute", agent.context.index, "reward_delay")
    return LateRewardsHost(*parts, **rest, delay=Draws(delay, stream))


def _draws(
    setup: Setup,
    distribution: BaseDistribution,
    index: int,
    purpose: str,
    factor: float,
    slow_period: SlowPeriod | None = None,
) -> Draws | None:
    if is_zero(distribution):
        return None
    parts = (distribution, setup.streams("compute", index, purpose), factor)
    return Draws(*parts) if slow_period is None else SlowPeriodDraws(slow_period, *parts)
