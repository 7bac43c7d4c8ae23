"""The stations of a run, as the hub knows them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from coband.simulator.core.node import Address
from coband.simulator.experiments.runs.code_version import source_digest
from coband.simulator.live.merging import Part
from coband.simulator.live.session import Session
from coband.simulator.live.terms import PROTOCOL, LiveError


@dataclass
class Peer:
    """A station, as the hub knows it.

    Attributes:
        origin: number of its process, from 1.
        status: frames handled, frames sent, when its next event is due, pulls; as it has said last.
    """

    origin: int
    agents: tuple[Address, ...]
    name: str = ""
    session: Session = field(default_factory=Session)
    status: tuple[int, int, float, int] = (0, 0, 0.0, 0)
    ready: bool = False
    part: Part = field(default_factory=Part)

    @property
    def idle(self) -> bool:
        """Whether every frame between it and the hub has been handled."""
        handled, sent, *_ = self.status
        return self.ready and handled == self.session.sent and sent == self.session.received

    @property
    def words(self) -> str:
        """Who it is."""
        first, last = self.agents[0], self.agents[-1]
        which = f"agent {first}" if first == last else f"agents {first} to {last}"
        return f"{which} ({self.name})"


class Peers:
    """Who has joined, and which agents have no process yet.

    Args:
        agents: their number.
        share: agents of each station, unless it asks for another number.
    """

    def __init__(self, agents: int, share: int) -> None:
        self._share, self._free = share, list(range(agents))
        self._peers: list[Peer] = []
        self._at: dict[Address, Peer] = {}

    def __iter__(self) -> Iterator[Peer]:
        return iter(self._peers)

    def of(self, node: Address) -> Peer:
        """The station with an agent."""
        return self._at[node]

    @property
    def complete(self) -> bool:
        """Whether every agent has a process, which is ready."""
        return not self._free and all(peer.ready for peer in self._peers)

    def with_origin(self, origin: int) -> Peer:
        """The station with this number."""
        return self._peers[origin - 1]

    def add(self, count: int, name: str) -> None:
        """One more station, with so many of the agents that have none."""
        mine, self._free = tuple(self._free[:count]), self._free[count:]
        peer = Peer(len(self._peers) + 1, mine, name)
        self._peers.append(peer)
        self._at.update(dict.fromkeys(mine, peer))

    @property
    def newest(self) -> Peer:
        """The station that has joined last."""
        return self._peers[-1]

    def wanted(self, hello: dict[str, Any]) -> int | Peer:
        """How many agents a station that joins is to have, or which one it is, when it comes again.

        Raises:
            LiveError: it is refused; the text says why.
        """
        if hello.get("protocol") != PROTOCOL or hello.get("code") != source_digest():
            raise LiveError("it has another coband than the hub; install the same one")
        origin, count = hello.get("origin"), hello.get("agents")
        if origin is not None:
            return self._again(origin)
        if not self._free:
            raise LiveError("all agents have a process already")
        return count if isinstance(count, int) and count > 0 else self._share

    def _again(self, origin: Any) -> Peer:
        known = [peer for peer in self._peers if peer.origin == origin]
        if not known:
            raise LiveError(f"there is no station {origin!r:.20} in this run; its journal is of another one")
        if known[0].session.connected:
            raise LiveError(f"{known[0].words} is here already")
        return known[0]
