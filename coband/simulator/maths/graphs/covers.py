"""Covers of graphs: cliques, independent sets and centres (Dubey and Pentland 2020, "Kernel Methods for Cooperative
Multi-Agent Contextual Bandits", sections 3.2 and 4).

A graph is a boolean matrix (V, V), symmetric; its diagonal is ignored. G_gamma, the power graph, has an edge wherever
the distance is at most gamma.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from coband.simulator.arrays import BoolArray, IntArray

CoverMethod = Literal["dsatur", "largest_first"]
"""How a clique cover is found."""
EXACT_STEPS = 20_000
"""Steps after which the search for an independent set of maximum weight ends with the best that it has found."""
EXACT_NODES = 500
"""Nodes of a graph beyond which it is not tried."""


def half_diameter(distances: IntArray) -> int:
    """gamma = diameter / 2 (Dubey and Pentland 2020, section 5), rounded down, at least 1."""
    return max(1, int(distances.max()) // 2)


def power_graph(distances: IntArray, hops: int) -> BoolArray:
    """G_gamma: pairs of different nodes at most ``hops`` links apart; distances (V, V), -1 where there is no path."""
    return (distances > 0) & (distances <= hops)


def greedy_colouring(graph: BoolArray) -> list[int]:
    """A colour for each node, different from those of its neighbours: largest degree first, lowest colour free.

    Nodes of equal degree go by number, as networkx's strategy ``largest_first``.
    """
    masks = _masks(graph)
    order = sorted(range(len(masks)), key=lambda node: -masks[node].bit_count())
    colours = [-1] * len(masks)
    classes: list[int] = []
    for node in order:
        free = (colour for colour, members in enumerate(classes) if not members & masks[node])
        colour = next(free, len(classes))
        if colour == len(classes):
            classes.append(0)
        classes[colour] |= 1 << node
        colours[node] = colour
    return colours


def saturation_colouring(graph: BoolArray) -> list[int]:
    """A colour for each node, different from those of its neighbours: most constrained node first, lowest colour free.

    DSATUR (Brelaz, "New methods to color the vertices of a graph", 1979): the next node is the one whose neighbours
    have the most different colours; of equal ones that of largest degree, then the first. So does networkx's strategy
    ``saturation_largest_first``.
    """
    masks = _masks(graph)
    colours = [-1] * len(masks)
    barred = [0] * len(masks)  # colours of a node's neighbours, as a bit mask
    left = set(range(len(masks)))
    while left:
        node = max(left, key=lambda v: (barred[v].bit_count(), masks[v].bit_count(), -v))
        free = ~barred[node]
        colours[node] = (free & -free).bit_length() - 1
        left.remove(node)
        for other in left:
            if masks[other] >> node & 1:
                barred[other] |= 1 << colours[node]
    return colours


def clique_cover(graph: BoolArray, method: CoverMethod = "dsatur") -> tuple[tuple[int, ...], ...]:
    """Cliques that hold every node once, in order of their first members, members in ascending order.

    A smallest cover, as Theorem 1 of Dubey and Pentland 2020 has it, takes exponential time to find. On Erdos-Renyi
    graphs (p = 0.7, 200 nodes) ``largest_first`` finds 21 to 23 cliques, ``dsatur`` 19 or 20.

    Args:
        graph: (V, V), usually G_gamma.
        method: in which order the complement's nodes are coloured; cliques are the classes of that colouring.
    """
    colouring = saturation_colouring if method == "dsatur" else greedy_colouring
    return classes_of(colouring(_complement(graph)))


def classes_of(colours: list[int]) -> tuple[tuple[int, ...], ...]:
    """The nodes of each colour, in order of their first members."""
    classes: dict[int, list[int]] = {}
    for node, colour in enumerate(colours):
        classes.setdefault(colour, []).append(node)
    return tuple(map(tuple, classes.values()))


@dataclass(frozen=True)
class IndependentSet:
    """Nodes of which no two are adjacent, in ascending order; ``exact``: none has a larger weight."""

    nodes: tuple[int, ...]
    weight: int
    exact: bool


def independent_set(graph: BoolArray, weights: list[int], steps: int = EXACT_STEPS) -> IndependentSet:
    """A maximum-weight independent set, by branch and bound; greedy where the search takes more than ``steps``.

    The greedy set takes the heaviest node per node that it excludes, again and again. The bound is a
    greedy cover of the candidates by cliques: an independent set takes at most the heaviest of each.
    """
    return _Search(_masks(graph), weights, steps if len(graph) <= EXACT_NODES else 0).run()


@dataclass(frozen=True)
class Centres:
    """Central agents, and the central agent of every agent (its own for a central one)."""

    central: IndependentSet
    centre_of: tuple[int, ...]


def centres(graph: BoolArray, steps: int = EXACT_STEPS) -> Centres:
    """Central agents: an independent set of G_gamma of largest weight, |N_gamma(v)| for node v (Dubey and Pentland
    2020, section 4).

    Every other agent goes to the adjacent central agent of highest degree, the first of equal ones. A maximal
    independent set has one for everybody.
    """
    degrees = graph.sum(axis=1).tolist()
    found = independent_set(graph, [degree + 1 for degree in degrees], steps)
    centre_of = list(range(len(graph)))
    for node in set(centre_of) - set(found.nodes):
        adjacent = [other for other in found.nodes if graph[node, other]]
        centre_of[node] = max(adjacent, key=lambda other: (degrees[other], -other))
    return Centres(found, tuple(centre_of))


class _Search:
    """Branch and bound over bit masks of candidates."""

    def __init__(self, masks: list[int], weights: list[int], steps: int) -> None:
        self._masks, self._weights, self._steps = masks, weights, steps
        self._order = sorted(range(len(masks)), key=lambda node: (-weights[node], node))
        self._best, self._best_weight = self._greedy()

    def run(self) -> IndependentSet:
        exact = True
        try:
            self._branch((1 << len(self._masks)) - 1, 0, 0)
        except _TooLong:
            exact = False
        nodes = tuple(node for node in range(len(self._masks)) if self._best >> node & 1)
        return IndependentSet(nodes, self._best_weight, exact)

    def _greedy(self) -> tuple[int, int]:
        """The heaviest node, per node that it excludes, first."""
        left, chosen, weight = (1 << len(self._masks)) - 1, 0, 0
        while left:
            candidates = [node for node in self._order if left >> node & 1]
            node = max(candidates, key=lambda v: (self._weights[v] / (1 + (self._masks[v] & left).bit_count()), -v))
            chosen |= 1 << node
            weight += self._weights[node]
            left &= ~(self._masks[node] | 1 << node)
        return chosen, weight

    def _branch(self, left: int, chosen: int, weight: int) -> None:
        """Try the candidates ``left``, highest bound first, as long as the bounds allow an improvement."""
        self._steps -= 1
        if self._steps < 0:
            raise _TooLong
        if not left:
            if weight > self._best_weight:
                self._best, self._best_weight = chosen, weight
            return
        for node, bound in reversed(self._bounds(left)):
            if weight + bound <= self._best_weight:
                return
            self._branch(left & ~(self._masks[node] | 1 << node), chosen | 1 << node, weight + self._weights[node])
            left &= ~(1 << node)

    def _bounds(self, left: int) -> list[tuple[int, int]]:
        """The candidates clique by clique, each with a bound on sets of it and those before it."""
        listed: list[tuple[int, int]] = []
        total = 0
        while left:
            clique, heaviest = left, 0
            while clique:
                node = (clique & -clique).bit_length() - 1
                heaviest = max(heaviest, self._weights[node])
                listed.append((node, total + heaviest))
                left &= ~(1 << node)
                clique &= self._masks[node]
            total += heaviest
        return listed


class _TooLong(Exception):
    """The search has taken all its steps."""


def _complement(graph: BoolArray) -> BoolArray:
    complement: BoolArray = ~graph
    np.fill_diagonal(complement, False)
    return complement


def _masks(graph: BoolArray) -> list[int]:
    return [
        sum(1 << other for other in np.flatnonzero(row).tolist() if other != node) for node, row in enumerate(graph)
    ]
