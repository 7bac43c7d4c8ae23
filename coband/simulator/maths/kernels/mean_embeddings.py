"""How alike two agents are, from the arms seen of them: empirical mean embeddings (Dubey and Pentland 2020, "Kernel
Methods for Cooperative Multi-Agent Contextual Bandits", section 3.3).

    K_z(v, v') = exp(-MMD^p / (2 sigma^2)),   MMD^2 = mean K(x_v, x_v) + mean K(x_v', x_v') - 2 mean K(x_v, x_v')

with means over all pairs of arms; eq. 12 prints sums, without their normalisation. p is 1 in eq. 11; with p = 2 the
kernel is the Gaussian kernel of the mean embeddings. Both are positive semidefinite.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from coband.simulator.arrays import FloatArray, IndexArray
from coband.simulator.maths.kernels.library import Kernel, Linear
from coband.simulator.maths.linalg.caches import RecentCache

Trials = tuple[int, ...]
Seen = Mapping[int, tuple[Trials, FloatArray]]
"""The trials of each agent heard, in ascending order, and the arms (n, d) seen."""

KEPT = 16
"""Tables of means that are remembered, by the numbers of trials."""


class PairMeans:
    """Means of K over the pairs of arms of two agents, remembered by (agents, numbers of the trials).

    A pure cache: whoever asks has to give the arms.

    Args:
        kernel: K.
    """

    def __init__(self, kernel: Kernel, agents: int) -> None:
        self._kernel = kernel
        self._agents = agents
        self._tables: RecentCache[FloatArray] = RecentCache(KEPT)

    def table(self, heard: Sequence[int], seen: Seen) -> FloatArray:
        """The means of K(x, x') over the arms x seen of one agent and x' seen of another, (n, n) for n agents."""
        numbers, means = np.array(heard), np.empty((len(heard), len(heard)))
        lengths = np.array([len(seen[agent][0]) if _complete(seen[agent][0]) else 0 for agent in heard])
        for one in np.unique(lengths):
            for other in np.unique(lengths[lengths >= one]):
                rows, columns = np.flatnonzero(lengths == one), np.flatnonzero(lengths == other)
                block = self._block(int(one), int(other), numbers[rows], numbers[columns], seen)
                means[np.ix_(rows, columns)] = block
                means[np.ix_(columns, rows)] = block.T
        return means

    def _block(self, one: int, other: int, rows: IndexArray, columns: IndexArray, seen: Seen) -> FloatArray:
        """The means of agents of whom the first ``one`` trials were seen with those of whom ``other`` were.

        A length of 0 says that trials are missing, so that nobody else has the same.
        """
        table = self._tables.get((one, other), self._unknown) if one and other else self._unknown()
        at = np.ix_(rows, columns)
        for row, column in np.argwhere(np.isnan(table[at])).tolist():
            first, second = int(rows[row]), int(columns[column])
            if one != other or first <= second:
                table[first, second] = self._mean(seen[first][1], seen[second][1])
                if one == other:
                    table[second, first] = table[first, second]
        return table[at]

    def _unknown(self) -> FloatArray:
        return np.full((self._agents, self._agents), np.nan)

    def _mean(self, X: FloatArray, Y: FloatArray) -> float:
        if isinstance(self._kernel, Linear):  # the mean of x.y + b is that of the means
            X, Y = X.mean(axis=0, keepdims=True), Y.mean(axis=0, keepdims=True)
        return float(np.mean(self._kernel(X, Y)))


def similarities(means: PairMeans, seen: Seen, agents: int, sigma: float, power: int) -> FloatArray:
    """The estimated K_z as a table (agents, agents); agents of whom nothing was seen are like themselves alone.

    Args:
        seen: what was seen of each agent heard.
        sigma: width.
        power: p.
    """
    table, heard = np.eye(agents), sorted(seen)
    of_pairs = means.table(heard, seen)
    own = np.diagonal(of_pairs)
    squared = np.maximum(own[:, None] + own - 2.0 * of_pairs, 0.0)
    distance = squared if power == 2 else np.sqrt(squared)
    table[np.ix_(heard, heard)] = np.exp(-distance / (2.0 * sigma**2))
    return table


def _complete(trials: Trials) -> bool:
    """Whether these are the first trials without a gap."""
    return trials[-1] == len(trials)
