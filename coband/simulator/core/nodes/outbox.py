"""Where nodes send messages: addresses, several recipients at once, the node itself later (timers), the outbox."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import CoroutineType
from typing import Any, ClassVar

from coband.simulator.core.nodes.message import Message, in_words, returned

Address = int
SERVER: Address = -1


def called(node: Address) -> str:
    """A node in words."""
    return "the server" if node == SERVER else f"agent {node}"


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


class NobodyThere(ValueError):
    """A recipient is the address of no node."""


def refuse_outbox(outbox: object, node: object, method: str) -> None:
    """Say what to write where a method of a node has returned something else than an outbox.

    Raises:
        NodeMistake: it has.
    """
    if isinstance(outbox, CoroutineType):
        begin = f"write `return self.begin(self.{outbox.cr_code.co_name}(...))`"
        raise returned(node, method, outbox, f"{begin}; `begin` is a method of nodes that talk (`Talks`)") from None
    if not isinstance(outbox, list):
        raise returned(node, method, outbox, "return a list of (recipient, message), [] for none") from None
    for letter in outbox:
        pair = isinstance(letter, tuple) and len(letter) == 2
        if not (pair and isinstance(letter[0], Recipient) and isinstance(letter[1], Message)):
            wanted = "each entry is (recipient, message), such as (SERVER, message)"
            raise returned(node, method, outbox, f"{wanted}, and not {in_words(letter)}") from None


class Timer(Message):
    """Base of what a node has itself reminded of (`Later`): it costs nothing, and no other node sees it.

    Attributes:
        about: the node at the other end; None where there is none.
    """

    kind: ClassVar[str] = "timer"
    about: int | None = None


class Resend(Timer):
    """It is time to send again what was given up, to the node that it is about."""

    kind: ClassVar[str] = "resend"
    about: int
    copy: Message


class Silence(Timer):
    """From the host: something of the node it is about does not come; ``final``: nor will anything else."""

    kind: ClassVar[str] = "silence"
    about: int
    final: bool = False


class OutOfPatience(Timer):
    """The node has waited long enough since it last noticed a silence.

    Attributes:
        waiting: its questions then; none any more after the next silence.
    """

    kind: ClassVar[str] = "patience"
    about: int
    waiting: Sequence[Any]


class Overdue(Timer):
    """The time for which a node wants to wait for the answers to its question is over; ``question``: its number."""

    kind: ClassVar[str] = "overdue"
    question: int
