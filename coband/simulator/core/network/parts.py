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
    if method == "largest_component":
        chosen, how = _grown(graph, count, rng)
    else:
        inside = [node for node in whole if node in largest]
        start = inside[int(rng.integers(len(inside)))]
        search = _nearest if method == "breadth_first" else _walked
        chosen, how = search(graph, start, count, rng), f"{method} from node {start}"
    return [node for node in whole if node in chosen], how


def _nearest(
    graph: nx.Graph[str], start: str, count: int, rng: np.random.Generator, within: set[str] | None = None
) -> set[str]:
    """Breadth first; the neighbours of a node in random order. ``within``: the only nodes to look at; None for all."""
    found, queue = {start}, deque([start])
    while queue and len(found) < count:
        around = [other for other in graph[queue.popleft()] if within is None or other in within]
        neighbours = [other for other in around if other not in found]
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


def _grown(graph: nx.Graph[str], count: int, rng: np.random.Generator) -> tuple[set[str], str]:
    """Random nodes until they hold a connected part with ``count`` nodes; the last may join more, which are cut off."""
    order = list(graph.nodes)
    part: dict[str, set[str]] = {}
    for taken, index in enumerate(rng.permutation(len(order)).tolist(), start=1):
        node = order[index]
        joined = {node}
        for other in graph[node]:
            if other in part and other not in joined:
                joined |= part[other]
        part.update(dict.fromkeys(joined, joined))
        if len(joined) >= count:
            return _nearest(graph, node, count, rng, joined), f"largest_component of {taken} random nodes"
    raise AssertionError("a connected part was large enough")
