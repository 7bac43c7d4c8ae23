"""Agents on a graph: Coop- and Dist-KernelUCB."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from benchmarks import bandits, textbook
from benchmarks.measuring import Cases, Figure, Figures, Measured, alike, plan, seconds, simulated, together
from coband.simulator.core.engine import Engine, RunResult
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.maths.graphs.covers import centres, clique_cover, power_graph
from coband.simulator.problems.network import NetworkProblem


@dataclass
class Setting:
    """Agents with tasks of their own on an Erdos-Renyi graph, one hop, all arms fresh (Dist: eight fixed ones)."""

    name: str
    agents: int
    trials: int
    streams: Streams = field(default_factory=lambda: Streams(0))

    def __post_init__(self) -> None:
        arms = {"kind": "pool", "size": 8} if self.name == "dist_kernel_ucb" else {"kind": "ball", "count": 8}
        gaussian = {"kind": "gaussian", "gamma": 0.5}
        self.problem = NetworkProblem.model_validate(
            {
                "kind": "network",
                "arms": {**arms, "dimension": 10},
                "contexts": {"kind": "sphere", "dimension": 10},
                "kernel": gaussian,
                "network_kernel": gaussian,
                "norm": 3,
            }
        )
        self.algorithm = Registry.installed().algorithms[self.name]
        self.config = self.algorithm.config.model_validate({"kernel": gaussian, "eta": 0.1, "network_kernel": gaussian})
        topology = {"kind": "erdos_renyi", "p": 0.7}
        self.plan = plan(self.agents, {"kind": "rounds", "turns": self.trials}, network={"topology": topology})
        assert self.plan.network.graph is not None
        self.graph = self.plan.network.graph.build(self.agents, self.streams)

    def world(self) -> Any:
        return self.problem.build_on(self.graph.distances, self.streams, self.agents)

    def run(self) -> RunResult:
        engine = Engine(self.plan, self.algorithm, self.config, self.world(), self.streams, graph=self.graph)
        return engine.run()


def cooperative(name: str, agents: int, trials: int) -> Measured:
    """The whole simulated run against the oracle's loop."""
    setting = Setting(name, agents, trials)
    graph, streams, world = setting.graph, setting.streams, setting.world
    near = power_graph(graph.distances, 1)
    fast, result = seconds(setting.run, 1)
    if name == "dist_kernel_ucb":
        accepts, central = [set(graph.ball(v, 1)) for v in range(agents)], dict(enumerate(centres(near).centre_of))
    else:
        accepts, central = [set(clique) for v in range(agents) for clique in clique_cover(near) if v in clique], None
    slow, expected = seconds(
        lambda: textbook.coop_run(trials, graph, world(), 0.5, 0.1, streams.coin, accepts, central), 1
    )
    same = alike(expected, result) and expected.transmissions == result.totals["transmissions"]
    return Measured(slow, fast, same, f"{result.graph}")


def coop_by(cohorts: bool) -> RunResult:
    """Coop's turns of a trial together, those of a clique with one solve, or one after the other."""
    config = {"kernel": {"kind": "gaussian", "gamma": 0.5}, "eta": 0.1}
    network = {"topology": {"kind": "erdos_renyi", "p": 0.7}}
    asked = plan(200, {"kind": "rounds", "turns": 20}, network=network, cohorts=cohorts)
    return simulated("coop_kernel_ucb", config, lambda streams: bandits.PROBLEM.build(streams, 200), asked)


def whole(trials: int, target: float) -> Figure:
    """CPU seconds of a run of Coop with 200 agents."""
    found, _ = seconds(Setting("coop_kernel_ucb", 200, trials).run, 1)
    return Figure(f"{found:.1f} s", f"{target:g} s", found <= target)


CASES: Cases = {
    "coop": (lambda: cooperative("coop_kernel_ucb", 200, 20), "Coop, V=200, p=0.7, T=20"),
    "cohorts": (lambda: together(coop_by), "Coop, V=200, p=0.7, T=20, all turns of a trial together"),
    "dist": (lambda: cooperative("dist_kernel_ucb", 60, 40), "Dist, V=60, p=0.7, T=40, 8 fixed arms"),
}
FIGURES: Figures = {"coop_100": (lambda: whole(100, 3.0), "Coop, V=200, p=0.7, T=100, CPU")}
