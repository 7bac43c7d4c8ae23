"""How alike two agents are, from the arms seen of them: empirical mean embeddings (paper 004, "Kernel Methods for
Cooperative Multi-Agent Contextual Bandits", section 3.3).

    K_z(v, v') = exp(-MMD^p / (2 sigma^2)),   MMD^2 = mean K(x_v, x_v) + mean K(x_v', x_v') - 2 mean K(x_v, x_v')

with means over all pairs of arms; eq. 12 prints sums, without their normalisation. p is 1 in eq. 11; with p = 2 the
kernel is the Gaussian kernel of the mean embeddings. Both are positive semidefinite.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from simulator.maths.kernels import Kernel
from simulator.maths.storage import FloatArray

Trials = tuple[int, ...]


class PairMeans:
    """Means of K over the pairs of arms of two agents, remembered by (agents, numbers of the trials).

    Whoever asks has to give the arms, so what is remembered saves work and tells nothing.
    """

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._means: dict[tuple[int, int, int, int], float] = {}

    def mean(self, first: int, second: int, seen: Mapping[int, tuple[Trials, FloatArray]]) -> float:
        """The mean of K(x, x') over the arms x seen of ``first`` and x' seen of ``second``."""
        (one, X), (other, Y) = seen[first], seen[second]
        if one[-1] != len(one) or other[-1] != len(other):  # trials are missing: nobody else has the same
            return float(np.mean(self._kernel(X, Y)))
        key = (first, second, len(one), len(other))
        if key not in self._means:
            self._means[key] = float(np.mean(self._kernel(X, Y)))
        return self._means[key]


def similarities(means: PairMeans, seen: Mapping[int, tuple[Trials, FloatArray]], agents: int, sigma: float,
                 power: int) -> FloatArray:  # fmt: skip
    """The estimated K_z as a table (agents, agents); agents of whom nothing was seen are like themselves alone.

    Args:
        means: the kernel's means over pairs.
        seen: for each agent the trials, in ascending order, and the arms (n, d) seen of it.
        agents: number of agents.
        sigma: width.
        power: p.
    """
    table = np.eye(agents)
    known = sorted(seen)
    own = {agent: means.mean(agent, agent, seen) for agent in known}
    for index, first in enumerate(known):
        for second in known[index + 1 :]:
            squared = max(0.0, own[first] + own[second] - 2.0 * means.mean(first, second, seen))
            distance = squared if power == 2 else squared**0.5
            table[first, second] = table[second, first] = np.exp(-distance / (2.0 * sigma**2))
    return table
