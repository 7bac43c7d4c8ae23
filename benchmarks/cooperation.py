"""Agents on a graph: Coop- and Dist-KernelUCB."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from benchmarks import textbook
from benchmarks.measuring import Cases, Measured, seconds
from coband.simulator.core.engine import Engine, Plan
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.maths.graphs.covers import centres, clique_cover, power_graph
from coband.simulator.problems.network import NetworkProblem


def cooperative(name: str, agents: int, trials: int) -> Measured:
    """Agents with tasks of their own on an Erdos-Renyi graph, one hop, all arms fresh (Dist: eight fixed ones)."""
    arms = {"kind": "pool", "size": 8} if name == "dist_kernel_ucb" else {"kind": "ball", "count": 8}
    gaussian = {"kind": "gaussian", "gamma": 0.5}
    problem = NetworkProblem.model_validate(
        {
            "kind": "network",
            "arms": {**arms, "dimension": 10},
            "contexts": {"kind": "sphere", "dimension": 10},
            "kernel": gaussian,
            "network_kernel": gaussian,
            "norm": 3,
        }
    )
    algorithm, streams = Registry.installed().algorithms[name], Streams(0)
    config = algorithm.config.model_validate({"kernel": gaussian, "network_kernel": gaussian, "eta": 0.1})
    plan = TypeAdapter(Plan).validate_python(
        {
            "agents": {"count": agents},
            "schedule": {"kind": "rounds", "turns": trials},
            "network": {"topology": {"kind": "erdos_renyi", "p": 0.7}},
            "trace": "off",
        }
    )
    graph = plan.network.graph.build(agents, streams)
    near = power_graph(graph.distances, 1)

    def world() -> Any:
        return problem.build_on(graph.distances, streams, agents)

    fast, result = seconds(lambda: Engine(plan, algorithm, config, world(), streams, graph=graph).run(), 1)
    if name == "dist_kernel_ucb":
        accepts, central = [set(graph.ball(v, 1)) for v in range(agents)], dict(enumerate(centres(near).centre_of))
    else:
        accepts, central = [set(clique) for v in range(agents) for clique in clique_cover(near) if v in clique], None
    slow, expected = seconds(
        lambda: textbook.coop_run(trials, graph, world(), 0.5, 0.1, streams.coin, accepts, central), 1
    )
    same = abs(sum(pull[4] for pull in expected.pulls) - result.regret) < 1e-6
    same = same and expected.transmissions == result.totals["transmissions"]
    return Measured(slow, fast, same, f"{result.graph}")


CASES: Cases = {
    "coop": (lambda: cooperative("coop_kernel_ucb", 200, 20), "Coop, V=200, p=0.7, T=20"),
    "dist": (lambda: cooperative("dist_kernel_ucb", 60, 40), "Dist, V=60, p=0.7, T=40, 8 fixed arms"),
}
FULL: Cases = {
    "coop_40": (lambda: cooperative("coop_kernel_ucb", 200, 40), "Coop, V=200, p=0.7, T=40; target 40"),
}
"""These take minutes."""
