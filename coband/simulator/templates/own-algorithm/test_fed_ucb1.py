"""fed_ucb1 does what its pseudo-code says, sends what it promises, and conforms."""

from __future__ import annotations

import math

import pytest

from coband.extensions.conformance import Case, cases, run

ARMS, AGENTS, TURNS = 6, 3, 40
PROBLEM = {
    "kind": "fixed_domain",
    "domain": {"kind": "ball", "dimension": 2, "points": ARMS},
    "reward": {"kind": "cosine"},
    "noise": 0.1,
}


def oracle(rewards: dict[tuple[int, int], list[float]], period: int) -> list[int]:
    """The pseudo-code in plain loops. ``rewards[agent, arm]`` are handed out in order. Returns the arms pulled."""
    totals = [[0, 0.0] for _ in range(ARMS)]
    known = [[list(entry) for entry in totals] for _ in range(AGENTS)]
    new: list[list[tuple[int, float]]] = [[] for _ in range(AGENTS)]
    pulled = []
    for _ in range(TURNS):
        for agent in range(AGENTS):
            view = [list(entry) for entry in known[agent]]
            for arm, reward in new[agent]:
                view[arm][0] += 1
                view[arm][1] += reward
            t = sum(count for count, _ in view)
            scores = [
                math.inf if count == 0 else total / count + math.sqrt(2 * math.log(t) / count) for count, total in view
            ]
            arm = scores.index(max(scores))
            pulled.append(arm)
            new[agent].append((arm, rewards[agent, arm].pop(0)))
            if len(new[agent]) == period:
                for arm, reward in new[agent]:
                    totals[arm][0] += 1
                    totals[arm][1] += reward
                known[agent], new[agent] = [list(entry) for entry in totals], []
    return pulled


@pytest.mark.parametrize("period", [1, 7, 10])
def test_without_delays_a_run_is_the_pseudo_code(period: int) -> None:
    simulated = run(
        "fed_ucb1", {"period": period}, agents=AGENTS, problem=PROBLEM, schedule={"kind": "rounds", "turns": TURNS}
    )
    rewards: dict[tuple[int, int], list[float]] = {}
    for agent, _, arm, reward in simulated.pulls:
        rewards.setdefault((agent, arm), []).append(reward)
    assert [arm for _, _, arm, _ in simulated.pulls] == oracle(rewards, period)
    assert simulated.result.totals["uplink_scalars"] == AGENTS * (TURNS // period) * 2 * ARMS
    assert simulated.result.totals["downlink_scalars"] == AGENTS * (TURNS // period) * 2 * ARMS


@pytest.mark.parametrize("case", cases("fed_ucb1", {}, {"period": 1}), ids=str)
def test_it_conforms(case: Case) -> None:
    case.check()
