"""PLS against github.com/sudeepsalgia/distributed_bandits (``COBAND_DISTRIBUTED_BANDITS_CODE``: a checkout).

The arms are the d vectors of a basis, on which the program's exploration and ours are the same, and also that of the
unit ball, so that bits are those of its comparison on the ball. Bits are compared as the program counts them, a level
m as |m| + 1, without a sign. Its rounding is not ours: the probability of rounding up is a distance where a share of
the step is meant, places are taken in n of n - 1 steps, and grids with an even number of points have no 0, so that
every 0 costs a bit more. So bits need not be equivalent, and the comparison says how far they are apart. It draws the
mean of all pulls of an arm at once, but goes through the turns of LinUCB one by one, and stops that after 30,000.
"""

from __future__ import annotations

import sys
import time
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.authors import compared, program, timed

AGENTS, TURNS, DIMENSION, C, ALPHA, BETA = 10, 20_000, 20, 0.05, 0.5, 1.0
Found = tuple[float, float, float, float]
"""Regret, bits up of an agent, bits down, CPU seconds."""


def problem(seed: int) -> dict[str, Any]:
    """The basis, and theta uniform on the sphere."""
    theta = np.random.default_rng(seed).standard_normal(DIMENSION)
    rewards = (theta / np.linalg.norm(theta)).tolist()
    return {"kind": "arrays", "arms": np.eye(DIMENSION).tolist(), "rewards": rewards, "noise": 1}


def ours(seed: int) -> Found:
    """A run."""
    config = {"C": C, "alpha_0": ALPHA, "beta_0": BETA}
    result, seconds = timed("pls", config, problem(seed), AGENTS, {"kind": "rounds", "turns": TURNS}, seed)
    zeros = DIMENSION * result.rounds
    up, down = zeros + result.totals["levels_up"] / AGENTS, zeros + result.totals["levels_down"]
    return result.regret, up, down, seconds


def theirs(code: ModuleType, bandits: type[Any], seed: int) -> Found:
    """A run of the program with the same parameter."""
    bandit = bandits(d=DIMENSION, M=AGENTS, K=DIMENSION, T=TURNS, theta_star=-1)
    bandit.action_set, bandit.theta_star = np.eye(DIMENSION), np.array(problem(seed)["rewards"])
    bandit.max_reward = float(bandit.theta_star.max())
    np.random.seed(seed)  # noqa: NPY002  the program draws from the global stream
    started = time.process_time()
    found = code.PLS(bandit, is_continuous=False)
    found.set_parameters(C=C)
    found.alpha_0, found.beta_0 = ALPHA, BETA
    found.run()
    seconds = time.process_time() - started
    return float(found.regret[:TURNS].sum()), found.uplink_comm_cost / AGENTS, found.downlink_comm_cost, seconds


def main(worlds: int = 10) -> int:
    """Compare; 0 whatever the outcome, which the module explains."""
    code = program("COBAND_DISTRIBUTED_BANDITS_CODE", "sudeepsalgia/distributed_bandits", "codes/pls.py")
    from bandit import LinearBandits  # type: ignore[import-not-found]  # beside the program

    pairs = [(ours(seed), theirs(code, LinearBandits, seed)) for seed in range(worlds)]
    print(f"{AGENTS} agents, a basis of d = {DIMENSION}, T = {TURNS}, C = {C:g}")
    compared(pairs, "regret", "bits up of an agent", "bits down")
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:2])))
