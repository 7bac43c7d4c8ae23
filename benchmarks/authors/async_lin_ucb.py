"""Async-LinUCB and Async-LinUCB-AM beside github.com/cyrilli/Async-LinUCB (``COBAND_ASYNC_LIN_UCB_CODE``: a checkout).

The program is given every agent before the first turn, since it knows only those that have acted; ours runs with
``refresh: at_next_pull``, as the program does. Arms of length 1 all tie at an agent's first turn but for rounding,
which decides differently in the two programs; with arms in the ball (``ball`` as second argument) both pull the same.
The third argument is the algorithm; of Async-LinUCB-AM's 10 features 6 have a common parameter.
"""

from __future__ import annotations

import sys
import time
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

from benchmarks.authors import compared, program, timed
from coband.simulator.conformance.runs import run, world

CONFIG: dict[str, Any] = {"gamma_u": 2.0, "gamma_d": 2.0, "lam": 0.1, "refresh": "at_next_pull"}
Pulls = list[tuple[int, int, int]]


class Setting(NamedTuple):
    """Sizes, our parameters, and the program's class with how many features have which kind of parameter."""

    agents: int
    turns: int
    config: dict[str, Any]
    program: str
    parts: tuple[int, ...]

    def problem(self, shape: str) -> dict[str, Any]:
        """The world of the authors' simulation with d = 10."""
        return {
            "kind": "contextual",
            "arms": {"kind": "pool", "dimension": 10, "size": 200, "from": shape, "count": 25},
            "reward": {"kind": "linear", "theta": "sphere", "personal": sum(self.parts[1:]) or None},
            "noise": 0.1,
        }


SETTINGS = {
    "async_lin_ucb": Setting(50, 1500, CONFIG, "AsyncLinUCB", (10,)),
    "async_lin_ucb_am": Setting(10, 500, {**CONFIG, "shared": 6}, "AsyncLinUCB_AM", (6, 4)),
}


def ours(name: str, problem: dict[str, Any], seed: int) -> tuple[Pulls, float, int, float]:
    """(agent, turn, arm) of all pulls, regret, messages, CPU seconds."""
    agents, turns, config, *_ = SETTINGS[name]
    schedule = {"kind": "one_at_a_time", "turns": turns}
    recorded = run(name, config, agents=agents, problem=problem, seed=seed, schedule=schedule, checks="cheap")
    _, seconds = timed(name, config, problem, agents, schedule, seed)
    result = recorded.result
    return [pull[:3] for pull in recorded.pulls], result.regret, int(result.totals["messages"]), seconds


def theirs(
    code: ModuleType, name: str, problem: dict[str, Any], seed: int, pulls: Pulls
) -> tuple[Pulls, float, int, float]:
    """The same of the authors' program, on the same world and with the same order of agents."""
    setting = SETTINGS[name]
    drawn, bandit_of = world(problem, seed, setting.agents), getattr(code, setting.program)
    bandit = bandit_of(*setting.parts, -1, CONFIG["lam"], 0.1, 0.1, CONFIG["gamma_u"], CONFIG["gamma_d"])
    first = [SimpleNamespace(arm=0, featureVector=drawn.arms(0, 1)[0])]
    for agent in range(setting.agents):
        bandit.decide(first, agent)
    made: Pulls = []
    regret, started = 0.0, time.process_time()
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
    pairs, problem = [], setting.problem(shape)
    for seed in range(worlds):
        own = ours(name, problem, seed)
        pairs.append((own, theirs(code, name, problem, seed, own[0])))
    same, sizes = sum(own[0] == other[0] for own, other in pairs), f"{setting.agents} agents, {setting.turns} turns"
    print(f"{name}: the same pulls in {same} of {worlds} worlds; {sizes}, arms from the {shape}")
    alike = compared([(own[1:], other[1:]) for own, other in pairs], "regret", "messages")
    return 0 if alike else 1


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:2]), *sys.argv[2:4]))
