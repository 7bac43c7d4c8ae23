"""Parameters that drift: their paths against plain loops and known moments, and dynamic regret in runs."""

import json
import math
from typing import Any

import numpy as np
import pytest

from coband.simulator.core.randomness.streams import Streams
from coband.simulator.experiments.runs.job import graph_and_world
from coband.simulator.experiments.scenario.loading import loads
from coband.simulator.problems.drift import BLOCK, Brownian, Piecewise, Seasonal, Walk
from coband.simulator.scenario_errors import ScenarioError
from tests.problems.helpers import BALL, POOL, WHOLE_POOL, named_streams, world

THETA = np.array([0.6, -0.3, 0.1])
DRIFTS: list[dict[str, Any]] = [
    {"kind": "piecewise", "at": [3.0, 8.5]},
    {"kind": "walk", "step": 0.2, "interval": 0.5},
    {"kind": "seasonal", "period": 20.0},
]


def redraw(rng: np.random.Generator) -> np.ndarray[Any, Any]:
    return rng.standard_normal(3)


def test_pieces_are_drawn_in_their_order_whoever_asks_first() -> None:
    drift, rng = Piecewise(at=(3.0, 8.5)), named_streams()("world", 0, "drift")
    pieces = [THETA, redraw(rng), redraw(rng)]
    backwards, forwards = (drift.path(THETA, redraw, named_streams()) for _ in range(2))
    times = [0.0, 2.999, 3.0, 8.4, 8.5, 1e300]
    for path, order in ((forwards, times), (backwards, times[::-1])):
        for time in order:
            expected = pieces[sum(time >= moment for moment in (3.0, 8.5))]
            assert np.array_equal(path(time), expected), time


def test_steps_of_brownian_motion_are_independent_and_standard() -> None:
    """Cov(B(s), B(t)) = min(s, t), within blocks and across them; dimensions are the independent samples."""
    many, steps = 8_000, [1, 2, 100, 255, 256, 257, 511, 512, 700, 768, 769, 1000, 1300, 40 * BLOCK + 7]
    motion = Brownian(many, named_streams())
    values = np.array([motion(step) for step in steps]) / np.sqrt(steps)[:, None]
    found = values @ values.T / many
    expected = np.sqrt(np.minimum.outer(steps, steps) / np.maximum.outer(steps, steps))
    assert np.abs(found - expected).max() < 6.0 / math.sqrt(many)
    assert np.abs(values.mean(axis=1)).max() < 5.0 / math.sqrt(many)
    assert np.array_equal(Brownian(3, named_streams())(0), np.zeros(3))


def test_a_walk_depends_on_no_order_and_costs_no_idle_time() -> None:
    steps = [0, 1, 5 * BLOCK + 3, 2, 10**15, 3 * BLOCK, 10**15 + 1]
    forwards, backwards = Brownian(3, named_streams()), Brownian(3, named_streams())
    found = {step: forwards(step) for step in sorted(steps)}
    assert all(np.array_equal(backwards(step), found[step]) for step in sorted(steps, reverse=True))
    assert 0.0 < np.abs(found[10**15 + 1] - found[10**15]).max() < 6.0
    assert 1e6 < np.abs(found[10**15]).max() < 1e9  # sqrt(10^15) = 3.2e7


def test_a_walk_is_reflected_by_a_cube() -> None:
    """Against steps that are taken one by one and turned back at the faces."""
    side, step = 1.0 / math.sqrt(3.0), 0.3
    path, motion = Walk(step=step, interval=2.0).path(THETA, redraw, named_streams()), Brownian(3, named_streams())
    at, before = THETA.copy(), np.zeros(3)
    at = np.where(at > side, 2 * side - at, at)
    signs = np.where(side < THETA, -1.0, 1.0)
    for number in range(1, 600):
        move, before = (motion(number) - before) * step * side, motion(number)
        for axis in range(3):
            at[axis] += signs[axis] * move[axis]
            while abs(at[axis]) > side:
                at[axis] = math.copysign(2.0 * side, at[axis]) - at[axis]
                signs[axis] = -signs[axis]
        assert path(2.0 * number + 1.5) == pytest.approx(at, abs=1e-9), number
        assert path(2.0 * number) is path(2.0 * number + 1.0)


def test_seasons_turn_theta_and_keep_its_length() -> None:
    path = Seasonal(period=4.0).path(THETA, redraw, named_streams())
    length = np.linalg.norm(THETA)
    assert path(0.0) == pytest.approx(THETA)
    assert path(2.0) == pytest.approx(-THETA)
    assert path(1.0) @ THETA == pytest.approx(0.0, abs=1e-12)
    assert all(np.linalg.norm(path(time)) == pytest.approx(length) for time in np.linspace(0.0, 9.0, 31))
    assert path(4e6 + 0.7) == pytest.approx(path(0.7))
    alone = Seasonal(period=4.0).path(np.array([0.5]), redraw, named_streams())
    assert alone(1.0) == pytest.approx([0.0], abs=1e-12)


@pytest.mark.parametrize("arms", [BALL, POOL, WHOLE_POOL], ids=["ball", "part", "pool"])
@pytest.mark.parametrize("drift", DRIFTS, ids=lambda drift: drift["kind"])
def test_regret_is_against_the_best_arm_of_the_moment(arms: dict[str, Any], drift: dict[str, Any]) -> None:
    """By loops over arms, with theta from a path of its own; the arms and the noise are those without drift."""
    parts = {"arms": arms, "reward": {"kind": "linear"}, "noise": 0.3}
    still, one = world(**parts), world(drift=drift, **parts)
    theta = np.array(one.describe()["theta"])
    kind = {"piecewise": Piecewise, "walk": Walk, "seasonal": Seasonal}[drift["kind"]].model_validate(drift)
    path = kind.path(theta, one_of_ball(len(theta)), named_streams())
    clock, variation, before = [0.0], 0.0, path(0.7)  # from the first pull on
    one.follow_clock(lambda: clock[0])  # type: ignore[attr-defined]
    for turn in range(1, 30):
        clock[0] += 0.7
        agent, arm = turn % 2, turn % 3
        features = one.arms(agent, turn)
        assert np.array_equal(features, still.arms(agent, turn))
        now = path(clock[0])
        means = [sum(x * y for x, y in zip(row, now, strict=True)) for row in features]
        reward, regret = one.pull(agent, turn, arm)
        noise = still.pull(agent, turn, arm)[0] - still.means(agent, turn)[arm]
        assert regret == pytest.approx(max(means) - means[arm], abs=1e-12)
        assert reward == pytest.approx(means[arm] + noise, abs=1e-12)
        assert one.means(agent, turn) == pytest.approx(means, abs=1e-12)
        variation, before = variation + float(np.linalg.norm(now - before)), now
    assert one.measures == {"variation": pytest.approx(variation)}  # type: ignore[attr-defined]
    assert variation > 0.1


def one_of_ball(dimension: int) -> Any:
    def drawn(rng: np.random.Generator) -> Any:
        normals = rng.standard_normal(dimension + 2)
        return normals[:dimension] / np.linalg.norm(normals)

    return drawn


SCENARIO = {"name": "drifting", "seed": 3, "agents": {"count": 3}, "schedule": {"kind": "rounds", "turns": 20}}
SCENARIO |= {"algorithms": [{"algorithm": "lin_ucb"}]}
BOX = {"kind": "contextual", "arms": {"kind": "box", "dimension": 2, "count": 5}}


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (
            {**BOX, "reward": {"kind": "linear"}, "drift": {"kind": "piecewise", "at": [3, 2]}},
            "problem.drift.at: at(=[3.0, 2.0]) must be ascending",
        ),
        (
            {**BOX, "reward": {"kind": "rkhs", "kernel": {"kind": "linear"}}, "drift": {"kind": "walk", "step": 1}},
            "problem.drift: it moves the theta of rewards that are functions of x . theta (cosine, linear, "
            "logistic, square, cubic), and reward.kind rkhs has none; choose one of these, or leave drift out",
        ),
        (
            {"kind": "table", "path": "a.csv", "features": ["a"], "reward": "b", "drift": {"kind": "walk", "step": 1}},
            "problem.drift: unknown key; allowed: ",
        ),
    ],
)
def test_what_cannot_drift_says_why(problem: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError) as error:
        loads(json.dumps({**SCENARIO, "problem": problem}))
    assert message in str(error.value)


def test_replications_and_algorithms_meet_the_same_changes() -> None:
    drift = {"kind": "walk", "step": 0.3}
    scenario = loads(json.dumps({**SCENARIO, "problem": {**BOX, "reward": {"kind": "linear"}, "drift": drift}}))
    found = []
    for replication in (0, 0, 1):
        one: Any = graph_and_world(scenario, Streams(3, replication))[1]
        one.follow_clock(lambda: 400.5)
        found.append(one.means(0, 1).tolist())
    assert found[0] == found[1] != found[2]
