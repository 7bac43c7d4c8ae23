"""The LOCAL protocol walked hop by hop (Dubey and Pentland 2020, "Kernel Methods for Cooperative Multi-Agent Contextual
Bandits", section 3.1), and distances by breadth-first search."""

from collections import deque
from collections.abc import Sequence

Adjacency = Sequence[Sequence[int]]


def distances(adjacency: Adjacency, source: int) -> dict[int, int]:
    """Hops from ``source`` to every node that can be reached."""
    found = {source: 0}
    queue = deque([source])
    while queue:
        node = queue.popleft()
        for neighbour in adjacency[node]:
            if neighbour not in found:
                found[neighbour] = found[node] + 1
                queue.append(neighbour)
    return found


def ball(adjacency: Adjacency, source: int, hops: int) -> set[int]:
    """N_gamma(v): the nodes at most ``hops`` links away, v itself among them."""
    return {node for node, distance in distances(adjacency, source).items() if distance <= hops}


class Flooding:
    """Messages on their way: one hop per trial, each node passes a message on once, and not back.

    ``deliveries`` counts first copies that reach a node, ``transmissions`` all copies put on an edge.
    """

    def __init__(self, adjacency: Adjacency, hops: int) -> None:
        self.adjacency, self.hops = adjacency, hops
        self.deliveries = self.transmissions = 0
        self._seen: dict[tuple[int, int], set[int]] = {}
        self._moving: list[tuple[tuple[int, int], int, int, int]] = []  # (message, from, to, hops made on arrival)

    def trial(self, sent: Sequence[tuple[int, int]]) -> list[tuple[int, tuple[int, int]]]:
        """One trial: new messages (trial, agent) leave, older ones go a hop further; (receiver, message)."""
        moving, self._moving = self._moving, []
        for message in sent:
            self._seen[message] = {message[1]}
            moving += [(message, message[1], neighbour, 1) for neighbour in self.adjacency[message[1]]]
        delivered = []
        for message, source, node, made in moving:
            self.transmissions += 1
            if node in self._seen[message]:
                continue
            self._seen[message].add(node)
            self.deliveries += 1
            delivered.append((node, message))
            if made < self.hops:
                self._moving += [(message, node, other, made + 1) for other in self.adjacency[node] if other != source]
        return delivered
