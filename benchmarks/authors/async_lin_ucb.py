"""Async-LinUCB against github.com/cyrilli/Async-LinUCB (``COBAND_ASYNC_LIN_UCB_CODE``: a checkout).

The program is given every agent before the first turn, since it knows only those that have acted; ours runs with
``refresh: at_next_pull``, as the program does. Arms of length 1 all tie at an agent's first turn but for rounding,
which decides differently in the two programs; with arms in the ball (``ball`` as second argument) both pull the same.
"""

from __future__ import annotations

import sys
import time
from types import ModuleType, SimpleNamespace
from typing import Any

from benchmarks.authors import program, show
from coband.simulator.conformance.runs import algorithm, plan_of, run, world
from coband.simulator.core.engine import Engine
from coband.simulator.core.randomness.streams import Streams

AGENTS, TURNS = 50, 1500
CONFIG: dict[str, Any] = {"gamma_u": 2.0, "gamma_d": 2.0, "lam": 0.1, "refresh": "at_next_pull"}
Pulls = list[tuple[int, int, int]]


def problem_with(shape: str) -> dict[str, Any]:
    """The world of the authors' simulation with d = 10."""
    return {
        "kind": "contextual",
        "arms": {"kind": "pool", "dimension": 10, "size": 200, "from": shape, "count": 25},
        "reward": {"kind": "linear", "theta": "sphere"},
        "noise": 0.1,
    }


def ours(problem: dict[str, Any], seed: int) -> tuple[Pulls, float, int, float]:
    """(agent, turn, arm) of all pulls, regret, messages, CPU seconds."""
    schedule = {"kind": "one_at_a_time", "turns": TURNS}
    recorded = run(
        "async_lin_ucb", CONFIG, agents=AGENTS, problem=problem, seed=seed, schedule=schedule, checks="cheap"
    )
    entry, plan = algorithm("async_lin_ucb"), {"agents": {"count": AGENTS}, "schedule": schedule, "network": {}}
    given = entry.config.model_validate(CONFIG)
    started = time.process_time()
    Engine(plan_of(plan), entry, given, world(problem, seed, AGENTS), Streams(seed)).run()
    seconds = time.process_time() - started
    result = recorded.result
    return [pull[:3] for pull in recorded.pulls], result.regret, int(result.totals["messages"]), seconds


def theirs(code: ModuleType, problem: dict[str, Any], seed: int, pulls: Pulls) -> tuple[Pulls, float, int, float]:
    """The same of the authors' program, on the same world and with the same order of agents."""
    drawn = world(problem, seed, AGENTS)
    bandit = code.AsyncLinUCB(10, -1, CONFIG["lam"], 0.1, 0.1, CONFIG["gamma_u"], CONFIG["gamma_d"])
    first = [SimpleNamespace(arm=0, featureVector=drawn.arms(0, 1)[0])]
    for agent in range(AGENTS):
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


def main(worlds: int = 30, shape: str = "sphere") -> int:
    """Compare; 1 if something is not equivalent."""
    code = program("COBAND_ASYNC_LIN_UCB_CODE", "cyrilli/Async-LinUCB", "lib/AsyncLinUCB.py")
    pairs = []
    for seed in range(worlds):
        own = ours(problem_with(shape), seed)
        pairs.append((own, theirs(code, problem_with(shape), seed, own[0])))
    same = sum(own[0] == other[0] for own, other in pairs)
    print(f"the same pulls in {same} of {worlds} worlds; {AGENTS} agents, {TURNS} turns, arms from the {shape}")
    alike = [
        show(what, *zip(*((a[k], b[k]) for a, b in pairs), strict=True)) for what, k in (("regret", 1), ("messages", 2))
    ]
    seconds = [sum(side[3] for side in sides) for sides in zip(*pairs, strict=True)]
    print(f"CPU seconds: ours {seconds[0]:.3g}, theirs {seconds[1]:.3g}, {seconds[1] / seconds[0]:.1f} times as many")
    return 0 if all(alike) else 1


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:2]), *sys.argv[2:3]))
