"""One run: connects what a plan describes, runs the clock, returns the result.

algorithm + agents + schedule + network + world + streams  ->  events  ->  ledger, trace, result
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from pydantic import BaseModel

from coband.simulator.core.algorithm import Algorithm
from coband.simulator.core.assembly import Assembly
from coband.simulator.core.audit import trace as tr
from coband.simulator.core.audit.invariants import InvariantViolation, check_pulls
from coband.simulator.core.churn import Churn
from coband.simulator.core.hosts.host import ClientHost
from coband.simulator.core.making.hosts import HostContext
from coband.simulator.core.network.direct import Direct
from coband.simulator.core.nodes.graphs import Graph
from coband.simulator.core.nodes.lazy_sequence import made
from coband.simulator.core.nodes.node import SERVER, Node
from coband.simulator.core.plan import Plan, settled
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.core.result import Ended, RunResult
from coband.simulator.core.router import Router
from coband.simulator.core.world import World
from coband.simulator.metrics import by_name

if TYPE_CHECKING:
    from coband.simulator.core.checks.inspection import Inspection
    from coband.simulator.core.checks.timing import Timing
    from coband.simulator.core.network.local import Local
    from coband.simulator.core.whatif.changes import WhatIf

__all__ = ["Engine", "Plan", "RunResult", "World"]


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
        whatif: what is changed beside the plan, and where draws are found; None in an ordinary run.

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
        whatif: WhatIf | None = None,
    ) -> None:
        population = plan.agents.population
        self._dropped = "" if population is None else population.dropped
        plan = settled(plan, streams)
        spec, self._late_rewards = plan.network.graph, plan.late_rewards
        if plan.altered:  # nodes that are told the same may have heard it differently
            plan = replace(plan, share=False)
        if plan.restarts:  # what nodes share would outlive them
            plan = replace(plan, share=False, cohorts=False)
        if plan.checks == "full":
            from coband.simulator.core.checks.draws import RecordedStreams  # like all checks, few runs need it

            streams = RecordedStreams(streams.seed, streams.replication)
        self.graph = graph if graph is not None or spec is None else spec.build(plan.agents.count, streams)
        assembly = Assembly(plan, world, streams, self.graph, whatif)
        timing = assembly.timing(config) if plan.checks == "full" else None
        self._run = assembly.run_context(sink, timing)
        self.clock, self.trace = self._run.clock, self._run.trace
        if (follow_clock := getattr(world, "follow_clock", None)) is not None:
            follow_clock(lambda: self.clock.now)
        self.world, self._noising = assembly.veil(algorithm, self.clock)
        self.ledger, self.audit = self._run.ledger, self._run.audit
        self.progress = assembly.progress(self._run, on_pull)
        self._declared, self._private = by_name(algorithm.metrics), algorithm.private
        self._router = Router(self.clock)
        self.transport = assembly.transport(self._run, self._router)
        local = assembly.local(self._run, self.transport, self._router)
        self._turns = assembly.turns(self._run, self.progress, local)
        self.agents, self.server = assembly.nodes(algorithm, config)
        self._inspection: Inspection | None = None
        self._due: int | None = None  # turns of the schedule, where it says how many
        if plan.checks == "full":
            assert timing is not None
            self._inspection = self._inspected(plan, local, assembly.twins(algorithm, config), timing)
            known = plan.schedule.duration is None and plan.members is None
            self._due = plan.schedule.total_turns(plan.agents.count) if known else None
        around = HostContext(self._run, self.progress, self._router.send, self._inspection, self._turns.think)
        self._hosts = assembly.hosts(self.agents, self.server, around)
        self.wire = wire = assembly.wire(self.clock, self._noising)
        self._dishonest = frozenset[int]() if wire is None else wire.dishonest
        self.transport.withholds = plan.withholds
        if wire is not None and self._inspection is not None:
            wire.watch = self._inspection
            self._inspection.as_sent = plan.distrusts
        self._router.connect(self._hosts, self.transport, local, wire)
        if self._run.energy is not None:
            self._run.energy.last = self._last
        if plan.intermittent:
            Churn(plan, self._run, self._hosts, self.server is not None, self.transport, local).start(streams)

    def _last(self) -> float:
        """When the last thing has happened so far."""
        times = self.progress.times
        return max(times[-1] if times else 0.0, self.progress.last_reward, self._router.last_delivery)

    def _inspected(self, plan: Plan, local: Local | None, twins: list[Node], timing: Timing) -> Inspection:
        """What looks at every message and turn, with ``checks: full``."""
        from coband.simulator.core.checks.full_audit import FullAudit
        from coband.simulator.core.checks.inspection import Inspection
        from coband.simulator.core.checks.receivers import Receivers
        from coband.simulator.core.checks.truth import Truth

        assert isinstance(self.audit, FullAudit)
        once = plan.network.transport == "reliable" or self.graph is not None or not plan.network.duplicating
        receivers = Receivers(
            plan.agents.count, self.graph, once, self._router.accepts, None if plan.members is None else self._run.there
        )
        direct = self.graph if isinstance(local, Direct) else None
        self.audit.bits_of = lambda message: self.ledger.bits_of(message) + self.ledger.header_bits
        parts = (self.audit, self.progress, self.agents, self.server, twins, receivers, direct)
        inspection = Inspection(*parts, self.clock, timing, Truth(self.world))
        inspection.energy, inspection.restarts, inspection.there = self._run.energy, self._run.restarts, self._run.there
        return inspection

    def run(self) -> RunResult:
        """Run until every turn is taken and every message has arrived.

        Raises:
            InvariantViolation: with the causal chain of the event that broke an invariant.
        """
        try:
            self._turns.start(self._hosts)
            self.clock.run()
            self._check_end()
            result = self._ended().result()
            if self._dropped:
                warnings = (*result.warnings, f"agents.population: {self._dropped}")
                result = replace(result, warnings=warnings)
            if self._inspection is not None:
                self._inspection.summed_up(result, self._due)
                result = replace(result, warnings=(*result.warnings, *self._inspection.unchecked))
        except InvariantViolation as violation:
            self.trace.record(self.clock.now, tr.VIOLATION, SERVER, cause=violation.cause)
            chain = [_in_words(row) for row in self.trace.chain(violation.cause)]
            raise InvariantViolation("\n".join([str(violation), *chain]), violation.cause) from None
        finally:
            self.trace.flush()
        return result

    def _check_end(self) -> None:
        self.transport.close()
        self.audit.at_end()
        if self._inspection is not None:
            self.trace.flush()
            self._inspection.at_end(self.ledger, float(np.sum(self.progress.regrets)), self._run.down)
        unshared = sum(agent.unshared for agent in made(self.agents))
        applied = self.server.applied if self.server is not None else 0
        forgotten = 0 if self._run.restarts is None else self._run.restarts.forgotten
        pulls = self.progress.made - self.progress.outstanding - forgotten
        check_pulls(pulls, unshared, applied, self.audit.lost_for_good)

    def _ended(self) -> Ended:
        clients = [host for host in made(self._hosts) if isinstance(host, ClientHost)]
        clients = [host for host in clients if not host.node.done and self._run.there(host.address)]
        return Ended(
            self._run,
            self.progress,
            self.world,
            self.graph,
            self.agents,
            self.server,
            self._router.last_delivery,
            stalled=sum(map(self._turns.never_taken, clients)),
            declared=self._declared,
            dishonest=self._dishonest,
            noising=self._noising,
            private=self._private,
            late_rewards=self._late_rewards,
        )


def _in_words(row: tr.Row) -> str:
    """One link of a causal chain."""
    node = {SERVER: "server", tr.EVERYONE: "several agents"}.get(row.node, f"agent {row.node}")
    return f"  <- event {row.seq} at time {row.time:g}: {tr.EVENTS[row.event]} at {node}"
