"""Scores with arms left out and solves prepared: the largest ones, and all exact ties, are those of the dense solve."""

from collections import deque
from collections.abc import Iterator

import numpy as np
import pytest

from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray
from coband.simulator.maths.kernels.library import Gaussian, Kernel, Linear, Matern
from coband.simulator.maths.linalg.cholesky import GrowingCholesky
from coband.simulator.maths.posteriors import look_ahead
from coband.simulator.maths.posteriors.observations import Observations
from coband.simulator.maths.posteriors.shared_log import ExactPosterior, LogPosterior, SharedLog
from tests.every import every
from tests.everyday import everyday
from tests.maths.test_exact import dense, dense_log_det

ALPHA = 0.3


@pytest.fixture(autouse=True)
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fast form from 20 rows on, with a base that moves often."""
    monkeypatch.setattr(look_ahead, "FEWEST_ROWS", 20)
    monkeypatch.setattr(look_ahead, "MOST_PENDING", 15)
    monkeypatch.setattr(look_ahead, "MOST_IDLE", 2)
    monkeypatch.setattr(look_ahead, "SETS_AT_ONCE", 3)


def arm_sets(rng: np.random.Generator, count: int, repeats: bool) -> list[ArmSet]:
    """Arm sets of 7 arms; with ``repeats`` two of them are equal, and points come again in other sets."""
    sets = []
    for _ in range(count):
        features = rng.normal(size=(7, 3)) / 1.5
        if repeats:
            features = np.round(features) + 0.0  # no negative zeros
            features[5] = features[2]
        sets.append(ArmSet(features))
    return sets


def reward(x: FloatArray, rng: np.random.Generator) -> float:
    return float(np.cos(2.0 * x.sum()) + 0.1 * rng.standard_normal())


def assert_same_decision(
    scores: FloatArray, kernel: Kernel, lam: float, X: FloatArray, y: FloatArray, arms: ArmSet
) -> None:
    """Scores that are given are exact, and those left out are below the largest."""
    mean, deviation = dense(kernel, lam, X, y, arms.features)
    expected = mean + ALPHA * deviation
    given = np.isfinite(scores)
    np.testing.assert_allclose(scores[given], expected[given], atol=1e-9)
    assert (expected[~given] < expected.max()).all()
    np.testing.assert_allclose(scores.max(), expected.max(), atol=1e-9)
    for place in np.flatnonzero((scores == scores.max()) & (not given.all())):
        same = (arms.features == arms.features[place]).all(axis=1)
        assert (scores[same] == scores[place]).all(), "equal arms tie where some are left out"


def looking_ahead(posterior: ExactPosterior | LogPosterior, sets: list[ArmSet], ahead: int) -> Iterator[ArmSet]:
    """The arm sets turn by turn, each announced ``ahead`` turns before (0: never)."""
    coming: deque[ArmSet] = deque()
    for arms in [*sets, *[None] * ahead]:
        if arms is not None:
            coming.append(arms)
            if ahead:
                posterior.look_ahead(arms)
        if arms is None or len(coming) > ahead:
            yield coming.popleft()


@every("kernel", [Gaussian(gamma=1.0), Matern(nu=1.5, length_scale=0.8), Linear(bias=0.5)], ids=repr)
@every("ahead", [0, 1, 6])
@every("repeats", [False, True])
def test_a_single_agent_decides_as_with_a_dense_solve(kernel: Kernel, ahead: int, repeats: bool) -> None:
    rng, lam = np.random.default_rng(ahead), 0.5
    posterior, X, y, left_out = ExactPosterior(kernel, lam), [], [], 0
    for arms in looking_ahead(posterior, arm_sets(rng, 80, repeats), ahead):
        scores = posterior.scores(arms, ALPHA)
        if X:
            assert_same_decision(scores, kernel, lam, np.array(X), np.array(y), arms)
        left_out += int(np.isinf(scores).sum())
        arm = int(scores.argmax())
        X.append(arms.features[arm])
        y.append(reward(X[-1], rng))
        posterior.update(Observations(arms.select(arm), np.array(y[-1:])))
    assert left_out > 50
    assert posterior.log_det == pytest.approx(dense_log_det(kernel, lam, np.array(X)), rel=1e-9)


@every("seed", everyday(3, range(6)))
@every("repeats", [False, True])
def test_agents_on_a_log_decide_as_with_a_dense_solve_of_what_they_know(seed: int, repeats: bool) -> None:
    """Five agents act in random order, see two turns ahead, and learn the log at random times, some of them late."""
    rng, lam, kernel = np.random.default_rng(seed), 1.0, Gaussian(gamma=0.7)
    log = SharedLog(kernel, lam)
    agents = [LogPosterior(log) for _ in range(5)]
    coming = [deque(arm_sets(rng, 2, repeats)) for _ in agents]
    for agent, sets in zip(agents, coming, strict=True):
        for arms in sets:
            agent.look_ahead(arms)
    X, y = np.empty((0, 3)), np.empty(0)
    own: list[list[int]] = [[] for _ in agents]
    left_out = 0
    for _ in range(110):
        number = int(rng.integers(5))
        agent, known = agents[number], agents[number].known
        # The log has the points of all agents in the order in which they were pulled.
        if rng.random() < (0.9 if number else 0.2):
            known = int(rng.integers(max(known, len(X) - 3), len(X) + 1))
            log.extend(agent.known, Observations(X[agent.known : known], y[agent.known : known]))
            agent.adopt(known, sum(row < known for row in own[number]))
            own[number] = [row for row in own[number] if row >= known]
        arms = coming[number].popleft()
        scores = agent.scores(arms, ALPHA)
        rows = [*range(known), *own[number]]
        if rows:
            assert_same_decision(scores, kernel, lam, X[rows], y[rows], arms)
        left_out += int(np.isinf(scores).sum())
        arm = int(scores.argmax())
        value = reward(arms.features[arm], rng)
        agent.update(Observations(arms.select(arm), np.array([value])))
        own[number].append(len(X))
        X, y = np.vstack([X, arms.features[arm]]), np.append(y, value)
        coming[number] += arm_sets(rng, 1, repeats)
        agent.look_ahead(coming[number][-1])
        prefix = dense_log_det(kernel, lam, X[:known]) if known else 0.0
        whole = dense_log_det(kernel, lam, X[[*range(known), *own[number]]])
        assert agent.log_det_gain == pytest.approx(whole - prefix, abs=1e-8), "triggers see the exact variance"
    assert left_out > 30


def test_a_ridge_too_small_for_weights_solves_for_all_arms() -> None:
    rng, lam, kernel = np.random.default_rng(1), 1e-6, Gaussian(gamma=1.0)
    posterior = ExactPosterior(kernel, lam)
    X = rng.normal(size=(40, 3))
    posterior.update(Observations(X, rng.normal(size=40)))
    arms = arm_sets(rng, 1, False)[0]
    mean, variance = posterior.predict(arms)
    np.testing.assert_array_equal(posterior.scores(arms, ALPHA), mean + ALPHA * np.sqrt(variance))


@pytest.mark.parametrize("rows", [1, 5, 300, 700])
def test_solves_with_the_factor_can_be_transposed_and_resumed(rows: int) -> None:
    rng = np.random.default_rng(2)
    root = rng.normal(size=(rows, rows))
    factor = GrowingCholesky(0.5)
    factor.append(np.empty((rows, 0)), root @ root.T / rows)
    L = np.linalg.cholesky(root @ root.T / rows + 0.5 * np.eye(rows))
    B = rng.normal(size=(rows, 3))
    np.testing.assert_allclose(factor.solve_transposed(B), np.linalg.solve(L.T, B), atol=1e-9)
    part = rows // 3
    tail = np.linalg.solve(L[part:, part:].T, B[part:])
    np.testing.assert_allclose(factor.solve_transposed(B[part:], part), tail, atol=1e-9)
    V = factor.solve(B)
    np.testing.assert_allclose(factor.resume(V[:part], B[part:]), V[part:], atol=1e-9)
    np.testing.assert_allclose(factor.rows(part, rows), L[part:], atol=1e-9)
