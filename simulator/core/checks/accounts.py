"""The ledger kept a second time, from the copies on links and with sizes counted entry by entry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from coband.simulator.core.audit.ledger import DOWN, PEER, UP, Ledger
from coband.simulator.core.message import Message
from coband.simulator.core.network.graphs import Graph
from coband.simulator.core.node import SERVER, Address
from coband.simulator.core.packet import Packet

Way = tuple[str, str]
"""A kind of message and its direction."""


class Accounts:
    """Messages and scalars by kind and direction, by agent and by round, repetitions and acknowledgements."""

    def __init__(self) -> None:
        self._messages: Counter[Way] = Counter()
        self._scalars: Counter[Way] = Counter()
        self._agents: Counter[tuple[Address, str]] = Counter()
        self._rounds: Counter[int] = Counter()
        self._repeated: Counter[str] = Counter()
        self._acknowledgements = 0

    def put(self, packet: Packet, size: int) -> None:
        """A copy was put on a link."""
        if packet.attempts:
            self._repeated.update({"messages": 1, "scalars": size})
            return
        direction = DOWN if packet.source == SERVER else UP if packet.destination == SERVER else PEER
        self._enter(packet.message, direction, 1, size)
        if packet.flood is None:
            self._agents[packet.destination if direction == DOWN else packet.source, direction] += size

    def flooded(self, message: Message, graph: Graph, origin: Address, hops: int, size: int) -> None:
        """A message goes to all agents within some hops on ideal links; each passes it on to all but who it is from."""
        row = graph.distances[origin]
        passing = [node for node in range(graph.nodes) if 0 < row[node] < hops]
        copies = graph.degrees[origin] + sum(graph.degrees[node] - 1 for node in passing)
        self._enter(message, PEER, copies, size)

    def _enter(self, message: Message, direction: str, copies: int, size: int) -> None:
        way = message.kind, direction
        self._messages[way] += copies
        self._scalars[way] += copies * size
        if message.round >= 0:
            self._rounds[message.round] += copies * size

    def acknowledged(self) -> None:
        """A copy has reached a node that acknowledges it."""
        self._acknowledgements += 1

    def mismatches(self, ledger: Ledger) -> Iterator[str]:
        """One sentence for each number of the ledger that is another here."""
        for way in self._messages.keys() | ledger.by_kind.keys():
            entry, (kind, direction) = ledger.by_kind.get(way), way
            counted = (0, 0) if entry is None else (entry.messages, entry.scalars)
            if counted != (self._messages[way], self._scalars[way]):
                sent = f"{self._messages[way]} with {self._scalars[way]} scalars were sent"
                yield f"the ledger counts {counted[0]} {kind!r} {direction} with {counted[1]} scalars, {sent}"
        by_agent = {UP: ledger.uplink_by_agent, DOWN: ledger.downlink_by_agent, PEER: ledger.peer_by_agent}
        for direction, account in by_agent.items():
            for agent, scalars in enumerate(account):
                if scalars != self._agents[agent, direction]:
                    sent = f"{self._agents[agent, direction]} were sent"
                    yield f"the ledger counts {scalars} scalars {direction} of agent {agent}, {sent}"
        rounds = {round: scalars for round, scalars in self._rounds.items() if scalars}
        if rounds != {round: scalars for round, scalars in ledger.by_round.items() if scalars}:
            yield f"the ledger's scalars by round are {dict(ledger.by_round)}, those sent {rounds}"
        wire = {
            "acknowledgements": (ledger.acknowledgements, self._acknowledgements),
            "repeated copies": (ledger.repeated_messages, self._repeated["messages"]),
            "scalars in repeated copies": (ledger.repeated_scalars, self._repeated["scalars"]),
            "scalars": (ledger.scalars, self._scalars.total()),
        }
        for what, (counted_once, counted_again) in wire.items():
            if counted_once != counted_again:
                yield f"the ledger counts {counted_once} {what}, {counted_again} were sent"
