"""Clique covers of small graphs as plain loops over sets."""

from collections.abc import Sequence
from itertools import combinations

Neighbours = Sequence[set[int]]


def is_clique(graph: Neighbours, nodes: Sequence[int]) -> bool:
    """Whether any two of the nodes are adjacent."""
    return all(u in graph[v] for v, u in combinations(nodes, 2))


def fewest(graph: Neighbours) -> int:
    """The number of cliques in a smallest cover: every node joins each clique that it fits in, or begins a new one."""
    best = len(graph)

    def place(node: int, cliques: list[list[int]]) -> None:
        nonlocal best
        if len(cliques) >= best and node < len(graph):
            return
        if node == len(graph):
            best = min(best, len(cliques))
            return
        for clique in cliques:
            if all(other in graph[node] for other in clique):
                clique.append(node)
                place(node + 1, cliques)
                clique.pop()
        cliques.append([node])
        place(node + 1, cliques)
        cliques.pop()

    place(0, [])
    return best
