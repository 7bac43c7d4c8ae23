"""Whether an algorithm goes on communicating after a fault.

That nothing is lost or counted twice is safety, which the rest of the kit checks; a protocol that falls silent for good
after one lost message is safe, and useless. Here a run is compared with itself without the fault: every pair of nodes
that goes on talking there has to go on here, nobody may wait forever, and every pull must be somewhere, once. Kinds of
faults (``faults``):

* ``lost``: the first or the middle message of each kind and direction is lost for good;
* ``cut_off``: one agent reaches nobody for longer than anybody's patience, and then comes back;
* ``late``: the middle message of each kind of the server comes later than that;
* ``down``: one agent has been handed a message, goes down before it handles it, and stays down. Nobody is told. What
  the other nodes say to each other has to go on.

Agents that end together (``Needs.ends_together``) have to go on after late messages and after those that may be sent
again; otherwise all have to go on, or all have to stop. An algorithm that waits for everybody, as its paper says,
declares under which parameters (``Needs.waits_for_all``): with these somebody has to wait when an agent stays down,
without them nobody may.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from traceback import extract_tb, format_exception_only
from typing import Any

from coband import SERVER, Address
from coband.extending import RAISED, called, formulas, ledger
from coband.extending import trace as tr
from coband.extensions.conformance.communication import check_complete, check_messages, check_taken_back
from coband.extensions.conformance.demands import NonConformance, Vacuous
from coband.extensions.conformance.graphs import run_anywhere
from coband.extensions.conformance.runs import Key, Leaving, Run, Section, algorithm, batches, problem_of

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
        direction = ledger.DOWN if sent.source == SERVER else ledger.UP if sent.destination == SERVER else ledger.PEER
        found[sent.kind, direction].append(sent)
    return list(found.values())


def _middle(leaving: Leavings) -> list[Leaving]:
    return [alike[len(alike) // 2] for alike in _alike(leaving)]


def _first_and_middle(leaving: Leavings) -> Iterator[Leaving]:
    for alike in _alike(leaving):
        yield from dict.fromkeys([alike[0], alike[len(alike) // 2]])


def _named(sent: Leaving) -> str:
    return f"the {sent.kind!r} from {called(sent.source)} to {called(sent.destination)} at {sent.time:g}"


GRACE = 10.0
"""After the end of a fault nodes may take so long to go on."""
FEWEST = 3
"""A pair with fewer messages in the rest of the undisturbed run says nothing."""
SHARE, BATCH_SHARE = 0.25, 0.5
TURNS, MOST_TURNS = 60, 480
SEED = 5
HARD, PULL_TIME = 0.1, 1e-6
"""Pure exploration: a gap between arms that takes several rounds, and pulls so short that a round does not outlast
patience: an agent sends nothing again before its round of pulls is over."""
Pair = tuple[Address, Address]


class Standstill(str):
    """A sentence about nodes that wait forever, or fall silent."""

    __slots__ = ()


@dataclass(frozen=True)
class Subject:
    """An algorithm with parameters, on a small world, and a kind of faults; ``turns``: of each agent."""

    name: str
    config: Mapping[str, Any]
    kind: str
    turns: int = TURNS

    @property
    def ends_together(self) -> bool:
        """Whether it ends when one of its agents is lost."""
        return algorithm(self.name).needs.ends_together

    @property
    def waits_for_all(self) -> bool:
        """Whether it declares that nodes wait for an agent that stays down."""
        entry = algorithm(self.name)
        values = entry.parameters(entry.config.model_validate({**entry.always, **self.config}))
        return self.kind == "down" and bool(
            entry.needs.waits_for_all and formulas.evaluate(entry.needs.waits_for_all, values)
        )

    @property
    def fewest(self) -> int:
        """Messages of a pair from which on its silence means something; agents in step need not be often heard."""
        return 1 if self.ends_together else FEWEST

    def run(self, fault: Fault | None = None) -> Run:
        """One run; None: the undisturbed one."""
        recovery = {"timeout": TIMEOUT, "backoff": 1.0, "patience": PATIENCE}
        network: dict[str, object] = {
            "latency": LATENCY,
            "retransmission": {"timeout": TIMEOUT, "max_attempts": 1},
            "recovery": recovery,
        }
        if fault is not None:
            enough = (2 * fault.attempts + 1) * TIMEOUT  # for so many attempts
            recovery |= {"attempts": fault.attempts, "patience": max(PATIENCE, enough)}
            network |= fault.network
        return run_anywhere(
            self.name,
            {**algorithm(self.name).always, **self.config},
            agents=AGENTS,
            **({"problem": {**problem_of(self.name), "gap": HARD}} if batches(self.name) else {}),
            seed=SEED,
            agent={"handling": HANDLING} if self.kind == "down" else {},
            schedule=self._schedule(),
            network=network,
            checks="full" if self.kind == "cut_off" and fault is not None else "cheap",
            delays={} if fault is None else fault.messages,
        )

    def _schedule(self) -> Section:
        if batches(self.name):
            return {"kind": "phases", "pull_time": PULL_TIME}
        if "rounds" in algorithm(self.name).needs.schedules:
            return {"kind": "rounds", "turns": self.turns}
        return {"kind": "one_at_a_time", "turns": AGENTS * self.turns, "interval": 1 / AGENTS}

    def faults(self, usual: Run) -> Iterator[Fault]:
        """The faults of its kind that its undisturbed run may have."""
        if usual.leaving:
            yield from KINDS[self.kind](usual.leaving)
        if self.ends_together and self.kind == "lost":
            yield from repeated_losses(usual.leaving)

    def start(self, fault: Fault) -> float:
        """From when on runs are compared. Batches have no time of their own: they wait for each other."""
        if batches(self.name):
            return fault.start
        return fault.end + (GRACE if fault.down is None else 2 * GRACE)

    def share(self, fault: Fault) -> float:
        """Return which share of the undisturbed run's messages has to be sent, and one at least.

        Where an agent is missed to the end the others may be slow; rounds of batches are not: they are all or none.
        """
        if fault.down is not None:
            return 0.0
        return BATCH_SHARE if batches(self.name) else SHARE


def check_liveness(name: str, config: Mapping[str, Any], kind: str) -> str:
    """Compare runs with faults of one kind with the undisturbed run.

    Returns:
        What was checked, in words.

    Raises:
        NonConformance: somebody falls silent, waits forever or loses something; one line for each fault.
        Vacuous: too little is sent to see anything.
    """
    subject, usual = undisturbed(Subject(name, config, kind))
    checked, complaints, waits = list[str](), list[str](), list[str]()
    for fault in subject.faults(usual):
        pairs = talking(subject, usual, fault)
        if pairs:
            checked.append(f"{fault.what}: {', '.join(map(_way, pairs))}")
        for sentence in consequences(subject, usual, fault, pairs):
            declared = subject.waits_for_all and isinstance(sentence, Standstill)
            (waits if declared else complaints).append(f"after {fault.what}, {sentence}")
    if checked and subject.waits_for_all and not waits:
        complaints.append(
            f"Needs.waits_for_all(={algorithm(name).needs.waits_for_all!r}) holds, but nobody waits: drop it"
        )
    if complaints:
        raise NonConformance("\n".join(complaints))
    if not checked:
        raise Vacuous(
            f"{len(usual.leaving)} messages in {usual.result.turns} turns are too few to see whether {name} goes on "
            "after a fault; give parameters with which it communicates more often, here or in Algorithm.always"
        )
    as_declared = ["as Needs.waits_for_all declares:", *waits] if waits else []
    return "\n".join([f"{usual.result.turns} turns; messages after the fault:", *checked, *as_declared])


def undisturbed(subject: Subject) -> tuple[Subject, Run]:
    """The run without faults, long enough for some pair to talk in the last third of it if that can be."""
    usual = subject.run()
    while not batches(subject.name) and subject.turns < MOST_TURNS:
        rest = Fault("", 0.0, 2 / 3 * subject.turns)
        if talking(subject, usual, rest):
            break
        subject = replace(subject, turns=2 * subject.turns)
        usual = subject.run()
    return subject, usual


def talking(subject: Subject, usual: Run, fault: Fault) -> dict[Pair, int]:
    """The messages of every pair that goes on talking without the fault, but for who is down."""
    found = _sent(usual, usual, subject.start(fault))
    return {pair: count for pair, count in found.items() if count >= subject.fewest and fault.down not in pair}


def consequences(subject: Subject, usual: Run, fault: Fault, pairs: Mapping[Pair, int]) -> Iterator[str]:
    """One sentence for each thing that is wrong in the run with a fault."""
    try:
        run = subject.run(fault)
    except RAISED as error:
        place = extract_tb(error.__traceback__)[-1]
        what = "\n".join(format_exception_only(error)).splitlines()[0]
        yield f"the run fails with {what} ({Path(place.filename).name}:{place.lineno}, in {place.name})"
        return
    until = FOR_EVER if fault.down is not None else math.inf
    waiting = [called(agent) for agent in range(AGENTS) if agent != fault.down and _waits(run, agent, until)]
    if waiting:
        yield Standstill(f"{' and '.join(waiting)} wait{'s' * (len(waiting) == 1)} forever")
        return
    turns = None if batches(subject.name) else usual.result.turns
    yield from _complaints(check_complete, run, turns)
    yield from _complaints(check_messages, subject.name, run)
    if fault.down is None:
        yield from _complaints(check_taken_back, run)
    yield from silences(subject, usual, run, fault, pairs)


def _complaints(check: Callable[..., None], *given: object) -> Iterator[str]:
    try:
        check(*given)
    except NonConformance as complaint:
        yield str(complaint)


def silences(subject: Subject, usual: Run, run: Run, fault: Fault, pairs: Mapping[Pair, int]) -> Iterator[str]:
    """One sentence about the pairs that do not go on in the run with a fault."""
    until = FOR_EVER if fault.down is not None else math.inf
    found = _sent(usual, run, subject.start(fault), until)
    share = subject.share(fault)
    silent = [pair for pair, count in pairs.items() if found[pair] < max(1.0, share * count)]
    if subject.ends_together and fault.final and (batches(subject.name) or not any(found[pair] for pair in pairs)):
        return
    counts = [f"{_way(pair)} ({found[pair]} of {pairs[pair]} messages)" for pair in silent]
    if counts:
        yield Standstill(f"from {subject.start(fault):g} on, silence or nearly so: {', '.join(counts)}")


def _sent(usual: Run, run: Run, start: float, until: float = math.inf) -> Counter[Pair]:
    """Messages of each pair in a time; those that carry nothing count only where the pair has no others."""
    loaded = {(sent.source, sent.destination) for sent in usual.leaving if sent.scalars}
    return Counter(
        (sent.source, sent.destination)
        for sent in run.leaving
        if start < sent.time < until and (sent.scalars or (sent.source, sent.destination) not in loaded)
    )


def _waits(run: Run, agent: Address, until: float) -> bool:
    changes = [row.event for row in run.events(tr.WAIT, tr.RESUME) if row.node == agent and row.time < until]
    return bool(changes) and changes[-1] == tr.WAIT


def _way(pair: Pair) -> str:
    return f"{called(pair[0])} to {called(pair[1])}"
