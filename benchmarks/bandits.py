"""Bandits on a star: Async-KernelUCB, DisLinUCB, and the exact posterior that the others use."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np

from benchmarks import textbook
from benchmarks.measuring import Cases, Measured, alike, plan, seconds, simulated
from coband.simulator.arms import ArmSet
from coband.simulator.core.clock.schedule import OneAtATime
from coband.simulator.core.engine import RunResult
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.maths.kernels.library import Gaussian
from coband.simulator.maths.posteriors import look_ahead
from coband.simulator.maths.posteriors.observations import Observations
from coband.simulator.maths.posteriors.shared_log import ExactPosterior
from coband.simulator.problems.contextual import ContextualProblem
from tests.oracles import dis_kernel_ucb, dis_lin_ucb, one_kernel_ucb, with_ties

BALL = {"kind": "ball", "dimension": 20, "count": 20}
PROBLEM = ContextualProblem.model_validate(
    {"kind": "contextual", "arms": BALL, "reward": {"kind": "cosine"}, "noise": 0.1}
)
LINEAR = {"alpha": 0.1, "lam": 1.0, "threshold": 1.0}
ASYNC_KERNEL = {"alpha": 0.1, "lam": 1.0, "q": 1.0, "threshold": 1.0, "kernel": {"kind": "gaussian", "gamma": 0.1}}
ASYNC, FED, DIS = ("async_kernel_ucb", ASYNC_KERNEL), ("fed_lin_ucb", LINEAR), ("dis_lin_ucb", LINEAR)
ONE_LOG = {"kernel": {"kind": "gaussian", "gamma": 1.0}, "alpha": 0.1, "lam": 1.0}
LOOPS = {
    "async_kernel_ucb": textbook.async_run,
    "dis_lin_ucb": dis_lin_ucb.run,
    "one_kernel_ucb": one_kernel_ucb.run,
    "dis_kernel_ucb": dis_kernel_ucb.run,
}


def run(name: str, config: dict[str, Any], agents: int, turns: int, **parts: Any) -> RunResult:
    """One simulated run on synthetic_f1's world, one agent after the other."""
    asked = plan(agents, {"kind": "one_at_a_time", "turns": turns}, **parts)
    return simulated(name, config, lambda streams: PROBLEM.build(streams, agents), asked)


def against(name: str, config: dict[str, Any], agents: int, turns: int, repeats: int = 3) -> Measured:
    """The whole simulated run (world, network, ledger, fingerprint) against the oracle's loop.

    The oracle has dense solves and determinants, turn by turn; arms with the same score are drawn as in the run.
    """
    fast, result = seconds(lambda: run(name, config, agents, turns), repeats)
    streams = Streams(0)
    acting = [[agent] for _, agent in OneAtATime(kind="one_at_a_time", turns=turns).ticks(agents, streams)]
    parameters = Registry.installed().algorithms[name].config.model_validate(config)
    kernel = textbook.gaussian(config["kernel"]["gamma"]) if "kernel" in config else None
    world = with_ties(PROBLEM.build(streams, agents), streams.ties)
    slow, loop = seconds(lambda: LOOPS[name](acting, world, kernel, parameters, streams.coin, agents), 1)
    same = alike(loop, result) and loop.uplink + loop.downlink == result.totals["scalars"]
    return Measured(slow, fast, same, f"{loop.rounds} exchanges")


def asynchronous(agents: int, turns: int, gamma: float, q: float, threshold: float) -> Measured:
    """Async-KernelUCB."""
    kernel = {"kind": "gaussian", "gamma": gamma}
    config = {**ASYNC_KERNEL, "q": q, "threshold": threshold, "kernel": kernel}
    return against("async_kernel_ucb", config, agents, turns)


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

    The solves cost T^3, all else T^2 or less, so the ratio grows with T: ``docs/decisions/0002-kernel-bandits.md`` has
    what was measured at the papers' size.
    """
    fast, result = seconds(lambda: run(name, ONE_LOG, 100, turns), 1)
    with mock.patch.object(look_ahead, "FEWEST_ROWS", turns + 1):
        slow, expected = seconds(lambda: run(name, ONE_LOG, 100, turns), 1)
    return Measured(slow, fast, result.fingerprint == expected.fingerprint, f"{result.totals['scalars']:.3g} scalars")


AGAINST = "N=100, T=800, d=20, against the oracle"
CASES: Cases = {
    "async": (lambda: asynchronous(100, 10_000, 0.1, 1.0, 1.0), "N=100, T=10^4, gamma=0.1, q=1, D=1; target 35, 0.7 s"),
    "async_many": (lambda: asynchronous(1000, 1500, 0.1, 1.0, 1.0), "N=1000, T=1500"),
    "async_short": (lambda: asynchronous(100, 3000, 1.0, 0.1, 5.0), "N=100, T=3000, gamma=1, q=0.1, D=5"),
    "linear": (lambda: against("dis_lin_ucb", LINEAR, 100, 2000), "DisLinUCB, N=100, T=2000, d=20"),
    "one_log": (lambda: long_log("one_kernel_ucb", 3000), "OneKernelUCB, N=100, T=3000, d=20"),
    "dis_log": (lambda: long_log("dis_kernel_ucb", 3000), "DisKernelUCB, N=100, T=3000, d=20"),
    "one": (lambda: against("one_kernel_ucb", ONE_LOG, 100, 800, 1), f"OneKernelUCB, {AGAINST}"),
    "dis": (lambda: against("dis_kernel_ucb", ONE_LOG, 100, 800, 1), f"DisKernelUCB, {AGAINST}"),
    "exact": (lambda: exact(2000), "exact posterior, T=2000, 20 arms; target 5"),
}
