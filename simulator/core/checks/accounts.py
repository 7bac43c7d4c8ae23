"""The ledger kept a second time, from the copies on links and with sizes counted entry by entry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from coband.simulator.core.audit.ledger import DOWN, PEER, UP, Ledger
from coband.simulator.core.nodes.graphs import Graph
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import SERVER, Address
from coband.simulator.core.packet import Packet

Way = tuple[str, str]
"""A kind of message and its direction."""


class Accounts:
    """Messages and scalars by kind and direction, by agent and by round, repetitions and acknowledgements.

    Attributes:
        deliveries: first copies of LOCAL messages that reached an agent.
        scalars: in all first copies so far.
    """

    def __init__(self) -> None:
        self._messages: Counter[Way] = Counter()
        self._scalars: Counter[Way] = Counter()
        self._agents: Counter[tuple[Address, str]] = Counter()
        self._rounds: Counter[int] = Counter()
        self._repeated: Counter[str] = Counter()
        self._acknowledgements = 0
        self._once = 0
        self._coded: Counter[str] = Counter()  # scalars and bits of copies whose bits the wire has counted
        self._sends: set[int] = set()  # whose payload is counted once
        self.deliveries = 0
        self.scalars = 0

    def put(self, packet: Packet, size: int) -> None:
        if packet.attempts:
            self._repeated.update({"messages": 1, "scalars": size})
            self._code(packet.message, 1, size, "repeated ")
            return
        direction = DOWN if packet.source == SERVER else UP if packet.destination == SERVER else PEER
        self._enter(packet.message, direction, 1, size)
        if packet.id not in self._sends:
            self._sends.add(packet.id)
            self._once += size
        if packet.flood is None:
            self._agents[packet.destination if direction == DOWN else packet.source, direction] += size

    def flooded(self, message: Message, graph: Graph, origin: Address, hops: int, size: int) -> None:
        """A message goes to all agents within some hops on ideal links; each passes it on to all but who it is from."""
        row = graph.distances[origin].tolist()
        onwards = [graph.degrees[node] - 1 for node, distance in enumerate(row) if 0 < distance < hops]
        self._enter(message, PEER, graph.degrees[origin] + sum(onwards), size)
        self._once += size * (min(1, graph.degrees[origin]) + sum(map(bool, onwards)))
        self.deliveries += sum(0 < distance <= hops for distance in row)

    def _enter(self, message: Message, direction: str, copies: int, size: int) -> None:
        way = message.kind, direction
        self._messages[way] += copies
        self._scalars[way] += copies * size
        self.scalars += copies * size
        self._code(message, copies, size)
        if message.round >= 0:
            self._rounds[message.round] += copies * size

    def _code(self, message: Message, copies: int, size: int, which: str = "") -> None:
        if message.field_bits is not None:
            self._coded.update({f"{which}scalars": copies * size, f"{which}bits": copies * sum(message.field_bits)})

    def acknowledged(self) -> None:
        """A copy has reached a node that acknowledges it."""
        self._acknowledgements += 1

    def totals(self, scalar_bits: int, header_bits: int) -> dict[str, float]:
        """What a result must say of communication."""
        messages = self._messages.total()
        by_way = Counter[str]()
        for (_, direction), scalars in self._scalars.items():
            by_way[direction] += scalars
        wire_messages = messages + self._repeated["messages"] + self._acknowledgements
        wire_scalars, coded = self.scalars + self._repeated["scalars"], self._coded
        bits = (self.scalars - coded["scalars"]) * scalar_bits + coded["bits"]
        again = (self._repeated["scalars"] - coded["repeated scalars"]) * scalar_bits + coded["repeated bits"]
        return {
            "messages": messages,
            "uplink_scalars": by_way[UP],
            "downlink_scalars": by_way[DOWN],
            "peer_scalars": by_way[PEER],
            "scalars": self.scalars,
            "bits": bits + messages * header_bits,
            "wire_messages": wire_messages,
            "wire_scalars": wire_scalars,
            "wire_bits": bits + again + wire_messages * header_bits,
        }

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
            "scalars": (ledger.scalars, self.scalars),
            "scalars_broadcast_once": (ledger.total("scalars_broadcast_once"), self._once),
            "deliveries of LOCAL messages": (ledger.deliveries or 0, self.deliveries),
        }
        for what, (counted_once, counted_again) in wire.items():
            if counted_once != counted_again:
                yield f"the ledger counts {counted_once} {what}, {counted_again} were sent"
