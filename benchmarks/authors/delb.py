"""DELB against github.com/sudeepsalgia/distributed_bandits (``COBAND_DISTRIBUTED_BANDITS_CODE``: a checkout).

That is the program of Salgia and Zhao 2022, who compare with it; Wang et al. 2020 published none. It gets the arms and
the parameter of coband's world, and draws the means of all pulls of an arm at once. Three things of it are no part of
DELB: 2 d arms in equal parts in place of an optimal design, theta brought to length 1, and a last phase, cut by the
horizon, whose means are sent. Its regret and numbers therefore need not be equivalent to ours, and the comparison
says how far they are apart. It fails where fewer than d arms are left, so that there are few phases here. A run of ours
makes every pull, so that it takes longer.
"""

from __future__ import annotations

import sys
import time
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.authors import compared, program, timed
from coband.simulator.conformance.runs import world

AGENTS, TURNS, DIMENSION, ARMS, C = 10, 12_000, 20, 120, 1.0
PROBLEM: dict[str, Any] = {
    "kind": "fixed_domain",
    "domain": {"kind": "sphere", "dimension": DIMENSION, "points": ARMS, "method": "uniform"},
    "reward": {"kind": "linear", "theta": "sphere"},
    "noise": 1,
}
Found = tuple[float, int, float]
"""Regret, numbers sent up, CPU seconds."""


def ours(seed: int) -> Found:
    """A run."""
    result, seconds = timed("delb", {"C": C}, PROBLEM, AGENTS, {"kind": "rounds", "turns": TURNS}, seed)
    return result.regret, int(result.totals["uplink_scalars"]), seconds


def theirs(code: ModuleType, bandits: type[Any], seed: int) -> Found:
    """A run of the program on the same arms and parameter."""
    drawn = world(PROBLEM, seed, AGENTS)
    bandit = bandits(d=DIMENSION, M=AGENTS, K=ARMS, T=TURNS, theta_star=-1)
    bandit.action_set, bandit.theta_star = np.array(drawn.arms(0, 1)), np.array(drawn.describe()["theta"])
    bandit.max_reward = float(drawn.means(0, 1).max())
    np.random.seed(seed)  # noqa: NPY002  the program draws from the global stream
    started = time.process_time()
    found = code.DELB(bandit)
    found.set_parameters(transmit="log", C=C)
    sent = SimpleNamespace(agents=found.delb_agent, numbers=0)

    def counted(arms: list[int], plays: list[int]) -> Any:
        sent.numbers += len(arms)
        return sent.agents(arms, plays)

    found.delb_agent = counted
    found.run()
    return float(found.regret[:TURNS].sum()), sent.numbers, time.process_time() - started


def main(worlds: int = 15) -> int:
    """Compare; 0 whatever the outcome, which the module explains."""
    code = program("COBAND_DISTRIBUTED_BANDITS_CODE", "sudeepsalgia/distributed_bandits", "codes/delb.py")
    from bandit import LinearBandits  # type: ignore[import-not-found]  # beside the program

    pairs = [(ours(seed), theirs(code, LinearBandits, seed)) for seed in range(worlds)]
    print(f"{AGENTS} agents, {ARMS} arms, d = {DIMENSION}, T = {TURNS}, C = {C:g}")
    compared(pairs, "regret", "numbers sent up")
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:2])))
