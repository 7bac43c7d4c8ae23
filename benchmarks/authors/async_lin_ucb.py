"""Async-LinUCB and Async-LinUCB-AM against github.com/cyrilli/Async-LinUCB (``COBAND_ASYNC_LIN_UCB_CODE``: a checkout).

The program is given every agent before the first turn, since it knows only those that have acted. Arms of length 1 tie
at an agent's first turn but for rounding, which differs; with arms in the ball (``ball`` as second argument) both pull
the same. The third argument is the algorithm; of Async-LinUCB-AM's 10 features 6 have a common parameter.
"""

from __future__ import annotations

import sys
import time
from types import SimpleNamespace
from typing import Any, NamedTuple

from benchmarks.authors import compared, program, timed
from coband.extensions.conformance.runs import run, world

CONFIG: dict[str, Any] = {"gamma_u": 2.0, "gamma_d": 2.0, "lam": 0.1, "refresh": "at_next_pull"}
Pulls = list[tuple[int, int, int]]


class Setting(NamedTuple):
    """Sizes, our parameters, and the program's class with how many features have which kind of parameter."""

    agents: int
    turns: int
    config: dict[str, Any]
    program: str
    parts: tuple[int, ...]


SETTINGS = {
    "async_lin_ucb": Setting(50, 1500, CONFIG, "AsyncLinUCB", (10,)),
    "async_lin_ucb_am": Setting(10, 500, {**CONFIG, "shared": 6}, "AsyncLinUCB_AM", (6, 4)),
}


def problem_of(setting: Setting, shape: str) -> dict[str, Any]:
    """The world of the authors' simulation with d = 10."""
    reward = {"kind": "linear", "theta": "sphere", "personal": sum(setting.parts[1:]) or None}
    arms = {"kind": "pool", "dimension": 10, "size": 200, "from": shape, "count": 25}
    return {"kind": "contextual", "arms": arms, "reward": reward, "noise": 0.1}


def ours(name: str, problem: dict[str, Any], seed: int) -> tuple[Pulls, float, int, float]:
    """(agent, turn, arm) of all pulls, regret, messages, CPU seconds."""
    agents, turns, config, *_ = SETTINGS[name]
    schedule = {"kind": "one_at_a_time", "turns": turns}
    pulls = run(name, config, agents=agents, problem=problem, seed=seed, schedule=schedule, checks="cheap").pulls
    result, seconds = timed(name, config, problem, agents, seed, schedule=schedule)
    return [pull[:3] for pull in pulls], result.regret, int(result.totals["messages"]), seconds


def theirs(
    bandit_of: Any, name: str, problem: dict[str, Any], seed: int, pulls: Pulls
) -> tuple[Pulls, float, int, float]:
    """The same of the authors' program, on the same world and with the same order of agents."""
    setting = SETTINGS[name]
    drawn = world(problem, seed, setting.agents)
    bandit = bandit_of(*setting.parts, -1, CONFIG["lam"], 0.1, 0.1, CONFIG["gamma_u"], CONFIG["gamma_d"])
    first = [SimpleNamespace(arm=0, featureVector=drawn.arms(0, 1)[0])]
    for agent in range(setting.agents):
        bandit.decide(first, agent)
    made, regret, started = list[tuple[int, int, int]](), 0.0, time.process_time()
    for agent, turn, _ in pulls:
        arms = [SimpleNamespace(arm=arm, featureVector=x) for arm, x in enumerate(drawn.arms(agent, turn))]
        chosen = bandit.decide(arms, agent)
        reward, lost = drawn.pull(agent, turn, chosen.arm)
        bandit.updateParameters(chosen, reward, agent)
        regret += lost
        made.append((agent, turn, chosen.arm))
    return made, regret, bandit.totalCommCost, time.process_time() - started


def main(worlds: int = 30, shape: str = "sphere", name: str = "async_lin_ucb") -> int:
    """Compare; 1 if something is not equivalent."""
    setting = SETTINGS[name]
    code = program("COBAND_ASYNC_LIN_UCB_CODE", "cyrilli/Async-LinUCB", f"lib/{setting.program}.py")
    bandit_of, problem = getattr(code, setting.program), problem_of(setting, shape)
    mine = [ours(name, problem, seed) for seed in range(worlds)]
    pairs = [(own, theirs(bandit_of, name, problem, seed, own[0])) for seed, own in enumerate(mine)]
    same = sum(own[0] == other[0] for own, other in pairs)
    print(
        f"{name}: the same pulls in {same} of {worlds} worlds; {setting.agents} agents, {setting.turns} turns, {shape}"
    )
    return 0 if compared([(own[1:], other[1:]) for own, other in pairs], "regret", "messages") else 1


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:2]), *sys.argv[2:4]))
