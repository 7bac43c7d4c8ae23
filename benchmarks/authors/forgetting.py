"""SW-LinUCB and D-LinUCB against github.com/YRussac/WeightedLinearBandits (``COBAND_WEIGHTED_BANDITS_CODE``: a
checkout), the program of Russac et al. 2019, who compare with the algorithm of Cheung et al. 2019.

One agent acts in a world whose theta changes. D-LinUCB of the program takes gamma^2 V in place of gamma^2 V~ for the
next V~, so that it explores more than the paper says: ``printed`` as third argument mends that line from outside, else
regret need not be equivalent. The second argument is the algorithm.
"""

from __future__ import annotations

import sys
import time
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.authors import compared, program, timed
from coband.extensions.conformance.runs import run, world
from coband.simulator.arrays import FloatArray

TURNS, DIMENSION = 2000, 5
PROBLEM: dict[str, Any] = {
    "kind": "contextual",
    "arms": {"kind": "ball", "dimension": DIMENSION, "count": 20},
    "reward": {"kind": "linear", "theta": "sphere"},
    "noise": 0.1,
    "drift": {"kind": "piecewise", "at": [500, 1000, 1500]},
}
CONFIG: dict[str, Any] = {"lam": 1.0, "delta": 0.05, "sub_gaussian": 0.1, "norm": 1.0}
SETTINGS: dict[str, tuple[dict[str, Any], str]] = {
    "sw_lin_ucb": ({"window": 200}, "SW_LinUCB_class"),
    "discounted_lin_ucb": ({"gamma": 0.99}, "D_LinUCB_class"),
}
Found = tuple[list[int], float, float]
"""Arms, regret, CPU seconds."""


def ours(name: str, seed: int) -> Found:
    """A run of one agent."""
    config, schedule = {**CONFIG, **SETTINGS[name][0]}, {"kind": "rounds", "turns": TURNS}
    pulls = run(name, config, agents=1, problem=PROBLEM, seed=seed, schedule=schedule, checks="cheap").pulls
    result, seconds = timed(name, config, PROBLEM, 1, schedule, seed)
    return [arm for _, _, arm, _ in pulls], result.regret, seconds


def printed(policy: Any) -> None:
    """V~ as in the paper: gamma^2 V~ + x x^T + (1 - gamma^2) lam I."""
    update, gamma, rest = policy.update_state, policy.gamma, (1 - policy.gamma**2) * policy.lambda_ * np.eye(DIMENSION)

    def mended(x: FloatArray, reward: float) -> None:
        squares = gamma**2 * policy.cov_squared + np.outer(x, x) + rest
        update(x, reward)
        policy.cov_squared = squares

    policy.update_state = mended


def theirs(code: ModuleType, name: str, seed: int, mend: bool) -> Found:
    """A run of the program on the same world."""
    c, (own, _) = CONFIG, SETTINGS[name]
    policy_of = code.SWLinUCB if name == "sw_lin_ucb" else code.DLinUCB
    (value,) = own.values()
    policy = policy_of(DIMENSION, c["delta"], 1, c["lam"], c["norm"], value, "", False, c["sub_gaussian"], False)
    if mend:
        printed(policy)
    drawn, regret, made, now = world(PROBLEM, seed, 1), 0.0, list[int](), 0
    drawn.follow_clock(lambda: now)
    started = time.process_time()
    for now in range(1, TURNS + 1):
        arms = [SimpleNamespace(features=x) for x in drawn.arms(0, now)]
        arm = int(policy.select_arm(arms))
        reward, lost = drawn.pull(0, now, arm)
        policy.update_state(arms[arm].features, reward)
        regret += lost
        made.append(arm)
    return made, regret, time.process_time() - started


def main(worlds: int = 20, name: str = "sw_lin_ucb", as_printed: str = "") -> int:
    """Compare; 1 if regret is not equivalent."""
    code = program("COBAND_WEIGHTED_BANDITS_CODE", "YRussac/WeightedLinearBandits", f"{SETTINGS[name][1]}.py")
    pairs = [(ours(name, seed), theirs(code, name, seed, bool(as_printed))) for seed in range(worlds)]
    same = sum(own[0] == other[0] for own, other in pairs)
    print(f"{name}: the same pulls in {same} of {worlds} worlds; {TURNS} turns, d = {DIMENSION}, theta changes thrice")
    return 0 if compared([(own[1:], other[1:]) for own, other in pairs], "regret") else 1


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:2]), *sys.argv[2:4]))
