"""What a node remembers of messages that did not come through."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.outbox import Address
from coband.simulator.core.nodes.timers import Resend
from coband.simulator.core.talks.question import Question


class Trouble:
    """What a node knows of messages that did not come through; most nodes never have any.

    Attributes:
        kept: what is sent to nodes that cannot be reached as soon as they are heard of.
        tries: how often what was given up has been sent again.
        newest: what was told last, by kind and node or None: all.
        missed: nodes of which something did not come when nobody waited for them.
        patient: what waited for a node at its last silence.
        undo: of messages for which nobody waits any more, if they have not arrived.
    """

    def __init__(self) -> None:
        self.kept: dict[Address, list[Resend]] = {}
        self.tries: dict[tuple[int, Address], int] = {}
        self.newest: dict[tuple[type, Address | None], int] = {}
        self.missed: set[Address] = set()
        self.patient: dict[Address, list[Question]] = {}
        self.undo: WeakKeyDictionary[Message, Callable[[Any], None]] = WeakKeyDictionary()
