"""Agents on a graph: Coop- and Dist-KernelUCB."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pydantic import TypeAdapter

from benchmarks import textbook
from benchmarks.measuring import Cases, Measured, seconds
from coband.simulator.core.engine import Engine, Plan, RunResult
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.maths.graphs.covers import centres, clique_cover, power_graph
from coband.simulator.problems.network import NetworkProblem


class Instance:
    """Agents with tasks of their own on an Erdos-Renyi graph, one hop, all arms fresh (Dist: eight fixed ones)."""

    def __init__(self, name: str, agents: int, trials: int) -> None:
        arms = {"kind": "pool", "size": 8} if name == "dist_kernel_ucb" else {"kind": "ball", "count": 8}
        gaussian = {"kind": "gaussian", "gamma": 0.5}
        self._problem = NetworkProblem.model_validate(
            {
                "kind": "network",
                "arms": {**arms, "dimension": 10},
                "contexts": {"kind": "sphere", "dimension": 10},
                "kernel": gaussian,
                "network_kernel": gaussian,
                "norm": 3,
            }
        )
        self._algorithm, self.streams = Registry.installed().algorithms[name], Streams(0)
        given = {"kernel": gaussian, "network_kernel": gaussian, "eta": 0.1}
        self._config = self._algorithm.config.model_validate(given)
        self._plan = TypeAdapter(Plan).validate_python(
            {
                "agents": {"count": agents},
                "schedule": {"kind": "rounds", "turns": trials},
                "network": {"topology": {"kind": "erdos_renyi", "p": 0.7}},
                "trace": "off",
            }
        )
        self.graph = self._plan.network.graph.build(agents, self.streams)

    def world(self) -> Any:
        """A fresh world."""
        return self._problem.build_on(self.graph.distances, self.streams, self.graph.nodes)

    def run(self, cohorts: bool = True) -> RunResult:
        """The simulated run."""
        plan = replace(self._plan, cohorts=cohorts)
        return Engine(plan, self._algorithm, self._config, self.world(), self.streams, graph=self.graph).run()


def cooperative(name: str, agents: int, trials: int) -> Measured:
    """The whole simulated run against every agent by itself."""
    instance = Instance(name, agents, trials)
    graph, near = instance.graph, power_graph(instance.graph.distances, 1)
    fast, result = seconds(instance.run, 1)
    if name == "dist_kernel_ucb":
        accepts, central = [set(graph.ball(v, 1)) for v in range(agents)], dict(enumerate(centres(near).centre_of))
    else:
        accepts, central = [set(clique) for v in range(agents) for clique in clique_cover(near) if v in clique], None
    slow, expected = seconds(
        lambda: textbook.coop_run(trials, graph, instance.world(), 0.5, 0.1, instance.streams.coin, accepts, central), 1
    )
    same = abs(sum(pull[4] for pull in expected.pulls) - result.regret) < 1e-6
    same = same and expected.transmissions == result.totals["transmissions"]
    return Measured(slow, fast, same, f"{result.graph}")


def cohorts(trials: int) -> Measured:
    """Coop's turns of a trial taken together against one event and one choice after the other."""
    instance = Instance("coop_kernel_ucb", 200, trials)
    fast, together = seconds(instance.run, 2)
    slow, apart = seconds(lambda: instance.run(cohorts=False), 1)
    note = f"{1e6 * fast / 200 / trials:.0f} us a turn; textbook column: one by one"
    return Measured(slow, fast, together.fingerprint == apart.fingerprint, note)


CASES: Cases = {
    "coop": (lambda: cooperative("coop_kernel_ucb", 200, 20), "Coop, V=200, p=0.7, T=20"),
    "coop_cohorts": (lambda: cohorts(20), "Coop, V=200, p=0.7, T=20, turns of a trial together"),
    "dist": (lambda: cooperative("dist_kernel_ucb", 60, 40), "Dist, V=60, p=0.7, T=40, 8 fixed arms"),
}
FULL: Cases = {
    "coop_40": (lambda: cooperative("coop_kernel_ucb", 200, 40), "Coop, V=200, p=0.7, T=40; target 25"),
    "coop_100": (lambda: cohorts(100), "Coop, V=200, p=0.7, T=100, turns of a trial together; target 3 s"),
}
"""These take minutes."""
