"""Bandits on a star: Async-KernelUCB, DisLinUCB, and the exact posterior that the others use."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np

from benchmarks import textbook
from benchmarks.measuring import PLAN, Cases, Figure, Figures, Measured, level, seconds
from coband.simulator.arms import ArmSet
from coband.simulator.core.algorithm import Algorithm
from coband.simulator.core.clock.schedule import OneAtATime
from coband.simulator.core.engine import Engine, RunResult
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.maths.kernels.library import Gaussian
from coband.simulator.maths.posteriors import look_ahead
from coband.simulator.maths.posteriors.exact import ExactPosterior
from coband.simulator.maths.posteriors.observations import Observations
from coband.simulator.problems.contextual import ContextualProblem
from tests.oracles import dis_kernel_ucb, dis_lin_ucb, one_kernel_ucb, with_ties

PROBLEM = ContextualProblem.model_validate(
    {
        "kind": "contextual",
        "arms": {"kind": "ball", "dimension": 20, "count": 20},
        "reward": {"kind": "cosine"},
        "noise": 0.1,
    }
)


def simulated(
    name: str, config: dict[str, Any], agents: int, turns: int, trace: str = "off", schedule: str = "one_at_a_time"
) -> RunResult:
    """One simulated run on synthetic_f1's world."""
    algorithm: Algorithm = Registry.installed().algorithms[name]
    streams = Streams(0)
    given = {"agents": {"count": agents}, "schedule": {"kind": schedule, "turns": turns}, "network": {}, "trace": trace}
    plan = PLAN.validate_python(given)
    sink = (lambda rows, names: None) if trace != "off" else None
    world = PROBLEM.build(streams, agents)
    return Engine(plan, algorithm, algorithm.config.model_validate(config), world, streams, sink).run()


def tied(streams: Streams, agents: int) -> Any:
    """The world for an oracle: arms with the same score are drawn as the simulated run draws them."""
    return with_ties(PROBLEM.build(streams, agents), streams.ties)


def asynchronous(agents: int, turns: int, gamma: float, q: float, threshold: float) -> Measured:
    """The whole simulated run (world, network, ledger, fingerprint) against the oracle's loop."""
    config = {"alpha": 0.1, "lam": 1.0, "q": q, "threshold": threshold}
    kernel = {"kind": "gaussian", "gamma": gamma}
    fast, result = seconds(lambda: simulated("async_kernel_ucb", {**config, "kernel": kernel}, agents, turns))
    streams = Streams(0)
    acting = [[agent] for _, agent in OneAtATime(kind="one_at_a_time", turns=turns).ticks(agents, streams)]
    slow, oracle = seconds(
        lambda: textbook.async_run(acting, tied(streams, agents), gamma, config, streams.coin, agents), 1
    )
    same = abs(sum(pull[4] for pull in oracle.pulls) - result.regret) < 1e-6
    same = same and oracle.uplink + oracle.downlink == result.totals["scalars"]
    return Measured(slow, fast, same, f"m = {oracle.dictionary_size}, {oracle.rounds} exchanges")


def linear(agents: int, turns: int) -> Measured:
    """DisLinUCB: the whole simulated run against dense solves and determinants turn by turn."""
    config = {"alpha": 0.1, "lam": 1.0, "threshold": 1.0}
    fast, result = seconds(lambda: simulated("dis_lin_ucb", config, agents, turns))
    streams = Streams(0)
    acting = [[agent] for _, agent in OneAtATime(kind="one_at_a_time", turns=turns).ticks(agents, streams)]
    parameters = SimpleNamespace(**config)
    slow, oracle = seconds(
        lambda: dis_lin_ucb.run(acting, tied(streams, agents), None, parameters, streams.coin, agents), 1
    )
    same = abs(sum(pull[4] for pull in oracle.pulls) - result.regret) < 1e-6
    same = same and oracle.uplink + oracle.downlink == result.totals["scalars"]
    return Measured(slow, fast, same, f"{oracle.rounds} synchronisations")


def synchronised(counts: tuple[int, ...], turns: int) -> Figure:
    """A turn of DisLinUCB with a synchronisation after every turn, for growing numbers of agents."""

    def turn(agents: int) -> float:
        config = {"threshold": 0.0}
        taken, _ = seconds(lambda: simulated("dis_lin_ucb", config, agents, turns, schedule="rounds"), 1)
        return 1e6 * taken / (agents * turns)

    turn(counts[0])
    return level([turn(agents) for agents in counts], 2.0)


def exact(turns: int) -> Measured:
    """Exact kernel UCB, one point and 20 arms a turn."""
    rng = np.random.default_rng(0)
    arm_sets = rng.uniform(-0.4, 0.4, (turns, 20, 20))
    rewards = np.cos(3 * arm_sets @ rng.uniform(-0.4, 0.4, 20)) + 0.1 * rng.standard_normal((turns, 20))

    def growing() -> list[int]:
        posterior, chosen = ExactPosterior(Gaussian(gamma=0.1), 1.0), []
        for features, row in zip(arm_sets, rewards, strict=True):
            arms = ArmSet(features)
            mean, variance = posterior.predict(arms)
            arm = int(np.argmax(mean + 0.1 * np.sqrt(variance)))
            chosen.append(arm)
            posterior.update(Observations(arms.select(arm), row[arm : arm + 1]))
        return chosen

    fast, chosen = seconds(growing, 1)
    slow, expected = seconds(lambda: textbook.exact_run(arm_sets, rewards, 0.1, 1.0, 0.1), 1)
    return Measured(slow, fast, chosen == expected, f"{1e3 * fast / turns:.2f} ms a turn")


def long_log(name: str, turns: int) -> Measured:
    """A whole simulated run on one exact log of 100 agents against the same with a solve for all arms of every turn.

    The solves cost T^3, all else T^2 or less, so the ratio grows with T: ``docs/decisions/0024-long-logs.md`` has what
    was measured at the papers' size.
    """
    config = {"kernel": {"kind": "gaussian", "gamma": 1.0}, "alpha": 0.1, "lam": 1.0}
    fast, result = seconds(lambda: simulated(name, config, 100, turns), 1)
    with mock.patch.object(look_ahead, "FEWEST_ROWS", turns + 1):
        slow, expected = seconds(lambda: simulated(name, config, 100, turns), 1)
    return Measured(slow, fast, result.fingerprint == expected.fingerprint, f"{result.totals['scalars']:.3g} scalars")


def oracle(name: str, turns: int) -> Measured:
    """The whole simulated run on one exact log of 100 agents against the oracle's loop, a dense solve an arm set."""
    config = {"alpha": 0.1, "lam": 1.0}
    kernel = {"kind": "gaussian", "gamma": 1.0}
    fast, result = seconds(lambda: simulated(name, {**config, "kernel": kernel}, 100, turns), 1)
    streams, loop = Streams(0), {"one_kernel_ucb": one_kernel_ucb, "dis_kernel_ucb": dis_kernel_ucb}[name]
    acting = [[agent] for _, agent in OneAtATime(kind="one_at_a_time", turns=turns).ticks(100, streams)]
    parameters = Registry.installed().algorithms[name].config.model_validate({**config, "kernel": kernel})
    slow, expected = seconds(
        lambda: loop.run(acting, tied(streams, 100), textbook.gaussian(1.0), parameters, streams.coin, 100),
        1,
    )
    same = abs(sum(pull[4] for pull in expected.pulls) - result.regret) < 1e-6
    same = same and expected.uplink + expected.downlink == result.totals["scalars"]
    return Measured(slow, fast, same, f"{expected.rounds} synchronisations")


def paper(name: str, target: float) -> Figure:
    """CPU seconds of a replication at the paper's size: 100 agents, 10^4 turns, gamma = 1, alpha = 0.1."""
    config = {"kernel": {"kind": "gaussian", "gamma": 1.0}, "alpha": 0.1, "lam": 1.0}
    found, _ = seconds(lambda: simulated(name, config, 100, 10_000), 1)
    return Figure(f"{found:.0f} s", f"{target:g} s", found <= target)


CASES: Cases = {
    "async": (lambda: asynchronous(100, 10_000, 0.1, 1.0, 1.0), "N=100, T=10^4, gamma=0.1, q=1, D=1; target 35, 0.7 s"),
    "async_many": (lambda: asynchronous(1000, 1500, 0.1, 1.0, 1.0), "N=1000, T=1500, the first half of async_1000"),
    "async_short": (lambda: asynchronous(100, 3000, 1.0, 0.1, 5.0), "N=100, T=3000, gamma=1, q=0.1, D=5"),
    "linear": (lambda: linear(100, 2000), "DisLinUCB, N=100, T=2000, d=20"),
    "one_log": (lambda: long_log("one_kernel_ucb", 3000), "OneKernelUCB, N=100, T=3000, d=20"),
    "dis_log": (lambda: long_log("dis_kernel_ucb", 3000), "DisKernelUCB, N=100, T=3000, d=20"),
    "one": (lambda: oracle("one_kernel_ucb", 800), "OneKernelUCB, N=100, T=800, d=20, against the oracle"),
    "dis": (lambda: oracle("dis_kernel_ucb", 800), "DisKernelUCB, N=100, T=800, d=20, against the oracle"),
    "exact": (lambda: exact(2000), "exact posterior, T=2000, 20 arms; target 5"),
}
FIGURES: Figures = {
    "synchronised": (
        lambda: synchronised((100, 1000, 10_000), 4),
        "a turn of DisLinUCB with a synchronisation of all agents, N = 100, 10^3, 10^4",
    ),
}
FULL: Cases = {
    "async_1000": (lambda: asynchronous(1000, 3000, 0.1, 1.0, 1.0), "N=1000, T=3000; target 150"),
    "async_gamma1": (
        lambda: asynchronous(100, 10_000, 1.0, 0.1, 5.0),
        "N=100, T=10^4, gamma=1, q=0.1, D=5; target 100",
    ),
}
"""These take minutes."""
FULL_FIGURES: Figures = {
    "one_paper": (lambda: paper("one_kernel_ucb", 75.0), "OneKernelUCB, N=100, T=10^4, a replication; was 374 s, CPU"),
    "dis_paper": (lambda: paper("dis_kernel_ucb", 113.0), "DisKernelUCB, N=100, T=10^4, a replication; was 566 s, CPU"),
}
"""These take minutes each."""
