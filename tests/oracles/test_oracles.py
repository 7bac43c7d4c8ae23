"""The oracles themselves: closed forms, hand-checked runs, and the cases where two algorithms must coincide."""

from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from tests.oracles import (
    SERVER,
    OracleRun,
    Turns,
    World,
    approx_dis_kernel_ucb,
    async_kernel_ucb,
    dis_kernel_ucb,
    one_kernel_ucb,
)
from tests.oracles.posterior import (
    Dictionary,
    FloatArray,
    Kernel,
    Point,
    exact,
    log_det,
    nystroem,
    statistics,
    transfer,
)
from tests.oracles.turns import BallWorld, TableWorld, ball, coins, gaussian, linear, rounds

EVERYTHING = 1e12
"""A sampling factor q that takes every point that is not known already."""
ONE_POINT = TableWorld([[1.0, 0.0]], [1.0])


def play(
    module: ModuleType, turns: Turns, world: World, kernel: Kernel | None = None, agents: int = 3, **config: float
) -> OracleRun:
    options = SimpleNamespace(**{"alpha": 0.5, "lam": 1.0, "threshold": 1.0, "q": 1.0, **config})
    result = module.run(turns, world, kernel or gaussian(1.0), options, coins(5), agents)
    assert isinstance(result, OracleRun)
    return result


def some_data(seed: int, count: int, dimension: int = 3) -> list[Point]:
    rng = np.random.default_rng(seed)
    return [(x, float(rng.standard_normal())) for x in ball(rng, count, dimension)]


def pulled(run: OracleRun, world: World) -> list[Point]:
    return [(world.arms(agent, turn)[arm], reward) for agent, turn, arm, reward, _ in run.pulls]


def close(left: tuple[FloatArray, FloatArray], right: tuple[FloatArray, FloatArray]) -> bool:
    return bool(np.allclose(left[0], right[0], atol=1e-8) and np.allclose(left[1], right[1], atol=1e-8))


def test_posterior_of_one_point_by_hand() -> None:
    x = np.array([1.0, 0.0])
    mu, sigma = exact(x[None, :], [(x, 2.0)], gaussian(1.0), lam=0.5)
    assert mu[0] == pytest.approx(2 / 1.5)  # k / (k + lam) * y
    assert sigma[0] ** 2 == pytest.approx(1 / 1.5)  # (1 - 1 / 1.5) / 0.5
    assert log_det([(x, 2.0)], gaussian(1.0), lam=0.5) == pytest.approx(np.log(3))


def test_exact_posterior_is_ridge_regression_for_the_linear_kernel() -> None:
    data, X, lam = some_data(1, 12), ball(np.random.default_rng(2), 5, 3), 0.3
    phi = np.array([x for x, _ in data])
    V = phi.T @ phi + lam * np.eye(3)
    theta = np.linalg.solve(V, phi.T @ np.array([y for _, y in data]))
    sigma = np.sqrt([x @ np.linalg.solve(V, x) for x in X])
    assert close(exact(X, data, linear, lam), (X @ theta, sigma))


def test_nystroem_with_every_point_in_the_dictionary_is_exact() -> None:
    data, X, kernel = some_data(3, 10), ball(np.random.default_rng(4), 6, 3), gaussian(1.0)
    S = Dictionary([x for x, _ in data], kernel)
    assert close(nystroem(X, statistics(data, S), 0.7), exact(X, data, kernel, 0.7))


def test_nystroem_with_a_part_of_the_points_is_ridge_regression_on_their_span() -> None:
    points = [np.array([1.0, 0.0, 0.0]), np.array([1.0, 1.0, 0.0])]
    data, X, lam = some_data(3, 10), ball(np.random.default_rng(4), 6, 3), 0.7
    P = np.diag([1.0, 1.0, 0.0])  # the projection on the span of the dictionary
    phi = np.array([x for x, _ in data]) @ P
    V = phi.T @ phi + lam * np.eye(3)
    mu = X @ P @ np.linalg.solve(V, phi.T @ np.array([y for _, y in data]))
    sigma2 = [(x @ x - x @ P @ phi.T @ phi @ np.linalg.solve(V, P @ x)) / lam for x in X]
    assert close(nystroem(X, statistics(data, Dictionary(points, linear)), lam), (mu, np.sqrt(sigma2)))


def test_transfer_is_the_identity_between_equal_dictionaries() -> None:
    S = Dictionary([x for x, _ in some_data(3, 5)], gaussian(1.0))
    assert np.allclose(transfer(S, S), np.eye(5), atol=1e-10)


def test_transfer_keeps_statistics_of_points_in_the_old_span() -> None:
    data, kernel = some_data(3, 8), gaussian(1.0)
    old, new = Dictionary([x for x, _ in data[:5]], kernel), Dictionary([x for x, _ in data], kernel)
    T, before, direct = transfer(old, new), statistics(data[:5], old), statistics(data[:5], new)
    assert np.allclose(T.T @ before.A @ T, direct.A, atol=1e-10)
    assert np.allclose(T.T @ before.b, direct.b, atol=1e-10)


@pytest.mark.parametrize(("threshold", "pulls_until_exchange"), [(2.5, 3), (3.0, 4)])
def test_async_first_trigger_by_hand(threshold: float, pulls_until_exchange: int) -> None:
    """Without a model every sigma^2 is k/lam = 1, and the sum must be strictly greater than the threshold."""
    before = play(async_kernel_ucb, [[0]] * (pulls_until_exchange - 1), BallWorld(1), threshold=threshold)
    after = play(async_kernel_ucb, [[0]] * pulls_until_exchange, BallWorld(1), threshold=threshold)
    assert (before.rounds, after.rounds) == (0, 1)


def test_async_later_triggers_use_the_new_model_by_hand() -> None:
    """One point only, lam = 1: after an exchange with n pulls known, sigma^2 = 1/(n + 1).

    The threshold 0.6 is passed by pull 1 (sigma^2 = 1), then by 1/2 + 1/2 (pull 3, n = 3), then by 1/4 * 3 (pull 6),
    then by 1/7 * 5 (pull 11).
    """
    counts = [play(async_kernel_ucb, [[0]] * n, ONE_POINT, threshold=0.6, q=EVERYTHING).rounds for n in range(1, 12)]
    assert counts == [1, 1, 2, 2, 2, 3, 3, 3, 3, 3, 4]


def test_async_one_exchange_message_by_message() -> None:
    run = play(async_kernel_ucb, [[2], [2], [0], [0]], BallWorld(1), threshold=1.5, q=EVERYTHING, agents=3)
    assert run.messages == [
        ("request", 2, SERVER, 0),
        ("dictionary", SERVER, 2, 0),
        ("upload", 2, SERVER, 2 * 4 + 4 + 2),
        ("model", SERVER, 2, 4 + 2),
        ("request", 0, SERVER, 0),
        ("dictionary", SERVER, 0, 2 * 4 + 4 + 2),
        ("upload", 0, SERVER, 2 * 4 + 16 + 4),
        ("model", SERVER, 0, 16 + 4),
    ]


def test_async_samples_by_the_servers_newest_deviation_and_one_coin_per_point() -> None:
    """The second exchange happens after another agent's: agent 0 has no model yet, the server has one."""
    world, q, kernel = BallWorld(3), 0.6, gaussian(0.3)
    run = play(async_kernel_ucb, [[1]] * 8 + [[0]] * 8, world, kernel, threshold=7.5, q=q)
    points = pulled(run, world)
    first = [x for (x, _), u in zip(points[:8], coins(5)(1).random(8), strict=True) if u < q]
    model = statistics(points[:8], Dictionary(first, kernel))
    sigma = nystroem(np.array([x for x, _ in points[8:]]), model, 1.0)[1]
    u = coins(5)(0).random(8)
    second = [x for (x, _), ux, s in zip(points[8:], u, sigma, strict=True) if ux < q * s**2]
    assert len(second) < np.sum(u < q), "the server's model must matter in this case"
    assert run.rounds == 2
    assert run.server is not None
    assert np.array_equal(run.server.dictionary.points, first + second)


def test_approx_dis_one_synchronisation_message_by_message() -> None:
    """Pulls 1 and 2 of agent 1 pass the threshold; agent 0 has one point, agent 2 none. All three are sampled."""
    run = play(approx_dis_kernel_ucb, [[0], [1], [1]], BallWorld(1), threshold=1.5, q=EVERYTHING)
    down, up = [(SERVER, i) for i in range(3)], [(i, SERVER) for i in range(3)]
    assert run.messages == [
        ("sync_request", 1, SERVER, 0),
        *[("sync_start", *ends, 0) for ends in down],
        ("sample", 0, SERVER, 3),
        ("sample", 1, SERVER, 6),
        ("sample", 2, SERVER, 0),
        *[("dictionary", *ends, 3 * 3) for ends in down],
        *[("statistics", *ends, 9 + 3) for ends in up],
        *[("model", *ends, 9 + 3) for ends in down],
    ]


@pytest.mark.parametrize(("threshold", "expected"), [(1.99, 1), (2.0, 0)])
def test_approx_dis_first_trigger_is_strict(threshold: float, expected: int) -> None:
    assert play(approx_dis_kernel_ucb, [[0], [0], [1]], BallWorld(1), threshold=threshold).rounds == expected


def test_approx_dis_keeps_the_trigger_deviation_of_the_last_synchronisation() -> None:
    """One point only, lam = 1, threshold 0.6: as in the asynchronous case, own new points do not lower sigma_last."""
    counts = [
        play(approx_dis_kernel_ucb, [[0]] * n, ONE_POINT, threshold=0.6, q=EVERYTHING, agents=2).rounds
        for n in range(1, 12)
    ]
    assert counts == [1, 1, 2, 2, 2, 3, 3, 3, 3, 3, 4]


def test_approx_dis_agents_use_their_own_new_points() -> None:
    """A dictionary that spans all arms: agents know the synchronised data of all and their own new points, exactly."""
    world = TableWorld([[1.0, 0.0], [0.0, 1.0]], [0.5, 0.4])
    turns = [[0], [0], [0], [1], [2], [1]]
    run = play(approx_dis_kernel_ucb, turns, world, linear, threshold=2.5, q=EVERYTHING, alpha=0.0, lam=1.0)
    assert run.rounds == 1
    X, points = np.array([[1.0, 0.0]]), pulled(run, world)
    assert close(run.posterior_of_server(X), exact(X, points[:3], linear, 1.0))
    assert close(run.posterior_of(0, X), exact(X, points[:3], linear, 1.0))
    assert close(run.posterior_of(1, X), exact(X, [*points[:4], points[5]], linear, 1.0))
    assert close(run.posterior_of(2, X), exact(X, [*points[:3], points[4]], linear, 1.0))


def test_approx_dis_samples_all_local_points_again_in_agent_order() -> None:
    """Synchronisations after rounds 2 and 4; the second samples the points of all four rounds, by the first's model."""
    world, q, kernel = BallWorld(3), 0.7, gaussian(1.0)
    before = play(approx_dis_kernel_ucb, rounds(2, 2), world, threshold=1.5, q=q, agents=2)
    run = play(approx_dis_kernel_ucb, rounds(2, 4), world, threshold=1.5, q=q, agents=2)
    points = pulled(run, world)
    streams = [coins(5)(i) for i in range(2)]
    first = [x for i in range(2) for (x, _), u in zip(points[i:4:2], streams[i].random(2), strict=True) if u < q]
    last = statistics(points[:4], Dictionary(first, kernel))
    second = []
    for i in range(2):
        own = np.array([x for x, _ in points[i::2]])
        taken = streams[i].random(4) < q * nystroem(own, last, 1.0)[1] ** 2
        second += list(own[taken])
    assert (before.rounds, run.rounds) == (1, 2)
    assert before.server is not None
    assert run.server is not None
    assert np.array_equal(before.server.dictionary.points, first)
    assert np.array_equal(run.server.dictionary.points, second)
    X = ball(np.random.default_rng(9), 7, 3)
    assert close(run.posterior_of_server(X), nystroem(X, statistics(points, Dictionary(second, kernel)), 1.0))


@pytest.mark.parametrize(("threshold", "expected"), [(0.69, 1), (0.70, 0)])
def test_dis_first_trigger_by_hand(threshold: float, expected: int) -> None:
    """One point, k = lam = 1: 1 * log(2 / 1) = 0.693."""
    assert play(dis_kernel_ucb, [[0]], ONE_POINT, threshold=threshold).rounds == expected


def test_dis_trigger_is_strict() -> None:
    """The zero vector carries no information: 1 * log(1) = 0 is not greater than 0."""
    assert play(dis_kernel_ucb, [[0]], TableWorld([[0.0, 0.0]], [1.0]), linear, threshold=0.0).rounds == 0


def test_dis_later_triggers_by_hand() -> None:
    """The same point n times: det(I + K) = 1 + n. Threshold 2: 2 log(3) = 2.197 at pull 2; then 3 log(6/3) = 2.079."""
    counts = [play(dis_kernel_ucb, [[0]] * n, ONE_POINT, threshold=2.0).rounds for n in range(1, 6)]
    assert counts == [0, 1, 1, 1, 2]


def test_dis_one_synchronisation_message_by_message() -> None:
    run = play(dis_kernel_ucb, [[1], [0], [1]], ONE_POINT, threshold=2.0)
    assert run.messages == [
        ("sync_request", 1, SERVER, 0),
        *[("sync_start", SERVER, i, 0) for i in range(3)],
        *[("points", i, SERVER, n * 3) for i, n in enumerate([1, 2, 0])],
        *[("missing_points", SERVER, i, n * 3) for i, n in enumerate([2, 1, 3])],
    ]


def test_one_kernel_ucb_message_by_message() -> None:
    run = play(one_kernel_ucb, [[1]], BallWorld(1))
    assert run.messages == [("point", 1, SERVER, 4), ("point", SERVER, 0, 4), ("point", SERVER, 2, 4)]
