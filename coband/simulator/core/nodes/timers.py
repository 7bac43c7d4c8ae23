"""What nodes have themselves reminded of: timers come back through ``Node.on_timer``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from coband.simulator.core.nodes.message import Message


class Timer(Message):
    """Base of what a node has itself reminded of (``core.node.Later``): it costs nothing, and no other node sees it.

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
    """From the host: something that the node it is about has sent does not come."""

    kind: ClassVar[str] = "silence"
    about: int


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
