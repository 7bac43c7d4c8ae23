"""Async-LinUCB-AM: runs are the pseudo-code, rewards are divided, worlds have a common and a personal part."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from coband.agents.linear.async_lin_ucb_am import Regression
from coband.extensions.conformance.runs import PROBLEM, Run, run, world
from coband.simulator.core.nodes.node import UnsupportedScenario
from tests.agents.beside import assert_equal, beside, schedule_of
from tests.every import every
from tests.everyday import everyday
from tests.oracles import async_lin_ucb_am as oracle


def problem_with(dimension: int, personal: int | None, **more: Any) -> dict[str, Any]:
    """Arms in the ball; so many coordinates of theta are personal."""
    arms = {"kind": "ball", "dimension": dimension, "count": 5}
    return {**PROBLEM, "arms": arms, "reward": {"kind": "linear", "theta": "sphere", "personal": personal}, **more}


@cache
def solved(case: int) -> tuple[Run, Any]:
    rng = np.random.default_rng((52, case))
    agents, turns, d = int(rng.integers(1, 6)), int(rng.integers(10, 30)), int(rng.integers(2, 7))
    config = {key: float(rng.choice([1.0, 1.3, 2.0])) for key in ("gamma_u", "gamma_d")}
    config |= {"lam": float(rng.uniform(0.1, 2.0)), "sub_gaussian": 0.3, "delta": 0.2}
    config |= {"norm": float(rng.uniform(0.3, 1)), "steps": int(rng.choice([1, 3, 50]))}
    config |= {"alpha": ["theory", 0.5][int(rng.integers(2))], "refresh": ["at_once", "at_next_pull"][case % 2]}
    config["shared"] = [None, int(rng.integers(1, d))][int(rng.integers(2))] if d > 2 else 1
    problem = problem_with(d, int(rng.integers(0, d)) or None, noise=float(rng.uniform(0, 0.3)))
    schedule = schedule_of(case % 2, agents, turns)
    return beside(
        "async_lin_ucb_am", oracle, config, {"agents": agents, "seed": case, "problem": problem, "schedule": schedule}
    )


@every("case", everyday(8, range(24)))
def test_a_run_without_delays_is_the_pseudo_code(case: int) -> None:
    simulated, expected = solved(case)
    assert_equal(simulated, expected)
    totals = simulated.result.totals
    assert (totals["uplink_scalars"], totals["downlink_scalars"]) == (expected.uplink, expected.downlink)
    assert totals["bits"] == 64 * totals["scalars"]


def test_the_random_cases_exchange() -> None:
    runs = [solved(case)[0].result for case in range(8)]
    assert max(result.rounds for result in runs) >= 10
    assert max(result.totals["downloads"] for result in runs) >= 10


def test_least_squares_with_one_more_pull_is_that_of_all_pulls() -> None:
    rng = np.random.default_rng(0)
    X, y, x = rng.standard_normal((9, 4)), rng.standard_normal(9), rng.standard_normal(4)
    for norm, part in ((100.0, 0.3), (0.2, -1.7)):
        theta = np.linalg.lstsq(np.vstack([X, x]), np.append(y, part), rcond=None)[0]
        theta *= min(1.0, norm / np.linalg.norm(theta))
        assert Regression(X.T @ X, X.T @ y, x, norm).value(part) == pytest.approx(x @ theta)


def test_sums_that_say_nothing_of_a_direction_or_are_damaged_have_a_pseudoinverse() -> None:
    rng = np.random.default_rng(1)
    X, x = rng.standard_normal((2, 4)), rng.standard_normal(4)
    flipped = (X.T * [1.0, -3.0]) @ X  # as an encoding or a liar may make it
    for A in (np.zeros((4, 4)), X.T @ X, flipped, -50.0 * np.eye(4)):
        b = A @ rng.standard_normal(4)
        theta = np.linalg.pinv(A + np.outer(x, x), rcond=1e-9, hermitian=True) @ (b + 0.7 * x)
        assert Regression(A, b, x, 1e9).value(0.7) == pytest.approx(x @ theta)
    with pytest.raises(np.linalg.LinAlgError, match="no eigenvalues"):
        Regression(np.full((3, 3), np.nan), np.ones(3), np.ones(3), 1.0)


def test_agents_have_one_common_part_and_parts_of_their_own() -> None:
    """theta by least squares on means, of two agents."""
    drawn, found = world(problem_with(5, 2), 3, 2), []
    for agent in (1, 0):
        pairs = [(drawn.arms(agent, turn), drawn.means(agent, turn)) for turn in range(1, 9)]
        X, means = (np.concatenate(column) for column in zip(*pairs, strict=True))
        found.append(np.linalg.lstsq(X, means, rcond=None)[0])
    assert found[0][:3] == pytest.approx(found[1][:3])
    assert np.abs(found[0][3:] - found[1][3:]).min() > 0.01
    assert [np.linalg.norm(part) for theta in found for part in (theta[:3], theta[3:])] == pytest.approx([1.0] * 4)


@every("given, message", [
    ({"kind": "fixed_domain", "domain": {"kind": "ball", "dimension": 3, "points": 9}}, "problem.kind: contextual"),
    ({"arms": {"kind": "pool", "dimension": 3, "size": 9}}, "of a pool, give arms.count"),
    ({"arms": {"kind": "ball", "dimension": 1, "count": 9}}, r"personal\(=1\) must be less than the 1 dimensions"),
    ({"drift": {"kind": "piecewise", "at": [1.0]}}, "leave out drift, or reward.personal"),
])  # fmt: skip
def test_what_a_personal_part_does_not_go_with_is_said(given: dict[str, Any], message: str) -> None:
    problem = problem_with(3, 1) | given
    if "domain" in problem:
        del problem["arms"]
    with pytest.raises(ValidationError, match=message):
        world(problem, 0, 2)


def test_a_common_part_of_all_features_is_refused() -> None:
    with pytest.raises(UnsupportedScenario, match=r"needs more than shared\(=3\) features; arms have 3"):
        run("async_lin_ucb_am", {"shared": 3})
