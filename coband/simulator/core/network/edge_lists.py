"""Graphs in files of links, as SNAP publishes them, and connected parts of them."""

from __future__ import annotations

import re
from collections import deque
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import networkx as nx

_APART = re.compile(r"[\s,]+")


def read_edges(path: Path, most: int | None = None) -> nx.Graph[str]:
    """An undirected graph from a file with one link per line; loops are dropped, repeated links count once.

    Two names apart by blanks, tabs or a comma; what follows them on the line is ignored, and so are empty lines, lines
    that start with # and a header of words before the first numbers. Nodes stand in ascending order of their numbers
    where all are numbers.

    Args:
        most: only so many lines; None for all.

    Raises:
        ValueError: a line is no link, or there is none; the text starts with file and line.
    """
    pairs: list[tuple[str, str]] = []
    for number, line in enumerate(_lines(path, most), start=1):
        words = _APART.split(line.strip())
        if not words[0] or words[0].startswith("#"):
            continue
        if len(words) < 2:
            raise ValueError(f"{path}:{number}: {line.strip()!r} is no link; two nodes are expected")
        pairs.append((words[0], words[1]))
    if len(pairs) > 1 and not _numeric(pairs[0]) and _numeric(pairs[1]):
        pairs = pairs[1:]
    if not pairs:
        raise ValueError(f"{path}: the file has no links")
    names = {name for pair in pairs for name in pair}
    import networkx as nx  # slow to import, and only few kinds of graphs need it

    graph: nx.Graph[str] = nx.Graph()
    ordered = sorted(names)
    if all(name.isdecimal() for name in names):
        ordered.sort(key=int)
    graph.add_nodes_from(ordered)
    graph.add_edges_from((first, second) for first, second in pairs if first != second)
    return graph


def _lines(path: Path, most: int | None) -> list[str]:
    if most is None:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    with path.open(encoding="utf-8", errors="replace") as lines:
        return list(islice(lines, most))


def _numeric(pair: tuple[str, str]) -> bool:
    return all(name.isdecimal() for name in pair)


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
