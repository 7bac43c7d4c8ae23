"""PLS and DELB against github.com/sudeepsalgia/distributed_bandits (``COBAND_DISTRIBUTED_BANDITS_CODE``: a checkout),
the program of Salgia and Zhao 2022; Wang et al. 2020 published none of DELB. The second argument is the algorithm.

The program draws the mean of all pulls of an arm at once. Numbers need not be equivalent:

* PLS has a basis as arms, on which both explore alike. Bits are those that the program counts, |m| + 1 of a level m.
  It rounds up with a distance in place of a share of the step, takes places in n of n - 1 steps, and has no 0 in grids
  with an even number of points.
* DELB there has 2 d arms in equal parts in place of an optimal design, theta of length 1, and sends the means of a last
  phase that the horizon cuts. It fails where fewer than d arms are left, so that there are few phases here.
"""

from __future__ import annotations

import sys
import time
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.authors import compared, program, timed
from coband.extensions.conformance.runs import world

AGENTS, DIMENSION, ARMS = 10, 20, 120
TURNS = {"pls": 20_000, "delb": 12_000}
CONFIG: dict[str, dict[str, float]] = {"pls": {"C": 0.05, "alpha_0": 0.5, "beta_0": 1.0}, "delb": {"C": 1.0}}
NAMES = {"pls": ("regret", "bits up of an agent", "bits down"), "delb": ("regret", "numbers sent up")}
Found = tuple[float, ...]
"""The numbers of `NAMES`, and CPU seconds."""


def problem(name: str, seed: int) -> dict[str, Any]:
    """PLS: a basis, and theta uniform on the sphere; DELB: points of the sphere."""
    if name == "pls":
        theta = np.random.default_rng(seed).standard_normal(DIMENSION)
        rewards = (theta / np.linalg.norm(theta)).tolist()
        return {"kind": "arrays", "arms": np.eye(DIMENSION).tolist(), "rewards": rewards, "noise": 1}
    domain = {"kind": "sphere", "dimension": DIMENSION, "points": ARMS, "method": "uniform"}
    return {"kind": "fixed_domain", "domain": domain, "reward": {"kind": "linear", "theta": "sphere"}, "noise": 1}


def ours(name: str, seed: int) -> Found:
    """A run."""
    schedule = {"kind": "rounds", "turns": TURNS[name]}
    result, seconds = timed(name, CONFIG[name], problem(name, seed), AGENTS, seed, schedule=schedule)
    if name == "delb":
        return result.regret, result.totals["uplink_scalars"], seconds
    zeros = DIMENSION * result.rounds
    up, down = zeros + result.totals["levels_up"] / AGENTS, zeros + result.totals["levels_down"]
    return result.regret, up, down, seconds


def theirs(code: ModuleType, name: str, seed: int) -> Found:
    """A run of the program on the same arms and parameter."""
    from bandit import LinearBandits  # type: ignore[import-not-found]  # beside the program

    turns, config, drawn = TURNS[name], CONFIG[name], world(problem(name, seed), seed, AGENTS)
    arms = np.array(drawn.arms(0, 1))
    bandit = LinearBandits(d=DIMENSION, M=AGENTS, K=len(arms), T=turns, theta_star=-1)
    rewards = problem(name, seed).get("rewards")
    bandit.action_set, bandit.theta_star = arms, np.array(rewards or drawn.describe()["theta"])
    bandit.max_reward = float(drawn.means(0, 1).max())
    np.random.seed(seed)  # noqa: NPY002  the program draws from the global stream
    started = time.process_time()
    if name == "pls":
        found = code.PLS(bandit, is_continuous=False)
        found.set_parameters(C=config["C"])
        found.alpha_0, found.beta_0 = config["alpha_0"], config["beta_0"]
        found.run()
        sent = [found.uplink_comm_cost / AGENTS, found.downlink_comm_cost]
    else:
        found = code.DELB(bandit)
        found.set_parameters(transmit="log", C=config["C"])
        counting = SimpleNamespace(agents=found.delb_agent, numbers=0)
        found.delb_agent = lambda plays, counts: _counted(counting, plays, counts)
        found.run()
        sent = [counting.numbers]
    return float(found.regret[:turns].sum()), *sent, time.process_time() - started


def _counted(counting: SimpleNamespace, plays: list[int], counts: list[int]) -> Any:
    counting.numbers += len(plays)
    return counting.agents(plays, counts)


def main(worlds: int = 10, name: str = "pls") -> int:
    """Compare; 0 whatever the outcome, which the module explains."""
    code = program("COBAND_DISTRIBUTED_BANDITS_CODE", "sudeepsalgia/distributed_bandits", f"codes/{name}.py")
    pairs = [(ours(name, seed), theirs(code, name, seed)) for seed in range(worlds)]
    print(f"{name}: {AGENTS} agents, d = {DIMENSION}, T = {TURNS[name]}, {CONFIG[name]}")
    compared(pairs, *NAMES[name])
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:2]), *sys.argv[2:3]))
