"""Agents on a graph: Coop- and Dist-KernelUCB."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks import textbook
from benchmarks.measuring import Cases, Figure, Figures, Measured, alike, plan, seconds
from coband.simulator.arms import ArmSet
from coband.simulator.core.engine import Engine, RunResult
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.maths.graphs.covers import centres, clique_cover, power_graph
from coband.simulator.maths.kernels.library import Linear
from coband.simulator.maths.posteriors.linear_features import PrimalKnowledge, PrimalPosterior
from coband.simulator.maths.posteriors.observations import Observations
from coband.simulator.problems.network import NetworkProblem


@dataclass
class Setting:
    """Agents with tasks of their own on an Erdos-Renyi graph, one hop, all arms fresh (Dist: eight fixed ones)."""

    name: str
    agents: int
    trials: int
    kernel: Any = field(default_factory=lambda: {"kind": "gaussian", "gamma": 0.5})
    streams: Streams = field(default_factory=lambda: Streams(0))

    def __post_init__(self) -> None:
        arms = {"kind": "pool", "size": 8} if self.name == "dist_kernel_ucb" else {"kind": "ball", "count": 8}
        gaussian = {"kind": "gaussian", "gamma": 0.5}
        self.problem = NetworkProblem.model_validate(
            {
                "kind": "network",
                "arms": {**arms, "dimension": 10},
                "contexts": {"kind": "sphere", "dimension": 10},
                "kernel": self.kernel,
                "network_kernel": gaussian,
                "norm": 3,
            }
        )
        self.algorithm = Registry.installed().algorithms[self.name]
        network = {} if self.name == "naive_coop" else {"network_kernel": gaussian}
        self.config = self.algorithm.config.model_validate({"kernel": self.kernel, "eta": 0.1, **network})
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


def whole(name: str, trials: int, target: float, kernel: Any = None) -> Figure:
    """CPU seconds of a run of 200 agents."""
    found, _ = seconds(Setting(name, 200, trials, **({} if kernel is None else {"kernel": kernel})).run, 1)
    return Figure(f"{found:.1f} s", f"{target:g} s", found <= target)


def primal(turns: int, news: int) -> Measured:
    """A linear kernel of tasks and arms, so many observations a turn, against a dense solve a turn."""
    rng = np.random.default_rng(0)
    tasks, own = rng.standard_normal((news, 10)) / 4, rng.standard_normal(10) / 4
    told, arms = rng.standard_normal((turns, news, 10)) / 4, rng.standard_normal((turns, 20, 10)) / 4
    rewards = rng.standard_normal((turns, news))

    def fast() -> list[int]:
        posterior, chosen = PrimalPosterior(PrimalKnowledge(Linear(), Linear(), 10, 1.0, False), own), []
        for features, y, offered in zip(told, rewards, arms, strict=True):
            mean, variance = posterior.predict(ArmSet(offered))
            chosen.append(int(np.argmax(mean + 0.1 * np.sqrt(variance))))
            posterior.update(Observations(ArmSet(features), y, tasks=tasks))
        return chosen

    def slow() -> list[int]:
        V, b, chosen = np.eye(100), np.zeros(100), []
        for features, y, offered in zip(told, rewards, arms, strict=True):
            G = np.array([np.kron(own, arm) for arm in offered])
            mean, variance = G @ np.linalg.solve(V, b), np.vecdot(G, np.linalg.solve(V, G.T).T)
            chosen.append(int(np.argmax(mean + 0.1 * np.sqrt(variance))))
            Phi = np.array([np.kron(task, arm) for task, arm in zip(tasks, features, strict=True)])
            V, b = V + Phi.T @ Phi, b + Phi.T @ y
        return chosen

    best, chosen = seconds(fast)
    textbook_seconds, expected = seconds(slow, 1)
    return Measured(textbook_seconds, best, chosen == expected, f"{1e3 * best / turns:.2f} ms a turn")


CASES: Cases = {
    "coop": (lambda: cooperative("coop_kernel_ucb", 200, 20), "Coop, V=200, p=0.7, T=20"),
    "dist": (lambda: cooperative("dist_kernel_ucb", 60, 40), "Dist, V=60, p=0.7, T=40, 8 fixed arms"),
    "primal": (lambda: primal(500, 30), "linear kernel of 31 tasks, p=100, 30 observations a turn"),
}
FULL: Cases = {"coop_40": (lambda: cooperative("coop_kernel_ucb", 200, 40), "Coop, V=200, p=0.7, T=40; target 25")}
"""These take minutes."""
FIGURES: Figures = {
    "coop_100": (lambda: whole("coop_kernel_ucb", 100, 3.0), "Coop, V=200, p=0.7, T=100, CPU"),
    "coop_linear": (
        lambda: whole("coop_kernel_ucb", 100, 4.0, {"kind": "linear"}),
        "Coop with a linear kernel, V=200, T=100, CPU",
    ),
    "naive_linear": (
        lambda: whole("naive_coop", 40, 2.0, {"kind": "linear"}),
        "Naive with a linear kernel, V=200, T=40, CPU",
    ),
}
