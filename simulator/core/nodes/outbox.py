"""Where nodes send messages: addresses, several recipients at once, the node itself later, the outbox."""

from __future__ import annotations

from dataclasses import dataclass
from types import CoroutineType

from coband.simulator.core.nodes.message import Message

Address = int
SERVER: Address = -1


@dataclass(frozen=True, slots=True)
class Multicast:
    """Recipient: every agent, but for ``excluding`` where given."""

    excluding: Address | None = None


ALL_AGENTS = Multicast()


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Recipient, in a graph: every agent at most ``hops`` links away (LOCAL, Dubey and Pentland 2020, section 3.1).

    The network passes the message on from neighbour to neighbour, each node once, one trial per hop.
    """

    hops: int = 1


@dataclass(frozen=True, slots=True)
class Later:
    """Recipient: the node itself, after ``delay`` simulated time units; the message comes back through ``on_timer``.

    A timer, not a message on the network. It rings at a node that is down when that node is up again.
    """

    delay: float


NEIGHBOURS = Neighbours()
Recipient = Address | Multicast | Neighbours | Later
Outbox = list[tuple[Recipient, Message]]


def refuse_coroutine(outbox: object, who: str) -> None:
    """Say what to write where a node has returned the call of an ``async def`` in place of its outbox.

    Raises:
        TypeError: it has.
    """
    if isinstance(outbox, CoroutineType):
        outbox.close()
        code = outbox.cr_code
        raise TypeError(
            f"{who} returned {code.co_qualname}(...), a conversation that nobody has begun: write "
            f"`return self.begin(self.{code.co_name}(...))`; `begin` is a method of nodes that talk (`Talks`)"
        ) from None
