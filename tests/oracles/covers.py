"""Clique covers of small graphs as plain loops over sets."""

from collections.abc import Sequence
from itertools import combinations

Neighbours = Sequence[set[int]]


def is_clique(graph: Neighbours, nodes: Sequence[int]) -> bool:
    """Whether any two of the nodes are adjacent."""
    return all(u in graph[v] for v, u in combinations(nodes, 2))


def grown(graph: Neighbours, start: int, within: set[int]) -> set[int]:
    """From one node on, the candidate with the most candidates among its neighbours joins; of equal ones the first."""
    clique, candidates = {start}, graph[start] & within
    while candidates:
        best = -1
        for v in sorted(candidates):
            if best < 0 or len(graph[v] & candidates) > len(graph[best] & candidates):
                best = v
        clique.add(best)
        candidates = candidates & graph[best]
    return clique


def maximal_cliques(graph: Neighbours) -> list[set[int]]:
    """The largest clique that grows from any node not yet covered, among these nodes; and so on."""
    left, found = set(range(len(graph))), []
    while left:
        largest: set[int] = set()
        for start in sorted(left):
            clique = grown(graph, start, left)
            if len(clique) > len(largest):
                largest = clique
        found.append(largest)
        left = left - largest
    return found


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
