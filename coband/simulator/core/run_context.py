"""What all parts of one run share: its clock, its accounts and who is down."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from coband.simulator.core.clock.clock import Clock
from coband.simulator.core.nodes.node import Address
from coband.simulator.core.records.invariants import Audit
from coband.simulator.core.records.ledger import Ledger
from coband.simulator.core.records.trace import Trace

if TYPE_CHECKING:
    from coband.simulator.core.hosts.batteries import Batteries


class Down(set[Address]):
    """The nodes that are down now.

    Attributes:
        gone: nodes that nobody counts on: down for good, or not joined yet. Nothing is sent to them or repeated for
            them, and nobody waits for them.
        left: those of them that are not members any more, or never were, whose turns nobody misses.
    """

    def __init__(self, gone: set[Address] | None = None) -> None:
        super().__init__()
        self.gone = set[Address]() if gone is None else gone
        self.left = set[Address]()

    def peek(self, node: Address) -> bool:
        """Whether a node is down now; asking so has no consequences (``core.hosts.absence``)."""
        return node in self


@dataclass(frozen=True)
class RunContext:
    """One per run.

    Attributes:
        clock: simulated time.
        trace: every event.
        ledger: what was sent.
        audit: the fate of every copy.
        down: the nodes that are down now.
        energy: the batteries; None: agents have as much energy as it takes.
    """

    clock: Clock
    trace: Trace
    ledger: Ledger
    audit: Audit
    down: Down = field(default_factory=Down)
    energy: Batteries | None = None
