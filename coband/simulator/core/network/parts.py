"""Connected parts of graphs."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import networkx as nx


def sample_nodes(graph: nx.Graph[str], count: int, method: str, rng: np.random.Generator) -> tuple[list[str], str]:
    """``count`` nodes whose links among themselves make a connected graph, in the graph's order; and how.

    Raises:
        ValueError: no connected part is large enough.
    """
    import networkx as nx

    whole = list(graph.nodes)
    largest = max(nx.connected_components(graph), key=len)
    if len(largest) < count:
        raise ValueError(
            f"the largest connected part has {len(largest)} nodes, fewer than the {count} agents; set agents.count to "
            f"at most {len(largest)}"
        )
    inside = [node for node in whole if node in largest]
    start = inside[int(rng.integers(len(inside)))]
    chosen = (_nearest if method == "breadth_first" else _walked)(graph, start, count, rng)
    return [node for node in whole if node in chosen], f"{method} from node {start}"


def _nearest(graph: nx.Graph[str], start: str, count: int, rng: np.random.Generator) -> set[str]:
    """Breadth first; the neighbours of a node in random order."""
    found, queue = {start}, deque([start])
    while queue and len(found) < count:
        neighbours = [other for other in graph[queue.popleft()] if other not in found]
        for index in rng.permutation(len(neighbours)).tolist():
            if len(found) < count:
                found.add(neighbours[index])
                queue.append(neighbours[index])
    return found


def _walked(graph: nx.Graph[str], start: str, count: int, rng: np.random.Generator) -> set[str]:
    """The first nodes of a random walk."""
    found, node = {start}, start
    while len(found) < count:
        neighbours = list(graph[node])
        node = neighbours[int(rng.integers(len(neighbours)))]
        found.add(node)
    return found
