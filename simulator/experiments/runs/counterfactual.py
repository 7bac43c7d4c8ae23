"""What a what-if job changes, and the original run that comes before it.

A what-if job runs its original first, without keeping anything: that shows that the stored run can be repeated here,
bit by bit, and tells which random draw each message has had (`core.whatif`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from coband.simulator.core.engine import Engine
from coband.simulator.core.nodes.node import Address, UnsupportedScenario
from coband.simulator.core.whatif.addresses import AddressBook
from coband.simulator.core.whatif.changes import AgentChange, Key, MessageChange, WhatIf
from coband.simulator.experiments.scenario.scenario import Scenario

Build = Callable[[Scenario, WhatIf], Engine]


class NotRepeatableError(UnsupportedScenario):
    """A stored run gives something else here; the text says what to do."""


@dataclass(frozen=True)
class EventChange:
    """What happens to the message of an event of the original trace.

    Attributes:
        message: number of the send.
        receiver: the one whose copies are meant; None: all receivers of the send.
    """

    message: int
    receiver: Address | None
    change: MessageChange


@dataclass(frozen=True)
class Counterfactual:
    """What makes a job a what-if job.

    Attributes:
        original: the scenario of the stored run.
        fingerprints: of the stored jobs, by replication.
    """

    original: Scenario = field(repr=False)
    fingerprints: Mapping[int, str]
    events: tuple[EventChange, ...] = ()
    agents: Mapping[Address, AgentChange] = field(default_factory=dict)

    def rehearsed(self, entry: str, seed: int, replication: int, build: Build) -> WhatIf:
        """What is to change, after the original run.

        Args:
            entry: label of the algorithm in the scenario.
            seed, replication: of the job.
            build: makes the engine of a scenario.

        Raises:
            NotRepeatableError: the original run is another one here than the stored one.
        """
        wanted = frozenset(event.message for event in self.events)
        rehearsal = Rehearsal(self.fingerprints[replication], entry, seed, replication, wanted, self.original, build)
        book = _book(rehearsal)
        return WhatIf(book, self._messages(book), self.agents)

    def _messages(self, book: AddressBook) -> dict[Key, MessageChange]:
        changes: dict[Key, MessageChange] = {}
        for event in self.events:
            for message, source, destination, number in book.found:
                if message == event.message and event.receiver in (None, destination):
                    key = source, destination, number
                    changes[key] = changes.get(key, MessageChange()) | event.change
        return changes


@dataclass(frozen=True)
class Rehearsal:
    """An original run; two are equal if they have the same events and look for the same messages."""

    fingerprint: str
    entry: str
    seed: int
    replication: int
    wanted: frozenset[int]
    original: Scenario = field(compare=False)
    build: Build = field(compare=False)


@lru_cache(maxsize=1)
def _book(rehearsal: Rehearsal) -> AddressBook:
    """The draws of the original run; what-if jobs of one replication, which come one after the other, share them."""
    book = AddressBook(rehearsal.wanted)
    result = rehearsal.build(rehearsal.original, WhatIf(book)).run()
    if result.fingerprint != rehearsal.fingerprint:
        raise NotRepeatableError(
            f"{rehearsal.entry}, replication {rehearsal.replication}: the stored run cannot be repeated here: its "
            f"fingerprint is {rehearsal.fingerprint[:12]}…, and now it is {result.fingerprint[:12]}…, so a difference "
            "would not be that of the change alone. Its manifest.json names the versions and the hardware that it was "
            "made with: use those, or run the scenario again with this coband and ask about the new run."
        )
    book.writing = False
    return book
