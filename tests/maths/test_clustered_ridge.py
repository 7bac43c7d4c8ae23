"""Ridge estimates of clusters against plain sums."""

import numpy as np

from coband.simulator.maths.posteriors.clustered_ridge import ClusteredRidge


def test_a_cluster_estimates_from_the_sums_of_its_agents() -> None:
    rng = np.random.default_rng(0)
    links = np.zeros((4, 4), dtype=bool)
    links[0, 1] = links[1, 0] = links[2, 3] = links[3, 2] = True
    ridge = ClusteredRidge(links, 3, 0.5, 1e9)  # whose radii part nobody
    numbers, X, y = rng.integers(4, size=30), rng.random((30, 3)), rng.random(30)
    ridge.update(numbers, X, y)
    assert ridge.clusters == 2
    points = rng.random((5, 3))
    for agent, members in ((0, (0, 1)), (3, (2, 3))):
        M, b = 0.5 * np.eye(3), np.zeros(3)
        for number, x, reward in zip(numbers, X, y, strict=True):
            if number in members:
                M, b = M + np.outer(x, x), b + reward * x
        mean, variance = ridge.predict(agent, points)
        np.testing.assert_allclose(mean, [x @ np.linalg.inv(M) @ b for x in points])
        np.testing.assert_allclose(variance, [x @ np.linalg.inv(M) @ x for x in points])


def test_agents_whose_estimates_are_far_apart_lose_their_links() -> None:
    """Estimates 1/2 and -1/2 in one coordinate, lam = 1: they part where 1 > 2 alpha_2 sqrt((1 + ln 2) / 2)."""
    for alpha_2, clusters in ((0.54, 2), (0.55, 1)):
        ridge = ClusteredRidge(np.ones((2, 2), dtype=bool), 1, 1.0, alpha_2)
        ridge.update(np.array([0, 1]), np.ones((2, 1)), np.array([1.0, -1.0]))
        assert ridge.clusters == clusters
        assert ridge.links.tolist() == [[True, clusters == 1], [clusters == 1, True]]
