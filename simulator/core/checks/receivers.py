"""Who gets what was sent, against who should: the recipients of a star, or distances in a graph, both ways.

Nobody gets what was not for it. When nothing was lost for good, everybody gets what was for it: in a graph every
neighbour of a node that had a message with hops left, and so, when copies took shortest paths, every agent within its
time to live.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from coband.simulator.core.audit.invariants import InvariantViolation
from coband.simulator.core.nodes.graphs import Graph
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import Address, Later, Multicast, Neighbours, Recipient

Accepts = Callable[[Address], Set[Address] | None]


@dataclass(slots=True)
class Sending:
    """One message of a node: for whom it is, and who has got it.

    Attributes:
        hops: its time to live; None if it goes to its receivers by one link.
        due: how often it is to come to each.
        got: how often it has come, and ``way``: over how many links, where somebody walks the hops.
        left: how often it is still to come.
    """

    source: Address
    hops: int | None
    cause: int
    due: Counter[Address] = field(default_factory=Counter)
    got: Counter[Address] = field(default_factory=Counter)
    way: dict[Address, int] = field(default_factory=dict)
    left: int = 0
    absent: frozenset[Address] = frozenset()
    """Who was no member when it was sent: what is passed on may reach one that joins meanwhile, but no first link."""


class Receivers:
    """Watches who is handed which message.

    Args:
        graph: of the agents; None in a star.
        once: whether a message comes once however often links carry it.
        accepts: whose LOCAL messages an agent looks at, so that it need not be handed others; None for all.
        there: whether a node is a member now, since nothing is sent to others; None: all are always.
    """

    def __init__(
        self,
        agents: int,
        graph: Graph | None,
        once: bool,
        accepts: Accepts,
        there: Callable[[Address], bool] | None = None,
    ) -> None:
        self._agents, self._graph, self._once, self._accepts = range(agents), graph, once, accepts
        self._there = there
        self._sendings: WeakKeyDictionary[Message, Sending] = WeakKeyDictionary()
        self._open: dict[int, tuple[Message, Sending]] = {}  # those that have not come to everybody

    def sent(self, source: Address, recipient: Recipient, message: Message, cause: int) -> None:
        if isinstance(recipient, Later):
            return
        sending = self._sendings.get(message)
        if sending is None:
            hops = recipient.hops if isinstance(recipient, Neighbours) else None
            sending = self._sendings[message] = Sending(source, hops, cause)
        receivers = self._receivers(source, recipient)
        if self._there is not None:
            sending.absent = frozenset(one for one in receivers if not self._there(one))
            if sending.hops is None:
                receivers = [one for one in receivers if one not in sending.absent]
        sending.due.update(receivers)
        sending.left += len(receivers)
        self._open[id(message)] = message, sending

    def _receivers(self, source: Address, recipient: Recipient) -> Sequence[Address]:
        if isinstance(recipient, int):
            return (recipient,)
        if isinstance(recipient, Multicast):
            return [agent for agent in self._agents if agent != recipient.excluding]
        assert isinstance(recipient, Neighbours)
        assert self._graph is not None
        row = self._graph.distances[source]
        return [agent for agent in self._agents if 0 < row[agent] <= recipient.hops]

    def handed(self, node: Address, source: Address, message: Message, hop: int | None, cause: int) -> None:
        """A node was handed a message; ``hop``: over so many links, None if nobody counts them."""
        sending = self._sendings.get(message)
        if sending is None or source != sending.source or not sending.due[node]:
            whom = "nobody has sent" if sending is None else "was not for it"
            text = f"node {node} was handed a {message.kind!r} of node {source} that {whom}"
            raise InvariantViolation(self._far(text, node, sending), cause)
        sending.got[node] += 1
        if self._once and sending.got[node] > sending.due[node]:
            text = (
                f"node {node} was handed a {message.kind!r} {sending.got[node]} times, sent {sending.due[node]} times"
            )
            raise InvariantViolation(text, cause)
        if hop is not None and sending.hops is not None:
            assert self._graph is not None
            sending.way[node] = hop
            distance = int(self._graph.distances[source][node])
            if hop == 1 and node in sending.absent:
                raise InvariantViolation(f"a {message.kind!r} was sent to node {node}, which was no member", cause)
            if not distance <= hop <= sending.hops:
                text = f"a {message.kind!r} of {sending.hops} hops took {hop} to node {node}, {distance} links away"
                raise InvariantViolation(text, cause)
        sending.left -= sending.got[node] <= sending.due[node]
        if not sending.left:
            self._open.pop(id(message), None)

    def _far(self, text: str, node: Address, sending: Sending | None) -> str:
        if sending is None or sending.hops is None or self._graph is None:
            return text
        distance = int(self._graph.distances[sending.source][node])
        return f"{text}: its time to live is {sending.hops} hops, and they are {distance} links apart"

    def at_end(self, down: Set[Address]) -> None:
        """When no event is left and nothing was lost for good."""
        gaps = self._there is not None and self._graph is not None  # who is no member passes nothing on
        for message, sending in [] if down or gaps else self._open.values():
            left = self._out_of_reach(sending) if sending.way else set()
            missing = {node for node, count in sending.due.items() if sending.got[node] < count} - left
            missing = {node for node in missing if self._listens(node, sending)}
            if missing:
                nodes = ", ".join(map(str, sorted(missing)))
                text = f"a {message.kind!r} of node {sending.source} never came to node {nodes}, for which it was"
                raise InvariantViolation(self._far(text, min(missing), sending), sending.cause)

    def _listens(self, node: Address, sending: Sending) -> bool:
        accepted = self._accepts(node) if sending.hops is not None else None
        return accepted is None or sending.source in accepted

    def _out_of_reach(self, sending: Sending) -> set[Address]:
        """Nodes that no copy could reach: it took longer ways, and had no hops left."""
        assert self._graph is not None
        assert sending.hops is not None
        reached = set(self._graph.adjacency[sending.source])
        for node, hop in sending.way.items():
            if hop < sending.hops:
                reached.update(self._graph.adjacency[node])
        return set(sending.due) - reached
