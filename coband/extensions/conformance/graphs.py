"""Runs of algorithms on a graph, without files."""

from __future__ import annotations

from typing import Any

from coband.extending import NetworkConfig, Streams, trace
from coband.extending import trace as tr
from coband.extensions.conformance import runs
from coband.extensions.conformance.demands import demand
from coband.extensions.conformance.runs import NO_DELAYS, Delays, Recorder, Run, Section, algorithm, plan_of

POOL = {"kind": "pool", "dimension": 3, "size": 6}


def graph_of(topology: Any, agents: int, seed: int) -> Any:
    """The graph of a replication."""
    return NetworkConfig.model_validate({"topology": topology}).graph.build(agents, Streams(seed))  # type: ignore[union-attr]


def world(problem: Section, seed: int, graph: Any) -> Any:
    """A fresh world."""
    return runs.drawn_from(problem, graph.nodes).build_on(graph.distances, Streams(seed), graph.nodes)


def run(
    name: str,
    config: Section,
    problem: Section,
    *,
    topology: Any = "ring",
    agents: int = 5,
    schedule: Section | None = None,
    seed: int = 0,
    network: Section | None = None,
    agent: Section | None = None,
    delays: Delays = NO_DELAYS,
    **plan: Any,
) -> Run:
    """Run a registered algorithm on a graph."""
    full = {
        "agents": {"count": agents, **(agent or {})},
        "schedule": schedule or {"kind": "rounds", "turns": 8},
        "network": {"topology": topology, **(network or {})},
        "checks": "full",
        **plan,
    }
    rows: list[trace.Row] = []
    entry, graph = algorithm(name), graph_of(topology, agents, seed)
    engine = Recorder(
        plan_of(full),
        entry,
        entry.config.model_validate(config),
        world(problem, seed, graph),
        Streams(seed),
        sink=trace.keep(rows),
        graph=graph,
        delays=delays,
    )
    result = engine.run()
    return Run(result, rows, list(engine.trace.names), engine)


def on_graph(name: str) -> bool:
    """Whether the algorithm needs a graph of agents."""
    return "star" not in algorithm(name).needs.topologies


def problem_of(name: str) -> Section:
    """A small problem with network contexts that a peer-to-peer algorithm can run on."""
    if (small := runs.problem_of(name))["kind"] == "k_armed":
        return small
    fixed = algorithm(name).needs.fixed_arms
    return {
        "kind": "network",
        "kernel": {"kind": "gaussian", "gamma": 1.0},
        "contexts": {"kind": "ball", "dimension": 2},
        "arms": POOL if fixed else {"kind": "ball", "dimension": 3, "count": 5},
    }


def run_anywhere(name: str, config: Section, *, agents: int = 3, **parts: Any) -> Run:
    """Run an algorithm with its server, or without one on a line of agents.

    On the line messages have a time to live of two hops, where they have one.
    """
    if not on_graph(name):
        return runs.run(name, config, agents=agents, **parts)
    hops = {"hops": 2} if "hops" in algorithm(name).config.model_fields else {}
    return run(name, {**hops, **config}, problem_of(name), topology="line", agents=agents, **parts)


def check_conservation(simulated: Run) -> None:
    """Every copy is delivered, lost or a duplicate; the ledger is the sum over the trace's sends."""
    totals, sends = simulated.result.totals, simulated.events(tr.SEND)
    copies = sum(row.value for row in sends)
    scalars = sum(row.scalars * row.value for row in sends)
    for name, count in {
        "transmissions": copies,
        "messages": copies,
        "scalars": scalars,
        "peer_scalars": scalars,
    }.items():
        demand(totals[name] == count, f"the ledger counts {totals[name]} {name}, the trace {count}")
    delivered = sum(int(row.value) if row.node == tr.EVERYONE else 1 for row in simulated.events(tr.DELIVER))
    counted = totals.get("deliveries")
    demand(delivered == counted, f"the ledger counts {counted} deliveries, the trace {delivered}")
    for kind, fate in simulated.result.audit.copies.items():
        ended = fate.delivered + fate.dropped + fate.duplicates
        made = fate.sent + fate.duplicated
        demand(made == ended, f"{made} copies of {kind!r} were sent or doubled, but {ended} have come to an end")
