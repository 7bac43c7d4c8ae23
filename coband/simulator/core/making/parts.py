"""Making the parts of a run: accounts, network and turns; nodes and the hosts around them are made by its bases."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from coband.simulator.core.algorithm import Algorithm
from coband.simulator.core.clock.clock import Clock
from coband.simulator.core.clock.schedule import Recorded, Rounds
from coband.simulator.core.hosts.absence import Absent
from coband.simulator.core.hosts.cohort import Cohort
from coband.simulator.core.hosts.turns import Turns
from coband.simulator.core.making.hosts import HostAssembly
from coband.simulator.core.network.direct import Direct
from coband.simulator.core.network.local import Local
from coband.simulator.core.network.network import Network
from coband.simulator.core.network.transport import Describe, Transport
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.randomness.distributions import is_zero
from coband.simulator.core.records import trace as tr
from coband.simulator.core.records.invariants import Audit
from coband.simulator.core.records.ledger import Ledger
from coband.simulator.core.records.progress import Progress
from coband.simulator.core.records.trace import Trace
from coband.simulator.core.router import Router
from coband.simulator.core.run_context import Down, RunContext
from coband.simulator.core.world import World

if TYPE_CHECKING:
    from coband.simulator.core.hosts.batteries import Batteries
    from coband.simulator.core.wire.noising import Noising
    from coband.simulator.core.wire.privacy import Privacy
    from coband.simulator.core.wire.wire import Watch, Wire


class Assembly(HostAssembly):
    """Builds what a plan describes; parts that few plans have are imported when they are built."""

    def run_context(self, sink: tr.Sink | None, last: Callable[[], float]) -> RunContext:
        """The clock and empty accounts.

        Args:
            sink: where trace batches go, if the plan keeps a trace.
            last: when the last thing has happened so far, which batteries ask.
        """
        plan, network, clock = self._plan, self._plan.network, Clock()
        down = Absent(clock, plan.agents.count, self.gone) if plan.agents.intermittent else Down(self.gone)
        audit = Audit(network.transport == "reliable", down)
        ledger = Ledger(plan.agents.count, network.scalar_bits, network.header_bits)
        trace = Trace(sink if plan.trace != tr.OFF else None)
        return RunContext(clock, trace, ledger, audit, down, self._batteries(clock, last))

    def _batteries(self, clock: Clock, last: Callable[[], float]) -> Batteries | None:
        energy, count = self._plan.agents.energy, self._plan.agents.count
        if energy is None:
            return None
        from coband.simulator.core.hosts.batteries import Batteries

        heals = math.inf if self._plan.network.heals is None else self._plan.network.heals
        return Batteries(energy, count, self._streams, clock, self._plan.stays, heals, last)

    def progress(self, run: RunContext, on_pull: Callable[[int], None] | None) -> Progress:
        """What takes note of pulls."""
        realised, full = getattr(self._world, "realised", False), self._plan.trace == tr.FULL
        spend = None if run.energy is None else run.energy.turns
        return Progress(run.ledger, self._plan.schedule.duration, on_pull, full, realised, spend)

    def transport(self, run: RunContext, router: Router) -> Transport:
        """What carries messages over links."""
        plan = self._plan
        reliable = plan.network.transport == "reliable"
        parts = (run, Network(plan.network, self._streams), router, self._describes, reliable, plan.withholds)
        if not (reliable and plan.faulty):
            return Transport(*parts)
        from coband.simulator.core.network.reliable import ReliableTransport

        return ReliableTransport(*parts)

    def veil(self, algorithm: Algorithm, clock: Clock) -> tuple[World, Noising | None]:
        """The world as agents meet it, lied about or clipped, and the noise of the run; None: there is none."""
        plan, privacy = self._plan, self._plan.messages.privacy
        if plan.poisoned:
            from coband.simulator.core.wire.worlds import PoisonedWorld  # few runs need it

            count = plan.agents.count
            self._world = PoisonedWorld(self._world, plan.adversaries, count, self._streams, lambda: clock.now)
        if privacy is None:
            return self._world, None
        from coband.simulator.core.wire.worlds import PrivateWorld

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

    def wire(self, clock: Clock, noising: Noising | None, watch: Watch | None = None) -> Wire | None:
        """What is done to messages before they are sent; None: nothing."""
        plan, count = self._plan, self._plan.agents.count
        if not plan.wired:
            return None
        from coband.simulator.core.wire.adversaries import Liars
        from coband.simulator.core.wire.wire import Wire

        liars = Liars(plan.adversaries, count, self._streams, lambda: clock.now) if plan.adversaries else None
        total = plan.schedule.total_turns(count)
        world, own = self._world, count if getattr(self._world, "steady_arms", False) else 0
        differing = 1 if world.fixed_arms else own  # agents whose arms may be others, of those that stay
        arms = max((len(world.arms(agent, 1)) for agent in range(differing)), default=None)
        limits = {"agents": count, "arms": arms, "turns": total, "pulls": total}
        return Wire(
            config=plan.messages,
            limits=limits,
            scalar_bits=plan.network.scalar_bits,
            streams=self._streams,
            agents=count,
            liars=liars,
            graph=self._graph,
            defence=plan.server.aggregate,
            noising=noising,
            gone=self.gone,
            watch=watch,
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
            from coband.simulator.core.network.local import HopByHop

            return HopByHop(self._graph, trial, run, transport, router.hand_over)
        return Direct(self._graph, trial, run, transport, router.hand_over, router.hear, router.accepts)

    def turns(self, run: RunContext, progress: Progress, local: Local | None) -> Turns:
        """The schedule at work."""
        plan = self._plan
        floods = None if plan.wired else local
        cohort = Cohort(run, progress, floods, plan.share, plan.checks == "full") if self._cohorts else None
        return Turns(plan.schedule, plan.agents.count, run.clock, self._streams, progress, cohort, plan.stays)

    @property
    def _cohorts(self) -> bool:
        """Whether all turns of an instant can be taken by one event: nothing comes between them."""
        plan = self._plan
        at_once = is_zero(plan.agents.compute) and not (plan.intermittent or plan.late_rewards)
        return plan.cohorts and at_once and plan.trace != tr.FULL and isinstance(plan.schedule, Rounds | Recorded)


def what_was_done(message: Message) -> dict[str, Any]:
    """What the wire has done to a message, for the detail of its `send`."""
    return {} if message.passage is None else {"wire": message.passage.done}


def _plain(value: Any) -> Any:
    """A payload value as JSON can hold it."""
    if isinstance(value, complex) or getattr(getattr(value, "dtype", None), "kind", "") == "c":
        return {"real": _plain(value.real), "imag": _plain(value.imag)}
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if hasattr(value, "__dataclass_fields__"):
        return {item.name: _plain(getattr(value, item.name)) for item in fields(value)}
    return value
