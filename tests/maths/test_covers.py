"""Covers of graphs against networkx and against their definitions."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from numpy.typing import NDArray

from coband.simulator.maths.graphs.covers import (
    CoverMethod,
    centres,
    clique_cover,
    greedy_colouring,
    half_diameter,
    independent_set,
    power_graph,
    saturation_colouring,
)
from tests.every import every
from tests.oracles import covers as oracle

METHODS: tuple[CoverMethod, ...] = ("dsatur", "largest_first")


def random_graph(seed: int, most: int = 16) -> NDArray[np.bool_]:
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(1, most))
    above = np.triu(rng.random((nodes, nodes)) < rng.uniform(0.05, 0.95), 1)
    return above | above.T


def as_networkx(graph: NDArray[np.bool_]) -> nx.Graph[int]:
    return nx.from_numpy_array(graph)


def distances(graph: NDArray[np.bool_]) -> NDArray[np.int64]:
    found = np.full(graph.shape, -1)
    for v, lengths in nx.all_pairs_shortest_path_length(as_networkx(graph)):
        for u, length in lengths.items():
            found[v, u] = length
    return found


@every("seed", range(40))
def test_colouring_is_that_of_networkx(seed: int) -> None:
    graph = random_graph(seed)
    expected = nx.greedy_color(as_networkx(graph), strategy="largest_first")
    assert greedy_colouring(graph) == [expected[node] for node in range(len(graph))]


@every("seed", range(40))
def test_saturation_colouring_is_that_of_networkx(seed: int) -> None:
    graph = random_graph(seed, 30)
    expected = nx.greedy_color(as_networkx(graph), strategy="saturation_largest_first")
    assert saturation_colouring(graph) == [expected[node] for node in range(len(graph))]


def neighbours(graph: NDArray[np.bool_]) -> list[set[int]]:
    return [set(np.flatnonzero(row).tolist()) for row in graph]


@every("method", METHODS)
@every("seed", range(40))
def test_a_cover_holds_every_node_once_and_is_no_smaller_than_the_smallest(seed: int, method: CoverMethod) -> None:
    graph = random_graph(seed, 11)
    cover, around = clique_cover(graph, method), neighbours(graph)
    assert sorted(node for clique in cover for node in clique) == list(range(len(graph)))
    assert all(oracle.is_clique(around, clique) for clique in cover)
    assert [clique[0] for clique in cover] == sorted(clique[0] for clique in cover)
    assert all(list(clique) == sorted(clique) for clique in cover)
    assert oracle.fewest(around) <= len(cover) <= oracle.fewest(around) + 2


@pytest.mark.parametrize("seed", range(3))
def test_the_default_cover_of_a_dense_graph_is_smaller_than_by_degree_alone(seed: int) -> None:
    above = np.triu(np.random.default_rng(seed).random((200, 200)) < 0.7, 1)
    found = {method: len(clique_cover(above | above.T, method)) for method in METHODS}
    assert len(clique_cover(above | above.T)) == found["dsatur"]
    assert found["dsatur"] <= 20 < found["largest_first"]


@every("method", METHODS)
@every("hops", [1, 2, 3])
@every("seed", range(20))
def test_cliques_of_the_cover_are_cliques_of_the_power_graph(seed: int, hops: int, method: CoverMethod) -> None:
    far = distances(random_graph(seed))
    cover = clique_cover(power_graph(far, hops), method)
    assert sorted(node for clique in cover for node in clique) == list(range(len(far)))
    for clique in cover:
        assert all(0 <= far[v, u] <= hops for v in clique for u in clique)


@every("seed", range(60))
def test_independent_set_has_the_weight_of_networkx(seed: int) -> None:
    graph = random_graph(seed)
    weights = np.random.default_rng(seed).integers(1, 20, len(graph)).tolist()
    found = independent_set(graph, weights)
    complement = nx.complement(as_networkx(graph))
    nx.set_node_attributes(complement, dict(enumerate(weights)), "weight")
    assert found.exact
    assert found.weight == nx.max_weight_clique(complement)[1] == sum(weights[node] for node in found.nodes)
    assert not graph[np.ix_(found.nodes, found.nodes)].any()


def test_a_search_that_takes_too_long_is_greedy_and_says_so() -> None:
    graph = random_graph(3, 40)
    found = independent_set(graph, [1] * len(graph), steps=1)
    assert not found.exact
    assert not graph[np.ix_(found.nodes, found.nodes)].any()


@every("steps", [1, 100_000])
@every("seed", range(20))
def test_everybody_has_an_adjacent_centre_of_highest_degree(seed: int, steps: int) -> None:
    graph = random_graph(seed)
    found = centres(graph, steps)
    central = set(found.central.nodes)
    degrees = graph.sum(axis=1)
    for node, centre in enumerate(found.centre_of):
        assert centre in central
        if node in central:
            assert centre == node
        else:
            around = [other for other in central if graph[node, other]]
            assert graph[node, centre]
            assert degrees[centre] == max(degrees[around])


def test_half_diameter_of_a_line() -> None:
    line = np.abs(np.subtract.outer(np.arange(9), np.arange(9)))
    assert half_diameter(line) == 4
    assert half_diameter(line[:2, :2]) == 1
    assert power_graph(line, 2).sum() == 2 * (8 + 7)
