"""Faults that an algorithm has to survive, made from the messages of an undisturbed run; see ``liveness``."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from coband.simulator.conformance.runs import Key, Leaving
from coband.simulator.core.nodes.node import SERVER, Address
from coband.simulator.core.records.ledger import DOWN, PEER, UP

AGENTS = 3
VICTIM = AGENTS - 1
"""The agent that is cut off or goes down; on a line of agents it is an end, so that the others reach each other."""
LATENCY, HANDLING = 0.2, 0.1
TIMEOUT, PATIENCE = 1.0, 4.0
LATE, CUT_OFF = 10.0, 15.0
"""Longer than nodes wait: a timeout of the transport, another one until it is noticed, and patience."""
FEW, MANY = 2, 20
"""Attempts to send again: all of them made before a cut ends, or more than that."""
FOR_EVER = 1e6
MENDING: Mapping[str, Any] = {"partitions": [{"start": FOR_EVER, "end": 2 * FOR_EVER, "groups": [[VICTIM]]}]}
"""A network on which nothing happens to a run, but on which something could: so copies are acknowledged."""


@dataclass(frozen=True)
class Fault:
    """What happens in a disturbed run.

    Attributes:
        what: in words.
        start, end: when it begins, and when all is well again.
        attempts: how often nodes send again what was given up.
        messages: by how much single messages come later; inf: they are lost.
        network: what the scenario says of the network.
        down: who goes down.
        final: an agent or a message is lost for good, so that agents that end together may end.
    """

    what: str
    start: float
    end: float
    attempts: int = FEW
    messages: Mapping[Key, float] = field(default_factory=dict)
    network: Mapping[str, Any] = field(default_factory=dict)
    down: Address | None = None
    final: bool = True


Leavings = Sequence[Leaving]


def losses(leaving: Leavings) -> Iterator[Fault]:
    """The first and the middle message of each kind and direction is lost, and no node sends it again."""
    for sent in _first_and_middle(leaving):
        lost = {sent.key: math.inf}
        yield Fault(f"the loss of {_named(sent)}", sent.time, sent.time + TIMEOUT, 0, lost, MENDING)


def repeated_losses(leaving: Leavings) -> Iterator[Fault]:
    """The same, but nodes may send it again: nobody has to end."""
    for fault in losses(leaving):
        yield replace(fault, what=f"{fault.what}, which may be sent again", attempts=FEW, final=False)


def cuts(leaving: Leavings) -> Iterator[Fault]:
    """One agent reaches nobody for a while; the others give up before the end of it, or insist until then."""
    start = leaving[len(leaving) // 4].time
    window = {"start": start, "end": start + CUT_OFF, "groups": [[VICTIM]]}
    for attempts, how in ((FEW, "a few attempts"), (MANY, "attempts until then")):
        what = f"agent {VICTIM} was cut off from {start:g} to {start + CUT_OFF:g} ({how})"
        yield Fault(what, start, start + CUT_OFF, attempts, network={"partitions": [window]})


def delays(leaving: Leavings) -> Iterator[Fault]:
    """The middle message of each kind that the server sends, or where there is none an agent, comes late."""
    served = [sent for sent in leaving if sent.source == SERVER] or leaving
    for sent in _middle(served):
        late, patient = {sent.key: LATE}, {**MENDING, "retransmission": {"timeout": 2 * LATE}}
        what = f"{_named(sent)} came {LATE:g} late"
        yield Fault(what, sent.time, sent.time + LATE, messages=late, network=patient, final=False)


def outages(leaving: Leavings) -> Iterator[Fault]:
    """One agent goes down while it handles the middle message of each kind that it gets."""
    for sent in _middle([sent for sent in leaving if sent.destination == VICTIM]):
        start = sent.time + LATENCY + HANDLING / 2
        outage = {"start": start, "end": FOR_EVER, "nodes": [VICTIM]}
        what = f"agent {VICTIM} had been handed {_named(sent)} and went down for good"
        yield Fault(what, start, start, network={"outages": [outage]}, down=VICTIM)


KINDS: Mapping[str, Callable[[Leavings], Iterator[Fault]]] = {
    "lost": losses,
    "cut_off": cuts,
    "late": delays,
    "down": outages,
}


def _alike(leaving: Leavings) -> list[list[Leaving]]:
    """The messages by kind and direction."""
    found: dict[tuple[str, str], list[Leaving]] = defaultdict(list)
    for sent in leaving:
        direction = DOWN if sent.source == SERVER else UP if sent.destination == SERVER else PEER
        found[sent.kind, direction].append(sent)
    return list(found.values())


def _middle(leaving: Leavings) -> list[Leaving]:
    return [alike[len(alike) // 2] for alike in _alike(leaving)]


def _first_and_middle(leaving: Leavings) -> Iterator[Leaving]:
    for alike in _alike(leaving):
        yield from dict.fromkeys([alike[0], alike[len(alike) // 2]])


def _named(sent: Leaving) -> str:
    return f"the {sent.kind!r} from {who(sent.source)} to {who(sent.destination)} at {sent.time:g}"


def who(node: Address) -> str:
    """A node in words."""
    return "the server" if node == SERVER else f"agent {node}"
