"""One run: connects what a plan describes, runs the clock, returns the result.

algorithm + agents + schedule + network + world + streams  ->  events  ->  ledger, trace, result
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import BaseModel

from coband.simulator.core.algorithm import Algorithm
from coband.simulator.core.churn import Churn
from coband.simulator.core.classes import Parameters
from coband.simulator.core.hosts.host import ClientHost
from coband.simulator.core.making import parts
from coband.simulator.core.making.hosts import HostContext, make_hosts
from coband.simulator.core.making.nodes import Setup, make_nodes, make_twins
from coband.simulator.core.nodes.graphs import Graph
from coband.simulator.core.nodes.lazy_sequence import made
from coband.simulator.core.nodes.node import SERVER
from coband.simulator.core.plan import Plan, settled
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.core.records import trace as tr
from coband.simulator.core.records.invariants import InvariantViolation, check_pulls
from coband.simulator.core.records.ledger import UP
from coband.simulator.core.result import Ended, RunResult
from coband.simulator.core.router import Router
from coband.simulator.core.world import World
from coband.simulator.metrics import by_name

if TYPE_CHECKING:
    from coband.simulator.core.twins.twins import Twins

__all__ = ["Engine", "Plan", "RunResult", "World"]


NO_ACCOUNT = (
    "no message says by `pulls=` how many pulls are in it, so nobody checks that each pull reaches the server once"
)


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
        population, self._by_class = plan.agents.population, isinstance(config, Parameters)
        self._dropped = "" if population is None else population.dropped
        plan = settled(plan, streams)
        spec, self._late_rewards, self._names = plan.network.graph, plan.late_rewards, plan.names
        if plan.altered:  # nodes that are told the same may have heard it differently
            plan = replace(plan, share=False)
        self.graph = graph if graph is not None or spec is None else spec.build(plan.agents.count, streams)
        setup = Setup(plan, world, streams, self.graph)
        self._run = parts.make_run_context(setup, sink, self._last)
        self.clock, self.trace = self._run.clock, self._run.trace
        self.ledger, self.audit = self._run.ledger, self._run.audit
        if (follow_clock := getattr(world, "follow_clock", None)) is not None:
            follow_clock(lambda: self.clock.now)
        setup, self._noising = parts.veiled(setup, algorithm, self.clock)
        self.world = setup.world
        self.progress = parts.make_progress(setup, self._run, on_pull)
        self._declared, self._private = by_name(algorithm.metrics), algorithm.private
        self._router = Router(self.clock)
        self.transport = parts.make_transport(setup, self._run, self._router)
        local = parts.make_local(setup, self._run, self.transport, self._router)
        self._turns = parts.make_turns(setup, self._run, self.progress, local)
        self.agents, self.server = make_nodes(setup, algorithm, config)
        self._twins: Twins | None = make_twins(setup, algorithm, config) if plan.checks == "full" else None
        around = HostContext(self._run, self.progress, self._router.send, self._twins, self._turns.think)
        self._hosts = make_hosts(setup, self.agents, self.server, around)
        self.wire = wire = parts.make_wire(setup, self.clock, self._noising, self._twins)
        self._dishonest = frozenset[int]() if wire is None else wire.dishonest
        self._router.connect(self._hosts, self.transport, local, wire)
        if plan.intermittent:
            Churn(plan, self._run, self._hosts, self.server is not None, self.transport, local).start(streams)

    def _last(self) -> float:
        """When the last thing has happened so far."""
        times = self.progress.times
        return max(times[-1] if times else 0.0, self.progress.last_reward, self._router.last_delivery)

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
            said = [f"agents.population: {self._dropped}"] if self._dropped else []
            said += [NO_ACCOUNT] if self._by_class and self._says_no_pulls else []
            result = replace(result, warnings=(*result.warnings, *said)) if said else result
        except InvariantViolation as violation:
            self.trace.record(self.clock.now, tr.VIOLATION, SERVER, cause=violation.cause)
            chain = [_in_words(row) for row in self.trace.chain(violation.cause)]
            raise InvariantViolation("\n".join([str(violation), *chain]), violation.cause) from None
        finally:
            self.trace.flush()
        return result

    @property
    def _says_no_pulls(self) -> bool:
        """Whether agents have sent messages to a server, which has got all of them and taken in no pulls."""
        sent = self.ledger.total("messages", UP) > 0 and not self.audit.lost_for_good
        return sent and self.server is not None and not self.server.applied

    def _check_end(self) -> None:
        self.transport.close()
        self.audit.at_end()
        if self._twins is not None:
            self._twins.at_end([*self.agents, *([] if self.server is None else [self.server])])
        unshared = sum(agent.unshared for agent in made(self.agents))
        applied = self.server.applied if self.server is not None else 0
        check_pulls(self.progress.made - self.progress.outstanding, unshared, applied, self.audit.lost_for_good)

    def _ended(self) -> Ended:
        clients = [host for host in made(self._hosts) if isinstance(host, ClientHost)]
        return Ended(
            self._run,
            self.progress,
            self.world,
            self.graph,
            self.agents,
            self.server,
            self._router.last_delivery,
            stalled={host.address: self._turns.never_taken(host) for host in clients if not host.node.done},
            declared=self._declared,
            dishonest=self._dishonest,
            noising=self._noising,
            private=self._private,
            late_rewards=self._late_rewards,
            names=self._names,
        )


def _in_words(row: tr.Row) -> str:
    """One link of a causal chain."""
    node = {SERVER: "server", tr.EVERYONE: "several agents"}.get(row.node, f"agent {row.node}")
    return f"  <- event {row.seq} at time {row.time:g}: {tr.EVENTS[row.event]} at {node}"
