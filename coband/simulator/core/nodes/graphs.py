"""Graphs of agents that talk to each other, and distances in them. Node v of a graph is agent v."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from coband.simulator.arrays import IntArray, require_room


class GraphError(ValueError):
    """A graph cannot be made as a scenario describes it; the text says why."""


class NoGraphFileError(GraphError):
    """The file of a graph is not there.

    Attributes:
        path: where it was looked for.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"file {str(self.path)!r} cannot be read: there is none; give that of a list of links"


@dataclass(frozen=True, eq=False)
class Graph:
    """An undirected graph without loops.

    Attributes:
        adjacency: the neighbours of each node, in ascending order, which have it for a neighbour, too.
        description: how it was made, for the record of the run.
        p: probability that a link is there at a time; below 1 where links come and go.
    """

    adjacency: tuple[tuple[int, ...], ...]
    description: str = "given"
    p: float = 1.0

    @property
    def nodes(self) -> int:
        """Number of nodes V."""
        return len(self.adjacency)

    @cached_property
    def degrees(self) -> tuple[int, ...]:
        """Number of neighbours of each node."""
        return tuple(map(len, self.adjacency))

    @property
    def edges(self) -> int:
        return sum(self.degrees) // 2

    @cached_property
    def distances(self) -> IntArray:
        """Hops between any two nodes, read-only (V, V); -1 where there is no path.

        Raises:
            TooLarge: this machine cannot hold them.
        """
        what = f"the distances between {self.nodes:,} agents on a graph"
        require_room(what, self.nodes, self.nodes, instead="take fewer agents (agents.count)")
        masks = [sum(1 << other for other in row) for row in self.adjacency]
        found = np.full((self.nodes, self.nodes), -1, dtype=np.int64)
        for node in range(self.nodes):
            seen, layer, hops = 1 << node, [node], 0
            while layer:
                found[node, layer] = hops
                reached = 0
                for other in layer:
                    reached |= masks[other]
                reached &= ~seen
                seen |= reached
                layer, hops = _members(reached), hops + 1
        found.flags.writeable = False
        return found

    @property
    def connected(self) -> bool:
        """Whether there is a path between any two nodes."""
        return bool((self.distances >= 0).all())

    @property
    def diameter(self) -> int:
        """The longest of the shortest paths, over pairs that have one."""
        return int(self.distances.max())

    @property
    def summary(self) -> str:
        """How it was made, and its size."""
        return f"{self.description}; {self.nodes} nodes, {self.edges} edges, diameter {self.diameter}"

    def is_of(self, agents: int) -> bool:
        """Whether it has so many nodes, and is as `adjacency` says: ascending, each link on both sides, no loops."""
        links = [(node, other) for node, row in enumerate(self.adjacency) for other in row]
        both = {(other, node) for node, other in links if node != other}
        return self.nodes == agents and links == sorted(both)

    def ball(self, node: int, hops: int) -> tuple[int, ...]:
        """N_hops(v): the nodes at most ``hops`` links away, the node itself among them, in ascending order."""
        row = self.distances[node]
        return tuple(np.flatnonzero((row >= 0) & (row <= hops)).tolist())


def _members(mask: int) -> list[int]:
    """The positions of the ones of a mask."""
    members = []
    while mask:
        lowest = mask & -mask
        members.append(lowest.bit_length() - 1)
        mask ^= lowest
    return members
