"""Pure exploration: the min-max design, and RAGE."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks import textbook
from benchmarks.measuring import Cases, Measured, plan, seconds, simulated
from coband.extensions.conformance.runs import run, world
from coband.simulator.maths.exploration.design import differences, min_max_design, root
from coband.simulator.problems.pure_exploration import PureExplorationProblem
from tests.agents.test_pure_exploration import oracle_arms, samples_of
from tests.oracles import cope_alone


def design(arms: int) -> Measured:
    """A min-max design on an asymmetric instance against 5000 steps of the paper's gradient descent."""
    rng = np.random.default_rng(0)
    table = rng.standard_normal((arms, 10)) * rng.uniform(0.3, 3.0, 10)
    groups = [list(range(start, start + 2 + start // 6)) for start in range(0, arms, 6)]
    pairs = [(i, j) for group in groups for i in group for j in group if i < j]
    features = root(table @ table.T)
    fast, found = seconds(lambda: min_max_design(features, differences(features, groups), 1e-3))
    slow, (_, value) = seconds(lambda: textbook.descend(table @ table.T, pairs, 1e-3, 5000, 0.1), 1)
    off = value / found.value - 1.0
    note = f"{1e3 * fast:.1f} ms, gap {found.gap:.1e}; the descent ends {off:.1e} above"
    return Measured(slow, fast, found.gap <= 1e-8 and off >= -found.gap, note)


def rage(runs: int) -> Measured:
    """RAGE of the public code at gap 0.1, one agent: whole simulated runs against the oracle's loops."""
    problem = {"kind": "pure_exploration", "features": {"kind": "table"}, "gap": 0.1, "noise": 1.0}
    config = {"constants": "public_code", "elimination": "width", "delta": 0.005}
    asked, entry = plan(1, {"kind": "phases"}), PureExplorationProblem.model_validate(problem)

    def answer(seed: int) -> int:
        result = simulated("ind_rage", config, lambda streams: entry.build(streams, 1), asked, seed)
        return int(result.by_agent[0]["answer"])

    schedule = {"agents": 1, "problem": problem, "schedule": {"kind": "phases"}}
    traced = [run("ind_rage", config, seed=seed, **schedule) for seed in range(runs)]
    samples = [[phase[0] for phase in samples_of(one, 1, len(oracle_arms(one)))] for one in traced]

    fast, found = seconds(lambda: [answer(seed) for seed in range(runs)])
    slow, expected = seconds(lambda: [_looped(world(problem, seed, 1), samples[seed]) for seed in range(runs)], 1)
    return Measured(slow, fast, found == expected, f"{1e3 * fast / runs:.1f} ms a run")


def _looped(fresh: Any, samples: list[list[int]]) -> int:
    """The oracle's answer with the samples that the simulated run has drawn."""

    def pull(phase: int, counts: list[int]) -> list[float]:
        means: list[float] = fresh.pull_batch(0, phase, np.array(counts))[0].tolist()
        return means

    arms = fresh.knowledge().reshape(-1, fresh.dimension)
    return cope_alone.rage(arms @ arms.T, pull, samples, 1, 0.005, 0.1, "public_code", True).answer


CASES: Cases = {
    "design": (lambda: design(30), "min-max design, 30 arms of 5 agents; target: gap at most 1e-8"),
    "rage": (lambda: rage(20), "RAGE at gap 0.1, in-process, against the oracle; target 8"),
}
