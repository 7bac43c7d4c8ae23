"""share_lin_ucb does what its pseudo-code says, sends what it promises, and conforms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from coband import FloatArray
from coband.extensions.conformance import Case, cases, run
from coband.extensions.conformance.runs import world

LAM, ALPHA = 0.5, 0.3
D, AGENTS, TURNS = 2, 3, 40
PROBLEM = {
    "kind": "contextual",
    "arms": {"kind": "ball", "dimension": D, "count": 6},
    "reward": {"kind": "linear"},
    "noise": 0.1,
}


def best(X: FloatArray, pulls: list[tuple[FloatArray, float]]) -> int:
    """LinUCB of all pulls (x, y) that an agent knows, computed again at each turn."""
    V = LAM * np.eye(D) + sum((np.outer(x, x) for x, _ in pulls), np.zeros((D, D)))
    b = sum((y * x for x, y in pulls), np.zeros(D))
    inverse = np.linalg.inv(V)
    scores = [float(x @ inverse @ b + ALPHA * np.sqrt(x @ inverse @ x)) for x in X]
    return scores.index(max(scores))


@pytest.mark.parametrize("period", [1, 7, 10])
def test_without_delays_a_run_is_the_pseudo_code(period: int) -> None:
    simulated = run(
        "share_lin_ucb",
        {"lam": LAM, "alpha": ALPHA, "period": period},
        agents=AGENTS,
        problem=PROBLEM,
        schedule={"kind": "rounds", "turns": TURNS},
    )
    arms = world(PROBLEM, 0, AGENTS).arms
    server: list[tuple[FloatArray, float]] = []
    known, news = ([list(server) for _ in range(AGENTS)] for _ in range(2))
    for agent, turn, arm, reward in simulated.pulls:
        X = arms(agent, turn)
        assert arm == best(X, known[agent] + news[agent])
        news[agent].append((X[arm], reward))
        if len(news[agent]) == period:
            server += news[agent]
            known[agent], news[agent] = list(server), []
    assert simulated.result.totals["uplink_scalars"] == AGENTS * (TURNS // period) * (D**2 + D)
    assert simulated.result.totals["downlink_scalars"] == AGENTS * (TURNS // period) * (D**2 + D)


def test_no_pull_is_forgotten_where_messages_are_lost() -> None:
    network = {"loss": 0.4, "retransmission": {"max_attempts": 1}, "recovery": {"attempts": 0}}
    lossy = run("share_lin_ucb", {"period": 3}, agents=AGENTS, problem=PROBLEM, seed=1, network=network)
    arms, sums = world(PROBLEM, 1, AGENTS).arms, np.zeros((D, D + 1))
    for agent, turn, arm, reward in lossy.pulls:
        x = arms(agent, turn)[arm]
        sums += np.outer(x, [*x, reward])
    nodes: Any = lossy.engine
    assert lossy.result.totals["expired"] > 0
    assert np.allclose(sum((agent.news for agent in nodes.agents), nodes.server.totals), sums)


@pytest.mark.parametrize("case", cases("share_lin_ucb", {}, {"period": 1}), ids=str)
def test_it_conforms(case: Case) -> None:
    case.check()
