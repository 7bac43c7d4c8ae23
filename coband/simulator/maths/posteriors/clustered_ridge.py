"""Ridge regressions of agents that share their data as long as their estimates are close.

CLUB ("Online Clustering of Bandits", Gentile, Li and Zappella 2014, figure 1). Each agent i has
M_i = lam I + sum x x^T, b_i = sum y x and w_i = M_i^(-1) b_i of its own T_i observations. A graph of agents begins with
given links. After an observation of agent i each link (i, l) with

    ||w_i - w_l|| > r_i + r_l,   r_i = alpha_2 sqrt((1 + log(1 + T_i)) / (1 + T_i))

is deleted for good. Clusters are the connected components that are left; a cluster has the M and b of all data of its
agents. Since links go, data leave a cluster again, so that this is not a posterior in the sense of ``protocol``.
"""

from __future__ import annotations

import numpy as np

from coband.simulator.arrays import BoolArray, FloatArray, IndexArray
from coband.simulator.maths.linalg.matrices import definite


class ClusteredRidge:
    """The regressions of N agents and the links between them.

    Args:
        links: symmetric (N, N), the links in the beginning.
        alpha_2: factor of the radii r.

    Attributes:
        links: which are left, (N, N), True on the diagonal.
    """

    def __init__(self, links: BoolArray, dimension: int, lam: float, alpha_2: float) -> None:
        agents = len(links)
        self.links = links.copy()
        np.fill_diagonal(self.links, True)
        self._lam, self._alpha_2 = lam, alpha_2
        self._A = np.zeros((agents, dimension, dimension))
        self._b = np.zeros((agents, dimension))
        self._w = np.zeros((agents, dimension))
        self._counts = np.zeros(agents)

    def update(self, numbers: IndexArray, X: FloatArray, y: FloatArray) -> None:
        """Learn observations of agents ``numbers`` (n,) at X (n, d) with rewards y (n,), one after the other."""
        start, seen = 0, set[int]()
        for position, number in enumerate(numbers.tolist()):
            if number in seen:
                self._learn(numbers[start:position], X[start:position], y[start:position])
                start, seen = position, set()
            seen.add(number)
        if seen:
            self._learn(numbers[start:], X[start:], y[start:])

    def _learn(self, numbers: IndexArray, X: FloatArray, y: FloatArray) -> None:
        """Observations of different agents.

        When agent p is tested, those after it in ``numbers`` have their old estimates. They meet p's new one again when
        they are tested themselves.
        """
        before, radii_before = self._w[numbers], self._radii()[numbers]
        self._A[numbers] += X[:, :, None] * X[:, None, :]
        self._b[numbers] += y[:, None] * X
        self._counts[numbers] += 1.0
        M = self._A[numbers] + self._lam * np.eye(X.shape[1])
        self._w[numbers] = definite(np.linalg.solve, M, self._b[numbers][:, :, None])[:, :, 0]
        estimates, radii = self._w[numbers], self._radii()
        from scipy.spatial.distance import cdist  # slow to import, and only CLUB needs it

        far = cdist(estimates, self._w) > radii[numbers, None] + radii
        earlier = np.triu(cdist(estimates, before) > radii[numbers, None] + radii_before, 1)
        far[:, numbers] |= earlier | earlier.T
        self.links[numbers] &= ~far
        self.links[:, numbers] &= ~far.T

    def _radii(self) -> FloatArray:
        return self._alpha_2 * np.sqrt((1.0 + np.log1p(self._counts)) / (1.0 + self._counts))

    def _component(self, agent: int) -> BoolArray:
        """Who is connected with an agent, (N,)."""
        inside: BoolArray = self.links[agent]
        while True:
            reached: BoolArray = np.logical_or.reduce(self.links[inside])
            if np.array_equal(reached, inside):
                return inside
            inside = reached

    @property
    def clusters(self) -> int:
        return len({self._component(agent).tobytes() for agent in range(len(self.links))})

    def predict(self, agent: int, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """w^T x and x^T M^(-1) x of an agent's cluster at n arms X (n, d), each (n,)."""
        inside = self._component(agent)
        M = self._A[inside].sum(axis=0)
        M.flat[:: len(M) + 1] += self._lam
        solved = definite(np.linalg.solve, M, np.column_stack([X.T, self._b[inside].sum(axis=0)]))
        variance = np.maximum(np.einsum("ij,ji->i", X, solved[:, :-1]), 0.0)
        return X @ solved[:, -1], variance
