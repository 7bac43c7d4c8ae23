"""The ledger: how much was sent, by kind, direction, agent and round.

Payload: first copies, the scalars that a protocol needs. Wire: all copies that a transport put on a link, repetitions
and acknowledgements included. A multicast is one entry with its number of receivers, so that totals exist in three
conventions:

* ``scalars``: per receiver, a broadcast to N costs N times; the sum over all exchanges that Li et al. 2023 bounds
  (C_T);
* ``scalars_per_agent``: that sum over N. It is the cost of Pavlovic et al. 2024, section 2: the mean over agents of
  what they send (eq. 2), and what the server sends, averaged over agents; so a broadcast costs once, and what is for
  one agent alone costs 1/N;
* ``scalars_broadcast_once``: a broadcast costs once, and uplinks add up (of no paper): what a shared downlink carries.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

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
    by_kind: dict[tuple[str, str], Entry] = field(default_factory=dict)
    by_round: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    uplink_by_agent: list[int] = field(default_factory=list)
    downlink_by_agent: list[int] = field(default_factory=list)
    peer_by_agent: list[int] = field(default_factory=list)
    """Scalars that each agent sent to others; without LOCAL messages, which agents pass on for each other."""
    repeated_messages: int = 0
    repeated_scalars: int = 0
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

    def sent_to_peers(self, kind: str, agent: int, copies: int, scalars: int, round: int) -> None:
        """Record that an agent sent a message to ``copies`` other agents."""
        self.peer_copies(kind, copies, scalars, round)
        self.peer_by_agent[agent] += copies * scalars

    def peer_copies(self, kind: str, copies: int, scalars: int, round: int = -1, senders: int = 1) -> None:
        """Record that ``senders`` agents put ``copies`` first copies of a message on their links to other agents."""
        self._enter(kind, PEER, copies, scalars, round, senders)

    def _enter(self, kind: str, direction: str, copies: int, scalars: int, round: int, senders: int = 1) -> None:
        entry = self.by_kind.get((kind, direction))
        if entry is None:
            entry = self.by_kind[kind, direction] = Entry()
        entry.sends += 1
        entry.messages += copies
        total = copies * scalars
        entry.scalars += total
        entry.scalars_broadcast_once += senders * scalars if copies else 0
        self.scalars += total
        if scalars and round >= 0:
            self.by_round[round] += total

    def repetition(self, scalars: int) -> None:
        """Record that the transport sent a copy again."""
        self.repeated_messages += 1
        self.repeated_scalars += scalars

    def acknowledgement(self) -> None:
        """Record an acknowledgement: no scalars, one header."""
        self.acknowledgements += 1

    def total(self, what: str, direction: str | None = None) -> int:
        """Sum of an :class:`Entry` field over all kinds, in one direction or in all."""
        return sum(getattr(entry, what) for (_, way), entry in self.by_kind.items() if direction in (None, way))

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
            "bits": self.scalars * self.scalar_bits + messages * self.header_bits,
            "wire_messages": wire_messages,
            "wire_scalars": wire_scalars,
            "wire_bits": wire_scalars * self.scalar_bits + wire_messages * self.header_bits,
        }
