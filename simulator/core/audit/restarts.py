"""The account of nodes that begin anew (``core.hosts.restarts``)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from coband.simulator.core.nodes.node import Address


@dataclass
class Restarts:
    """The account of a run's restarts.

    Attributes:
        noticed: how often an agent has noticed a change.
        epochs: how often the run has begun anew.
        forgotten: pulls whose statistics nobody has any more.
        rounds: communication rounds of a node before its last restart, by address.
    """

    noticed: int = 0
    epochs: int = 0
    forgotten: int = 0
    rounds: Counter[Address] = field(default_factory=Counter)

    def totals(self) -> dict[str, int]:
        """Numbers for the result."""
        return {"changes_noticed": self.noticed, "new_epochs": self.epochs}
