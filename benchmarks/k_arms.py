"""Bandits with K = 10 arms and 16 agents against loops as one would write them, with numpy and nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import scale
from benchmarks.measuring import Cases, Measured, plan, seconds, simulated
from benchmarks.textbook import FloatArray
from coband.simulator.core.algorithm import Algorithm
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.core.result import RunResult
from coband.simulator.maths.graphs.averaging import averaging_matrix
from coband.simulator.problems.k_armed import KArmedProblem

AGENTS, ARMS = 16, 10
PROBLEM = KArmedProblem.model_validate(
    {"kind": "k_armed", "arms": ARMS, "means": {"low": 0, "high": 1}, "reward": "gaussian", "sd": 0.5}
)
ALONE: dict[str, Any] = {"algorithm": "ucb1", "config": {}}
CONSENSUS: dict[str, Any] = {"algorithm": "coop_ucb2", "config": {}, "network": {"topology": "grid"}}


def run(turns: int, algorithm: Algorithm | str, config: dict[str, Any], **parts: Any) -> RunResult:
    """A simulated run in rounds."""
    asked = plan(AGENTS, {"kind": "rounds", "turns": turns}, **parts)
    return simulated(algorithm, config, lambda streams: PROBLEM.build(streams, AGENTS), asked)


def drawn(turns: int) -> tuple[FloatArray, FloatArray]:
    """The means of the arms (K,), and the noise of all rewards (N, turns), of the same world."""
    streams = Streams(0)
    means = PROBLEM.build(streams, AGENTS).means(0, 1)
    return means, 0.5 * np.array([streams("world", v, "noise").standard_normal(turns) for v in range(AGENTS)])


def ucb1(turns: int) -> tuple[float, int]:
    """One agent after the other, turn by turn; regret and messages."""
    regret, (means, noise) = 0.0, drawn(turns)
    for v in range(AGENTS):
        n, s = np.zeros(ARMS), np.zeros(ARMS)
        for t in range(turns):
            arm = t if t < ARMS else int(np.argmax(s / n + np.sqrt(2.0 * np.log(t) / n)))
            reward = means[arm] + noise[v, t]
            n[arm] += 1
            s[arm] += reward
            regret += means.max() - means[arm]
    return regret, 0


def consensus(turns: int) -> tuple[float, int]:
    """All agents at once, as rows of one matrix, which W mixes; regret and messages."""
    regret, (means, noise) = 0.0, drawn(turns)
    side, everyone = math.isqrt(AGENTS), range(AGENTS)
    near = [[u for u in everyone if abs(u // side - v // side) + abs(u % side - v % side) == 1] for v in everyone]
    W, degrees = averaging_matrix(near, "max_degree"), np.array([len(row) for row in near])
    n, s = np.zeros((2, AGENTS, ARMS))
    sent = np.zeros(AGENTS, dtype=int)
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
        sent += degrees
        regret += (means.max() - means[arms]).sum()
    return regret, int(sent.sum())


def against(turns: int, asked: dict[str, Any], loop: Callable[[int], tuple[float, int]]) -> Measured:
    """A simulated run against a loop on the same world."""
    fast, result = seconds(lambda: run(turns, **asked))
    slow, (regret, messages) = seconds(lambda: loop(turns))
    same = abs(regret - result.regret) < 1e-6 and messages == result.totals["messages"]
    quiet, _ = seconds(lambda: run(turns, scale.BARE, {"every": 2 * turns}))
    each = 1e6 / (AGENTS * turns)
    us = f"{each * fast:.1f} us a turn, {each * quiet:.1f} of which also one takes in which nothing happens"
    return Measured(slow, fast, same, f"{us}; the loop {each * slow:.1f}")


CASES: Cases = {
    "k_armed": (
        lambda: against(3000, ALONE, ucb1),
        "UCB1 alone, N=16, K=10, T=3000 each; target 6 us beside the engine",
    ),
    "consensus": (
        lambda: against(10_000, CONSENSUS, consensus),
        "coop-UCB2 on a grid, N=16, K=10, T=10^4 each, against a loop with W; target 20 us",
    ),
}
