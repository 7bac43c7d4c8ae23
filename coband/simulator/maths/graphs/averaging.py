"""Averaging matrices of graphs: row v has the weights by which node v averages its value with its neighbours'."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from coband.simulator.arrays import FloatArray

Weights = Literal["metropolis", "max_degree", "neighbours", "n"]
"""What the weight of a link is made of; see `averaging_matrix`."""


def averaging_matrix(adjacency: Sequence[Sequence[int]], weights: Weights) -> FloatArray:
    """W (N, N): the weight of the link of v and u is

    * ``metropolis``: 1 / (1 + max(d_v, d_u)),
    * ``max_degree``: 1 / (1 + the largest degree),
    * ``neighbours``: 1 / (1 + d_v), of which only the rows sum to 1,
    * ``n``: 1 / N, so that W = I - Laplacian / N,

    where d is a degree; what is missing to 1 is on the diagonal.

    Examples:
        >>> averaging_matrix([[1], [0, 2], [1]], "max_degree").round(2).tolist()
        [[0.67, 0.33, 0.0], [0.33, 0.33, 0.33], [0.0, 0.33, 0.67]]
    """
    degrees = np.array([len(row) for row in adjacency])
    others = {
        "metropolis": np.maximum(degrees[:, None], degrees),
        "max_degree": degrees.max(),
        "neighbours": degrees[:, None],
        "n": len(degrees) - 1,
    }
    found = np.zeros((len(degrees), len(degrees)))
    for node, row in enumerate(adjacency):
        found[node, list(row)] = 1.0
    found /= 1.0 + others[weights]
    np.fill_diagonal(found, 1.0 - found.sum(axis=1))
    return found
