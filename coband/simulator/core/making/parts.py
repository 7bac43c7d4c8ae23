"""Making the parts of a run other than nodes and hosts: accounts, network and turns.

Parts that few plans have are imported when they are made.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from coband.simulator.core.algorithm import Algorithm
from coband.simulator.core.clock.clock import Clock
from coband.simulator.core.clock.schedule import Recorded, Rounds
from coband.simulator.core.hosts.absence import Absent
from coband.simulator.core.hosts.cohort import Cohort
from coband.simulator.core.hosts.turns import Turns
from coband.simulator.core.making.nodes import Setup
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

if TYPE_CHECKING:
    from coband.simulator.core.hosts.batteries import Batteries
    from coband.simulator.core.wire.noising import Noising
    from coband.simulator.core.wire.privacy import Privacy
    from coband.simulator.core.wire.wire import Watch, Wire


def make_run_context(setup: Setup, sink: tr.Sink | None, last: Callable[[], float]) -> RunContext:
    """The clock and empty accounts.

    Args:
        sink: where trace batches go, if the plan keeps a trace.
        last: when the last thing has happened so far, which batteries ask.
    """
    plan, network, clock = setup.plan, setup.plan.network, Clock()
    down = Absent(clock, plan.agents.count, setup.gone) if plan.agents.intermittent else Down(setup.gone)
    audit = Audit(network.transport == "reliable", down)
    ledger = Ledger(plan.agents.count, network.scalar_bits, network.header_bits)
    trace = Trace(sink if plan.trace != tr.OFF else None)
    return RunContext(clock, trace, ledger, audit, down, _batteries(setup, clock, last))


def _batteries(setup: Setup, clock: Clock, last: Callable[[], float]) -> Batteries | None:
    energy, count = setup.plan.agents.energy, setup.plan.agents.count
    if energy is None:
        return None
    from coband.simulator.core.hosts.batteries import Batteries

    heals = math.inf if setup.plan.network.heals is None else setup.plan.network.heals
    return Batteries(energy, count, setup.streams, clock, setup.plan.stays, heals, last)


def make_progress(setup: Setup, run: RunContext, on_pull: Callable[[int], None] | None) -> Progress:
    """What takes note of pulls."""
    realised, full = getattr(setup.world, "realised", False), setup.plan.trace == tr.FULL
    spend = None if run.energy is None else run.energy.turns
    return Progress(run.ledger, setup.plan.schedule.duration, on_pull, full, realised, spend)


def make_transport(setup: Setup, run: RunContext, router: Router) -> Transport:
    """What carries messages over links."""
    plan = setup.plan
    reliable, full = plan.network.transport == "reliable", plan.trace == tr.FULL
    describe: Describe | None = partial(_describe, full) if plan.wired or full else None
    parts = (run, Network(plan.network, setup.streams), router, describe, reliable, plan.withholds)
    if not (reliable and plan.faulty):
        return Transport(*parts)
    from coband.simulator.core.network.reliable import ReliableTransport

    return ReliableTransport(*parts)


def veiled(setup: Setup, algorithm: Algorithm, clock: Clock) -> tuple[Setup, Noising | None]:
    """The setup with the world as agents meet it, lied about or clipped, and the noise of the run, if there is any."""
    plan, world, privacy = setup.plan, setup.world, setup.plan.messages.privacy
    count = plan.agents.count
    expect, turns = getattr(world, "expect", None), plan.schedule.total_turns(count)
    if expect is not None and turns is not None:
        expect(-(-turns // count))
    if plan.poisoned:
        from coband.simulator.core.wire.worlds import PoisonedWorld

        world = PoisonedWorld(world, plan.adversaries, count, setup.streams, lambda: clock.now)
    if privacy is None:
        return replace(setup, world=world), None
    from coband.simulator.core.wire.worlds import PrivateWorld

    noising = _noising(setup, privacy, algorithm, clock)
    private = PrivateWorld(world, privacy, noising)
    noising.promise()
    return replace(setup, world=private), noising


def _noising(setup: Setup, privacy: Privacy, algorithm: Algorithm, clock: Clock) -> Noising:
    from coband.simulator.core.wire.noising import Noising

    plan = setup.plan
    count, schedule = plan.agents.count, plan.schedule
    total, least = schedule.total_turns(count), schedule.turns_per_agent(count, setup.streams)
    most = None if total is None else total - (count - 1) * (least or 0)
    on_graph = setup.graph is not None
    return Noising(privacy, algorithm, setup.streams, count, (most, total), on_graph, lambda: clock.now)


def make_wire(setup: Setup, clock: Clock, noising: Noising | None, watch: Watch | None = None) -> Wire | None:
    """What is done to messages before they are sent; None: nothing."""
    plan, count = setup.plan, setup.plan.agents.count
    if not plan.wired:
        return None
    from coband.simulator.core.wire.adversaries import Liars
    from coband.simulator.core.wire.wire import Wire

    liars = Liars(plan.adversaries, count, setup.streams, lambda: clock.now) if plan.adversaries else None
    total = plan.schedule.total_turns(count)
    world, own = setup.world, count if getattr(setup.world, "steady_arms", False) else 0
    differing = 1 if world.fixed_arms else own  # agents whose arms may be others, of those that stay
    arms = max((len(world.arms(agent, 1)) for agent in range(differing)), default=None)
    limits = {"agents": count, "arms": arms, "turns": total, "pulls": total}
    return Wire(
        config=plan.messages,
        limits=limits,
        scalar_bits=plan.network.scalar_bits,
        streams=setup.streams,
        agents=count,
        liars=liars,
        graph=setup.graph,
        defence=plan.server.aggregate,
        noising=noising,
        gone=setup.gone,
        watch=watch,
    )


def _describe(full: bool, message: Message) -> str | None:
    """What the wire has done to a message, and if ``full`` its payload, as JSON for the trace."""
    done = what_was_done(message)
    if full:
        return json.dumps({name: _plain(getattr(message, name)) for name in message.payload_fields()} | done)
    return json.dumps(done) if done else None


def make_local(setup: Setup, run: RunContext, transport: Transport, router: Router) -> Local | None:
    """The LOCAL service of a graph; None in a star."""
    if setup.graph is None:
        return None
    schedule, config = setup.plan.schedule, setup.plan.network.local
    interval = getattr(schedule, "interval", 1.0)
    trial = interval if config.trial is None else config.trial
    if setup.plan.walks_hops:
        from coband.simulator.core.network.local import HopByHop

        return HopByHop(setup.graph, trial, run, transport, router.hand_over)
    return Direct(setup.graph, trial, run, transport, router.hand_over, router.hear, router.accepts)


def make_turns(setup: Setup, run: RunContext, progress: Progress, local: Local | None) -> Turns:
    """The schedule at work."""
    plan = setup.plan
    floods = None if plan.wired else local
    cohort = Cohort(run, progress, floods, plan.share, plan.checks == "full") if _cohorts(setup) else None
    return Turns(plan.schedule, plan.agents.count, run.clock, setup.streams, progress, cohort, plan.stays)


def _cohorts(setup: Setup) -> bool:
    """Whether all turns of an instant can be taken by one event: nothing comes between them."""
    plan = setup.plan
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
