"""Making the parts of a run: accounts, network, turns, nodes and the hosts around them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from coband.simulator.arms import ArmSet
from coband.simulator.core.algorithm import Algorithm
from coband.simulator.core.audit import trace as tr
from coband.simulator.core.audit.invariants import Audit
from coband.simulator.core.audit.ledger import Ledger
from coband.simulator.core.audit.progress import Progress
from coband.simulator.core.audit.trace import Trace
from coband.simulator.core.clock.clock import Clock
from coband.simulator.core.clock.schedule import Phases, Recorded, Renewal, Rounds
from coband.simulator.core.hosts.absence import Absent
from coband.simulator.core.hosts.agent_host import AgentHost
from coband.simulator.core.hosts.cohort import Cohort, chooses_together
from coband.simulator.core.hosts.host import ClientHost, Host, Inspector, Send
from coband.simulator.core.hosts.members import Roll
from coband.simulator.core.hosts.speed import SlowPeriod, SlowPeriodDraws
from coband.simulator.core.hosts.turns import Turns
from coband.simulator.core.network.direct import Direct
from coband.simulator.core.network.local import Local
from coband.simulator.core.network.network import Network
from coband.simulator.core.network.transport import Describe, Transport
from coband.simulator.core.nodes.context import DeclaredContext, NodeContext
from coband.simulator.core.nodes.decisions import ClosestDecision
from coband.simulator.core.nodes.graphs import Graph
from coband.simulator.core.nodes.lazy_sequence import LazySequence
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import Agent, BatchAgent, Client, Node, Server, UnsupportedScenario
from coband.simulator.core.nodes.outbox import SERVER, Address
from coband.simulator.core.nodes.sharing import Sharing
from coband.simulator.core.plan import Plan
from coband.simulator.core.randomness.distributions import BaseDistribution, Draws, is_zero
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.core.router import Router
from coband.simulator.core.run_context import Down, RunContext
from coband.simulator.core.world import BatchWorld, World

if TYPE_CHECKING:
    from coband.simulator.core.checks.timing import Timing
    from coband.simulator.core.hosts.batteries import Batteries
    from coband.simulator.core.whatif.changes import WhatIf
    from coband.simulator.core.wire.noising import Noising
    from coband.simulator.core.wire.privacy import Privacy
    from coband.simulator.core.wire.wire import Wire


@dataclass(frozen=True)
class HostContext:
    """What hosts are connected to.

    Attributes:
        send: puts a node's message on the network.
        check: looks at every message and turn; None for no checks.
        think: renewal schedules: called with the agent's index when one of its turns has ended.
    """

    run: RunContext
    progress: Progress
    send: Send
    check: Inspector | None
    think: Callable[[int], None]


class Assembly:
    """Builds what a plan describes; parts that few plans have are imported when they are built."""

    def __init__(
        self, plan: Plan, world: World, streams: Streams, graph: Graph | None, whatif: WhatIf | None = None
    ) -> None:
        self._plan, self._world, self._streams, self._graph, self._whatif = plan, world, streams, graph, whatif
        self._roll: Roll | None = None
        expect, turns = getattr(world, "expect", None), plan.schedule.total_turns(plan.agents.count)
        if expect is not None and turns is not None:
            expect(-(-turns // plan.agents.count))

    def run_context(self, sink: tr.Sink | None, timing: Timing | None = None) -> RunContext:
        """The clock and empty accounts.

        Args:
            sink: where trace batches go, if the plan keeps a trace.
            timing: what looks at them first, with ``checks: full``.
        """
        plan, network, clock = self._plan, self._plan.network, Clock()
        down = Absent(clock, plan.agents.count) if plan.agents.intermittent else Down()
        audit = self._audit(network.transport == "reliable", clock, down)
        ledger = Ledger(plan.agents.count, network.scalar_bits, network.header_bits)
        kept = sink if plan.trace != tr.OFF else None
        trace = Trace(kept if timing is None else timing.watching(kept))
        self._roll = None if plan.members is None else Roll(plan.members, clock)
        return RunContext(clock, trace, ledger, audit, down, self._batteries(clock), plan.members)

    def _batteries(self, clock: Clock) -> Batteries | None:
        energy, count = self._plan.agents.energy, self._plan.agents.count
        if energy is None:
            return None
        from coband.simulator.core.hosts.batteries import Batteries

        return Batteries(energy, count, self._streams, clock, self._plan.members)

    def timing(self, config: BaseModel) -> Timing:
        """What looks at the times of events, with ``checks: full``."""
        from coband.simulator.core.checks.timing import Timing

        fresh = Streams(self._streams.seed, self._streams.replication)
        return Timing(self._plan, fresh, getattr(getattr(config, "wait", None), "quorum", None), self._whatif is None)

    def _audit(self, reliable: bool, clock: Clock, down: set[Address]) -> Audit:
        if self._plan.checks != "full":
            return Audit(reliable, down)
        from coband.simulator.core.checks.inspection import FullAudit

        return FullAudit(reliable, clock, down)

    def progress(self, run: RunContext, on_pull: Callable[[int], None] | None) -> Progress:
        """What takes note of pulls."""
        realised, full = getattr(self._world, "realised", False), self._plan.trace == tr.FULL
        spend = None if run.energy is None else run.energy.turns
        return Progress(run.ledger, self._plan.schedule.duration, on_pull, full, realised, spend)

    def transport(self, run: RunContext, router: Router) -> Transport:
        """What carries messages over links."""
        plan = self._plan
        reliable = plan.network.transport == "reliable"
        mending = reliable and plan.faulty
        if self._whatif is not None:
            from coband.simulator.core.whatif.transports import Datagrams, InOrder, Mending

            kind = Mending if mending else InOrder if reliable else Datagrams
            return kind(run, plan.network, self._streams, router, self._describes, self._whatif)
        network = Network(plan.network, self._streams)
        if plan.checks == "full":
            self._record_draws(run.audit, network, mending)
        if not mending:
            return Transport(run, network, router, self._describes, reliable)
        from coband.simulator.core.network.reliable import ReliableTransport

        return ReliableTransport(run, network, router, self._describes, reliable)

    def _record_draws(self, audit: Audit, network: Network, mending: bool) -> None:
        """Let a full audit know what the links draw."""
        from coband.simulator.core.checks.draws import LinkDraws, RecordedStreams
        from coband.simulator.core.checks.inspection import FullAudit

        if isinstance(audit, FullAudit) and isinstance(self._streams, RecordedStreams):
            audit.acknowledges = mending
            audit.draws = LinkDraws(self._streams, network.config)

    def veil(self, algorithm: Algorithm, clock: Clock) -> tuple[World, Noising | None]:
        """The world as agents meet it, lied about or clipped, and the noise of the run; None: there is none."""
        plan, privacy = self._plan, self._plan.messages.privacy
        if plan.poisoned:
            from coband.simulator.core.wire.poisoning import PoisonedWorld  # few runs need it

            count = plan.agents.count
            self._world = PoisonedWorld(self._world, plan.adversaries, count, self._streams, lambda: clock.now)
        if privacy is None:
            return self._world, None
        from coband.simulator.core.wire.private_world import PrivateWorld

        noising = self._noising(privacy, algorithm, clock)
        self._world = PrivateWorld(self._world, privacy, noising)
        return self._world, noising

    def _noising(self, privacy: Privacy, algorithm: Algorithm, clock: Clock) -> Noising:
        from coband.simulator.core.wire.noising import Noising

        plan = self._plan
        count, schedule = plan.agents.count, plan.schedule
        total, least = schedule.total_turns(count), schedule.turns_per_agent(count, self._streams)
        most = None if total is None else total - (count - 1) * (least or 0)
        on_graph = self._graph is not None
        return Noising(privacy, algorithm, self._streams, count, (most, total), on_graph, lambda: clock.now)

    def wire(self, clock: Clock, noising: Noising | None) -> Wire | None:
        """What is done to messages before they are sent; None: nothing."""
        plan, count = self._plan, self._plan.agents.count
        if not plan.wired:
            return None
        from coband.simulator.core.wire.adversaries import Liars
        from coband.simulator.core.wire.wire import Wire

        liars = Liars(plan.adversaries, count, self._streams, lambda: clock.now) if plan.adversaries else None
        total = plan.schedule.total_turns(count)
        arms = len(self._world.arms(0, 1)) if self._world.fixed_arms else None
        limits = {"agents": count, "arms": arms, "turns": total, "pulls": total}
        return Wire(
            plan.messages,
            limits,
            plan.network.scalar_bits,
            self._streams,
            count,
            liars,
            self._graph,
            plan.server.aggregate,
            noising,
        )

    @property
    def _describes(self) -> Describe | None:
        """What describes messages for the trace; None where there is nothing to say of any."""
        return self._describe if self._plan.wired or self._plan.trace == tr.FULL else None

    def _describe(self, message: Message) -> str | None:
        """What the wire has done to a message, and at level ``full`` its payload, as JSON for the trace."""
        if message.passage is None and self._plan.trace != tr.FULL:
            return None
        done = what_was_done(message)
        if self._plan.trace != tr.FULL:
            return json.dumps(done)
        return json.dumps({name: _plain(getattr(message, name)) for name in message.payload_fields()} | done)

    def local(self, run: RunContext, transport: Transport, router: Router) -> Local | None:
        """The LOCAL service of a graph; None in a star."""
        if self._graph is None:
            return None
        schedule, config = self._plan.schedule, self._plan.network.local
        interval = getattr(schedule, "interval", 1.0)
        trial = interval if config.trial is None else config.trial
        if self._plan.walks_hops:
            from coband.simulator.core.network.hop_by_hop import HopByHop

            return HopByHop(self._graph, trial, run, transport, router.hand_over)
        return Direct(self._graph, trial, run, transport, router.hand_over, router.hear, router.accepts)

    def turns(self, algorithm: Algorithm, run: RunContext, progress: Progress, local: Local | None) -> Turns:
        """The schedule at work; in rounds all agents act on what they know, so turns can be prepared together."""
        plan = self._plan
        floods = None if plan.wired else local
        cohort = Cohort(run, progress, floods, plan.share, plan.checks == "full") if self._cohorts else None
        agent = algorithm.agent
        together = cohort is not None and plan.share and issubclass(agent, Agent) and chooses_together(agent)
        prepares = issubclass(agent, Agent) and agent.prepare_together is not Agent.prepare_together
        prepares = prepares and is_zero(plan.agents.compute) and not together
        preparing = prepares and plan.share and isinstance(plan.schedule, Rounds) and not plan.late_rewards
        parts = (plan.agents.count, run.clock, self._streams, progress, preparing, cohort, plan.members)
        return Turns(plan.schedule, *parts)

    @property
    def _cohorts(self) -> bool:
        """Whether all turns of an instant can be taken by one event: nothing comes between them."""
        plan = self._plan
        at_once = is_zero(plan.agents.compute) and not (plan.intermittent or plan.late_rewards)
        at_once = at_once and (self._whatif is None or not self._whatif.delays_turns)
        return plan.cohorts and at_once and plan.trace != tr.FULL and isinstance(plan.schedule, Rounds | Recorded)

    def nodes(
        self, algorithm: Algorithm, config: BaseModel, made: int | None = None, share: bool | None = None
    ) -> tuple[Sequence[Client], Server | None]:
        """The agents and the server, if the algorithm has one.

        Args:
            algorithm: what they run.
            config: its parameters.
            made: how many agents are made, the first ones, to see whether it can be done; None for all.
            share: whether they share work; None: as the plan says.

        Raises:
            UnsupportedScenario: the algorithm cannot do what is asked of it.
        """
        if algorithm.needs.fixed_arms and not self._world.fixed_arms:
            raise UnsupportedScenario(
                f"{algorithm.name} needs one arm set for all turns of all agents; this problem offers fresh arms each "
                "turn; give problem.arms kind: pool"
            )
        if algorithm.needs.steady_arms and not getattr(self._world, "steady_arms", False):
            raise UnsupportedScenario(
                f"{algorithm.name} needs arms that stay the same at all turns of an agent; give problem.kind own_arms "
                "or fixed_domain, or problem.arms kind: pool without count"
            )
        self._check_exact(algorithm)
        self._check_columns(config)
        sharing = Sharing(self._plan.share if share is None else share)
        count, world = self._plan.agents.count, self._world
        domain = ArmSet.fixed(world.arms(0, 1)) if world.fixed_arms else None
        least = cache(lambda: self._plan.schedule.turns_per_agent(count, self._streams))
        count_turns = least if self._plan.members is None else lambda: None
        knowledge = world.knowledge() if isinstance(world, BatchWorld) else None
        contexts, norms = getattr(world, "contexts", None), getattr(world, "norms", None)
        closest, policy, delays = ClosestDecision(count), self._plan.network.retry_policy, self._plan.delays
        gives_up = self._plan.faulty or self._whatif is not None
        open_ties = self._streams.ties if self._plan.ties == "random" else None
        total_turns = self._plan.schedule.total_turns(count)
        told = partial(DeclaredContext, declared=algorithm.facts)
        make = told if self._plan.checks == "full" else NodeContext

        def context_of(index: int) -> NodeContext:
            network_context = None if contexts is None or index == SERVER else contexts[index]
            return make(
                index,
                count,
                world.dimension,
                config,
                sharing,
                self._streams.coin,
                open_ties,
                delays,
                domain,
                count_turns,
                self._graph,
                network_context,
                knowledge,
                None if norms is None or index == SERVER else float(norms[index]),
                total_turns,
                closest,
                policy,
                gives_up,
                self._roll,
            )

        def agent(index: int) -> Client:
            return algorithm.agent(context_of(index))

        later = self._later and made is None
        agents: Sequence[Client] = LazySequence(count, agent) if later else list(map(agent, range(count)[:made]))
        if algorithm.server_class is None:
            return agents, None
        server, defence = algorithm.server_class(context_of(SERVER)), self._plan.server.aggregate
        if not defence.sums:
            from coband.simulator.core.wire.defences import Defended

            server.defence = Defended(defence)
        return agents, server

    @property
    def _later(self) -> bool:
        """Whether agents are made when they first act or are sent something; then nobody looks at them before."""
        plan = self._plan
        plain = self._graph is None and self._whatif is None and not plan.intermittent and plan.checks != "full"
        return plain and not isinstance(plan.schedule, Phases | Renewal | Rounds)

    def twins(self, algorithm: Algorithm, config: BaseModel) -> list[Node]:
        """The nodes once more, by address, the server last, each with all of its work to itself."""
        agents, server = self.nodes(algorithm, config, share=False)
        return [*agents, *([] if server is None else [server])]

    def _check_exact(self, algorithm: Algorithm) -> None:
        """Refuse encodings that change what nodes look up, or from what all of them conclude the same."""
        encoding, exact = self._plan.messages.encoding, algorithm.needs.exact
        for kind in dict.fromkeys(size.message for size in algorithm.messages) if exact else ():
            for name in kind.payload_fields():
                if {kind.__name__, kind.meaning(name)} & set(exact) and not encoding.of(kind, name).exact:
                    raise UnsupportedScenario(
                        f"messages.encoding: nodes of {algorithm.name} look arms up by {kind.__name__}.{name}, or must "
                        "conclude the same from it, so that it must arrive as it was sent; give it float64 in "
                        "messages.encoding.kinds"
                    )

    def _check_columns(self, config: BaseModel) -> None:
        """Refuse kernels that are restricted to coordinates which there are not."""
        network, contexts = getattr(config, "network_kernel", None), getattr(self._world, "contexts", None)
        held = [
            ("kernel", getattr(config, "kernel", None), "arms have", self._world.dimension),
            ("network_kernel.kernel", getattr(network, "kernel", None), "arms have", self._world.dimension),
        ]
        if contexts is not None:
            held.append(("network_kernel", network, "network contexts have", contexts.shape[1]))
        for place, kernel, whose, coordinates in held:
            largest = getattr(kernel, "largest_column", -1)
            if largest >= coordinates:
                raise UnsupportedScenario(
                    f"{place} names column {largest}, but {whose} {coordinates} coordinates, numbered from 0; name "
                    "others, or leave columns out for all of them"
                )

    def hosts(self, agents: Sequence[Client], server: Server | None, around: HostContext) -> Sequence[Host]:
        """A host around every agent, by index, and around the server last."""
        run = around.run
        slowness = self._plan.agents.slowness(self._streams)
        slow_periods = self._plan.agents.episodes(self._streams, around.run.clock)

        def host(index: int) -> Host:
            if index == len(agents):
                assert server is not None
                handling = self._draws(self._plan.server.handling, SERVER + len(agents) + 1, "handling", 1.0)
                return Host(server, run, handling, around.send, around.check)
            agent, factor, slow_period = agents[index], slowness[index], slow_periods[index]
            config = self._plan.agents
            times = {"handling": config.handling, "compute": config.compute}
            if self._whatif is not None:
                changed = self._whatif.of_agent(index)
                times = {purpose: getattr(changed, purpose) or usual for purpose, usual in times.items()}
                if changed.speed is not None:
                    factor, slow_period = 1.0 / changed.speed, None
            handling, compute = (
                self._draws(time.of(index), index, purpose, factor, slow_period) for purpose, time in times.items()
            )
            parts = (agent, run, handling, around.send, around.check)
            return self._client_host(agent, factor, slow_period, compute, parts, around)

        count = len(agents) + (server is not None)
        return LazySequence(count, host) if self._later else list(map(host, range(count)))

    def _client_host(
        self,
        agent: Client,
        factor: float,
        slow_period: SlowPeriod | None,
        compute: Draws | None,
        parts: tuple[Any, ...],
        around: HostContext,
    ) -> ClientHost:
        schedule, world = self._plan.schedule, self._world
        assert isinstance(agent, Agent | BatchAgent)
        if isinstance(agent, BatchAgent):
            if not isinstance(schedule, Phases) or not isinstance(world, BatchWorld):
                raise TypeError("a batch agent needs schedule.kind phases and a problem that can be pulled in batches")
            from coband.simulator.core.hosts.phases import PhaseHost, PhaseTiming

            pace = PhaseTiming(schedule.pull_time * factor, compute, schedule.limit, slow_period)
            return PhaseHost(*parts, world=world, pace=pace, progress=around.progress)
        after_turn = around.think if isinstance(schedule, Renewal) else None
        late = self._plan.late_rewards
        looks = self._plan.cohorts and not late and type(agent).look_ahead is not Agent.look_ahead
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

        delay = self._plan.agents.reward_delay
        assert delay is not None
        stream = self._streams("compute", agent.context.index, "reward_delay")
        return LateRewardsHost(*parts, **rest, delay=Draws(delay, stream))

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
        if self._whatif is not None and purpose == "handling":
            from coband.simulator.core.whatif.addresses import AddressedTimes

            return AddressedTimes(self._whatif.book, self._streams, index, distribution, factor, slow_period)
        parts = (distribution, self._streams("compute", index, purpose), factor)
        return Draws(*parts) if slow_period is None else SlowPeriodDraws(slow_period, *parts)


def what_was_done(message: Message) -> dict[str, Any]:
    """What the wire has done to a message, for the detail of its `send`."""
    return {} if message.passage is None else {"wire": message.passage.done}


def _plain(value: Any) -> Any:
    """A payload value as JSON can hold it."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if hasattr(value, "__dataclass_fields__"):
        return {item.name: _plain(getattr(value, item.name)) for item in fields(value)}
    return value
