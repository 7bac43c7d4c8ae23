"""Bandits with K = 10 arms and 16 agents, in rounds: what UCB1 adds to the engine, and running consensus."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks import scale
from benchmarks.measuring import Cases, Figure, Figures, Measured, plan, seconds, simulated
from coband.simulator.core.algorithm import Algorithm
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.core.result import RunResult
from coband.simulator.maths.graphs.averaging import averaging_matrix
from coband.simulator.problems.k_armed import KArmedProblem

AGENTS, ARMS, TARGET = 16, 10, 6.0
PROBLEM = KArmedProblem.of({"low": 0, "high": 1}, {"arms": ARMS, "reward": "gaussian", "sd": 0.5})
ALONE: dict[str, Any] = {"algorithm": "ucb1", "config": {}}
CONSENSUS: dict[str, Any] = {"algorithm": "coop_ucb2", "config": {"sigma": 1}, "network": {"topology": "grid"}}


def run(turns: int, algorithm: Algorithm | str, config: dict[str, Any], **parts: Any) -> RunResult:
    """A simulated run."""
    asked = plan(AGENTS, {"kind": "rounds", "turns": turns}, **parts)
    return simulated(algorithm, config, lambda streams: PROBLEM.build(streams, AGENTS), asked)


def alone(turns: int) -> Figure:
    """How much longer a turn of UCB1 takes than one in which nothing happens."""
    bare, _ = seconds(lambda: run(turns, scale.BARE, {"every": turns + 1}))
    each = 1e6 * (seconds(lambda: run(turns, **ALONE))[0] - bare) / (AGENTS * turns)
    return Figure(f"{each:.1f} us", f"{TARGET:g} us", each <= TARGET)


def loop(turns: int) -> tuple[float, int]:
    """Running consensus as one would write it, all agents as rows of one matrix; regret and messages."""
    streams, regret = Streams(0), 0.0
    means = PROBLEM.build(streams, AGENTS).means(0, 1)
    noise = 0.5 * np.array([streams("world", v, "noise").standard_normal(turns) for v in range(AGENTS)])
    side, everyone = math.isqrt(AGENTS), range(AGENTS)
    near = [[u for u in everyone if abs(u // side - v // side) + abs(u % side - v % side) == 1] for v in everyone]
    W = averaging_matrix(near, "max_degree")
    n, s = np.zeros((2, AGENTS, ARMS))
    for t in range(turns):
        if t < ARMS:
            arms = np.full(AGENTS, t)
        else:
            log = np.log(t - 1)
            bound = s / n + np.sqrt(2.0 * 2.9 / 0.75 * (n + np.sqrt(log)) / (AGENTS * n) * log / n)
            arms = bound.argmax(axis=1)
        rewards = means[arms] + noise[:, t]
        n[everyone, arms] += 1
        s[everyone, arms] += rewards
        n, s = np.dot(W, n), np.dot(W, s)
        regret += (means.max() - means[arms]).sum()
    return regret, turns * sum(map(len, near))


def consensus(turns: int) -> Measured:
    """A simulated run against the loop on the same world."""
    fast, result = seconds(lambda: run(turns, **CONSENSUS))
    slow, (regret, messages) = seconds(lambda: loop(turns))
    same = abs(regret - result.regret) < 1e-6 and messages == result.totals["messages"]
    return Measured(slow, fast, same, f"{1e6 * fast / (AGENTS * turns):.1f} us a turn with its messages")


CASES: Cases = {"consensus": (lambda: consensus(10_000), "coop-UCB2 on a grid, N=16, K=10, T=10^4 each; target 20 us")}
FIGURES: Figures = {"k_armed": (lambda: alone(3000), "what UCB1, K=10, adds to a quiet turn")}
