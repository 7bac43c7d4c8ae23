"""The ledger: how much was sent, by kind, direction, agent and round.

Payload: first copies, the scalars that a protocol needs. Wire: all copies that a transport put on a link, repetitions
and acknowledgements included. A multicast is one entry with its number of receivers, so that totals exist in three
conventions:

* ``scalars``: per receiver, a broadcast to N costs N times; the sum over all exchanges that Li et al. 2023 bounds
  (C_T);
* ``scalars_per_agent``: that sum over N. It is the cost of Pavlovic et al. 2024, section 2: the mean over agents of
  what they send (eq. 2), and what the server sends, averaged over agents; so a broadcast costs once, and what is for
  one agent alone costs 1/N;
* ``scalars_broadcast_once``: a broadcast costs once, and uplinks add up (of no paper): what a downlink carries
  that all hear at once; on a graph, once for each agent that sends a message or passes it on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from coband.simulator.core.nodes.message import Message

UP, DOWN, PEER = "up", "down", "peer"


@dataclass(slots=True)
class Entry:
    """Totals of one kind of message in one direction."""

    sends: int = 0
    messages: int = 0
    scalars: int = 0
    scalars_broadcast_once: int = 0


@dataclass
class Ledger:
    """Totals by kind and direction, by agent and by communication round.

    ``scalars`` is the running total per receiver, which the engine samples after every turn.
    """

    agents: int
    scalar_bits: int = 64
    header_bits: int = 0
    scalars: int = 0
    by_kind: dict[tuple[str, str], Entry] = field(default_factory=lambda: defaultdict(Entry))
    by_round: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    uplink_by_agent: list[int] = field(default_factory=list)
    downlink_by_agent: list[int] = field(default_factory=list)
    peer_by_agent: list[int] = field(default_factory=list)
    """Scalars that each agent put on its links to others, also of messages that it passed on."""
    carried: dict[tuple[str, type[Message], tuple[int, ...], tuple[int, ...] | None], int] = field(
        default_factory=lambda: defaultdict(int)
    )
    """First copies by direction, class, and scalars and bits of their fields; None: `scalar_bits` for each scalar."""
    repeated_messages: int = 0
    repeated_scalars: int = 0
    repeated_bits: int = 0
    acknowledgements: int = 0
    deliveries: int | None = None
    """First copies of LOCAL messages that reached an agent; None in a star."""

    def __post_init__(self) -> None:
        self.uplink_by_agent = [0] * self.agents
        self.downlink_by_agent = [0] * self.agents
        self.peer_by_agent = [0] * self.agents

    def first_copies(self, kind: str, direction: str, agents: list[int], scalars: int, round: int) -> None:
        """Record one send of a message.

        Args:
            kind: the message's kind.
            direction: up (agent to server) or down (server to agent).
            agents: the agents at the other end from the server: the sender for up, the receivers for down.
            scalars: payload size of one copy.
            round: communication round, -1 if unknown.
        """
        self._enter(kind, direction, len(agents), scalars, round)
        if scalars:
            account = self.uplink_by_agent if direction == UP else self.downlink_by_agent
            for agent in agents:
                account[agent] += scalars

    def peer_copies(self, kind: str, copies: Mapping[int, int], scalars: int, round: int = -1) -> None:
        """Record how many first copies of a message each of some agents put on its links to other agents."""
        total = 0
        for agent, count in copies.items():
            total += count
            self.peer_by_agent[agent] += count * scalars
        self._enter(kind, PEER, total, scalars, round, len(copies))

    def _enter(self, kind: str, direction: str, copies: int, scalars: int, round: int, senders: int = 1) -> None:
        entry = self.by_kind[kind, direction]
        entry.sends += 1
        entry.messages += copies
        if scalars:
            total = copies * scalars
            if copies:
                entry.scalars += total
                entry.scalars_broadcast_once += senders * scalars
                self.scalars += total
            if round >= 0:
                self.by_round[round] += total

    def carry(self, message: Message, direction: str, copies: int) -> None:
        """Record what the fields of first copies of a message take."""
        self.carried[direction, type(message), message.sizes, message.field_bits] += copies

    def bits_of(self, message: Message) -> int:
        """Bits of the payload of one copy."""
        return message.scalars * self.scalar_bits if message.field_bits is None else sum(message.field_bits)

    def repetition(self, scalars: int, bits: int | None = None) -> None:
        """Record that the transport sent a copy again; ``bits`` of its payload: None for `scalar_bits` each."""
        self.repeated_messages += 1
        self.repeated_scalars += scalars
        self.repeated_bits += scalars * self.scalar_bits if bits is None else bits

    def acknowledgement(self) -> None:
        """Record an acknowledgement: no scalars, one header."""
        self.acknowledgements += 1

    def total(self, what: str, direction: str | None = None) -> int:
        """Sum of an :class:`Entry` field over all kinds, in one direction or in all."""
        return sum(getattr(entry, what) for (_, way), entry in self.by_kind.items() if direction in (None, way))

    @property
    def bits(self) -> int:
        """Bits of the payload of all first copies."""
        known = ((copies, key) for key, copies in self.carried.items() if key[3] is not None)
        saved = sum(copies * (sum(sizes) * self.scalar_bits - sum(bits or ())) for copies, (_, _, sizes, bits) in known)
        return self.scalars * self.scalar_bits - saved

    def by_field(self) -> dict[tuple[str, str, str, str], tuple[int, int]]:
        """(scalars, bits) of all first copies by kind of message, direction, field and its meaning."""
        found: dict[tuple[str, str, str, str], tuple[int, int]] = {}
        for (direction, kind, sizes, bits), copies in self.carried.items():
            each = bits or tuple(size * self.scalar_bits for size in sizes)
            for name, size, width in zip(kind.payload_fields(), sizes, each, strict=True):
                key = kind.kind, direction, name, kind.meaning(name)
                scalars, so_far = found.get(key, (0, 0))
                found[key] = scalars + copies * size, so_far + copies * width
        return found

    def totals(self) -> dict[str, int | float]:
        """The counts that results report; keys as in ``coband run --json``."""
        messages = self.total("messages")
        wire_messages = messages + self.repeated_messages + self.acknowledgements
        wire_scalars = self.scalars + self.repeated_scalars
        uplink = self.total("scalars", UP)
        local: dict[str, int | float] = {}
        if self.deliveries is not None:
            local = {"deliveries": self.deliveries, "transmissions": self.total("messages", PEER)}
        return {
            **local,
            "messages": messages,
            "uplink_scalars": uplink,
            "downlink_scalars": self.total("scalars", DOWN),
            "peer_scalars": self.total("scalars", PEER),
            "scalars": self.scalars,
            "scalars_broadcast_once": self.total("scalars_broadcast_once"),
            "uplink_scalars_per_agent": uplink / self.agents,
            "scalars_per_agent": self.scalars / self.agents,
            "bits": self.bits + messages * self.header_bits,
            "wire_messages": wire_messages,
            "wire_scalars": wire_scalars,
            "wire_bits": self.bits + self.repeated_bits + wire_messages * self.header_bits,
            **self._bits_by_meaning(),
        }

    def _bits_by_meaning(self) -> dict[str, int]:
        """Bits of all first copies by what fields hold, such as ``gram_bits``; of what was sent alone."""
        found: dict[str, int] = {}
        for (*_, meaning), (_, bits) in self.by_field().items():
            if bits:
                found[f"{meaning}_bits"] = found.get(f"{meaning}_bits", 0) + bits
        return found
