"""One trace, one ledger and one result of what all processes of a run have recorded.

Events are put in the order of their times, each after the event that is its cause: in the order of a Lamport clock. A
process that takes a message goes on at the time of its sending at least, so causes come first wherever clocks differ.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush

import numpy as np

from coband import Address, Client, FloatArray, Message, NodeContext, Outbox, RunResult
from coband.extending import (
    BatchAgent,
    ClosestDecision,
    Ended,
    IntArray,
    Progress,
    RunContext,
    by_name,
    entry_of,
    invariants,
    ledger,
)
from coband.extending import trace as tr
from coband.extensions.live.machine import NUMBERS, Machine
from coband.extensions.live.schema import AgentFacts, Report

BEGINNINGS = (tr.TURN, tr.DELIVER, tr.DROP, tr.DUPLICATE, tr.EXPIRE, tr.RETRANSMIT, tr.TIMER, tr.DOWN, tr.UP)
"""Events that come of nothing that their process has just done."""


@dataclass
class Part:
    """What one process has recorded.

    Attributes:
        rows: events, with numbers of their own and codes of ``report.names``.
    """

    rows: Sequence[tr.PlainRow]
    report: Report


class MergedTrace:
    """Puts the events of several processes into one trace.

    Args:
        whole: whether nothing is missing; else what came of events that nobody has recorded is left out.

    Attributes:
        numbers: number of an event in its process -> in the trace.
        sends: (number of the event, scalars) of every send, in order.
    """

    def __init__(self, trace: tr.Trace, parts: Sequence[Part], *, whole: bool = True) -> None:
        self._trace, self._parts = trace, parts
        self.numbers: dict[int, int] = {}
        self.sends: list[tuple[int, int]] = []
        self._messages: dict[int, int] = {}
        self._places = [0] * len(parts)
        self._ready: list[tuple[float, int, int]] = []
        self._steps = [_step_of_each(part) for part in parts]
        self._waiting: dict[int, list[int]] = defaultdict(list)
        self._now = 0.0
        for part in range(len(parts)):
            self._offer(part)
        while self._ready or (whole and self._waiting):
            if not self._ready:  # a cause that nobody has recorded
                self._ready = [(0.0, 0, part) for part in self._waiting.pop(min(self._waiting))]
            self._take(heappop(self._ready)[2])

    def _offer(self, part: int) -> None:
        """Let the next event of a process come, when its cause has."""
        rows, place = self._parts[part].rows, self._places[part]
        if place < len(rows):
            time, cause = rows[place][1], rows[place][6]
            if cause == tr.NONE or cause in self.numbers:
                heappush(self._ready, (time, self._steps[part][place], part))
            else:
                self._waiting[cause].append(part)

    def _take(self, part: int) -> None:
        """Record the next event of a process, with those of the same moment that come of it without a message."""
        rows, steps, released = self._parts[part].rows, self._steps[part], list[int]()
        while True:
            row = rows[self._places[part]]
            self._places[part] += 1
            self._record(row, self._parts[part].report.names)
            released += self._waiting.pop(row[0], ())
            place = self._places[part]
            following = rows[place] if place < len(rows) and steps[place] == steps[place - 1] else None
            if following is None or following[1] != row[1] or following[2] in BEGINNINGS:
                break
        for other in (part, *released):
            self._offer(other)

    def _record(self, row: tr.PlainRow, names: Sequence[str]) -> None:
        seq, time, event, node, peer, message, cause, kind, scalars, hop, round, version, value, reason, detail = row
        self._now = max(self._now, time)
        number = self._messages.setdefault(message, len(self._messages)) if message != tr.NONE else tr.NONE
        self.numbers[seq] = self._trace.record(
            self._now,
            event,
            node,
            peer,
            message=number,
            cause=self.numbers.get(cause, tr.NONE),
            kind=tr.NONE if kind == tr.NONE else self._trace.names[names[kind]],
            scalars=scalars,
            hop=hop,
            round=round,
            version=version,
            value=value,
            reason=tr.NONE if reason == tr.NONE else self._trace.names[names[reason]],
            detail=detail,
        )
        if event == tr.SEND:
            self.sends.append((self.numbers[seq], scalars * int(value)))

    def drop(self, send: tr.PlainRow, kind: str, receiver: Address) -> None:
        """Record at the end that a copy of a send was lost, as a process was."""
        seq, _, _, node, _, message, _, _, scalars, hop, round, version, _, _, _ = send
        self._trace.record(
            self._now,
            tr.DROP,
            node,
            receiver,
            message=self._messages[message],
            cause=self.numbers[seq],
            kind=self._trace.names[kind],
            scalars=scalars,
            hop=hop,
            round=round,
            version=version,
            value=1.0,
            reason=self._trace.names["down"],
        )


def _step_of_each(part: Part) -> list[int]:
    """The step of virtual time in which each event of a process happened; 0 where time is real."""
    starts, steps = np.array([(0, 0), *part.report.steps]).T
    return list(steps[np.searchsorted(starts, np.arange(len(part.rows)), side="right") - 1])


class Ending(ClosestDecision):
    """What stations have said about the closest decisions of their agents."""

    def __init__(self, found: Sequence[float | None]) -> None:
        super().__init__(len(found))
        self._found = list(found)

    def of_agents(self) -> list[float | None]:
        return self._found


UNKNOWN = AgentFacts(
    agent=0, rounds=0, unshared=0, answer=None, stalled=0, report={}, own={}, hindsight={}, warnings=(), closest=None
)
"""What is known of an agent whose process was lost."""


class Reported(Client):
    """An agent as its process has reported it at the end."""

    def __init__(self, context: NodeContext, facts: AgentFacts) -> None:
        super().__init__(context)
        self.facts, self.rounds, self.unshared = facts, facts.rounds, facts.unshared

    def report(self) -> dict[str, float | int]:
        return dict(self.facts.report)

    def report_own(self) -> dict[str, float | int | None]:
        return dict(self.facts.own)

    def warnings(self) -> Iterator[str]:
        return iter(self.facts.warnings)

    def receive(self, message: Message, source: Address) -> Outbox:
        raise AssertionError("the run has ended")


class ReportedBatchAgent(Reported, BatchAgent):
    """An agent that acted phase by phase."""

    def __init__(self, context: NodeContext, facts: AgentFacts) -> None:
        super().__init__(context, facts)
        self.answer = facts.answer

    def request(self) -> IntArray:
        raise AssertionError("the run has ended")

    def observe_batch(self, counts: IntArray, means: FloatArray) -> Outbox:
        raise AssertionError("the run has ended")

    def report_in_hindsight(self, means: FloatArray) -> dict[str, float | int]:
        return dict(self.facts.hindsight)


def result_of(machine: Machine, parts: Sequence[Part], sink: tr.Sink | None, gone: Sequence[Address] = ()) -> RunResult:
    """The result of a run.

    Args:
        machine: with the server.
        parts: what all processes have recorded, by their numbers; the first is the machine's own.
        sink: takes the trace.
        gone: agents whose process was lost.

    Raises:
        InvariantViolation: a message or a pull is lost, or counted twice.
    """
    trace = tr.Trace(sink if machine.plan.trace != tr.OFF else None)
    merged = MergedTrace(trace, parts)
    accounts, audit = _ledger(machine, parts), _audit(machine, parts)
    progress = _progress(machine, parts, merged, accounts)
    agents = _agents(machine, parts)
    if gone:
        _lose_on_the_way(merged, parts, audit, gone)
    audit.at_end()
    applied = 0 if machine.server is None else machine.server.applied
    unshared = sum(agent.unshared for agent in agents)
    invariants.check_pulls(progress.made - progress.outstanding, unshared, applied, audit.lost_for_good or bool(gone))
    if machine.noising is not None:
        for part in parts[1:]:
            machine.noising.tell(part.report.spent, part.report.clipped)
    ended = Ended(
        RunContext(machine.clock, trace, accounts, audit, machine.run.down),
        progress,
        machine.world,
        None,
        agents,
        machine.server,
        max(part.report.last_delivery for part in parts),
        stalled={agent.agent: agent.stalled for part in parts for agent in part.report.agents},
        declared=by_name(entry_of(machine.share.job, machine.share.scenario).algorithm.metrics),
        dishonest=frozenset() if machine.wire is None else machine.wire.dishonest,
        noising=machine.noising,
        late_rewards=machine.plan.late_rewards,
    )
    result = ended.result()
    result.totals |= _overheads(parts)
    return result


class Sends:
    """The copies of every message, and how many of them have come to an end."""

    def __init__(self) -> None:
        self._rows: dict[int, tr.PlainRow] = {}
        self._open: Counter[int] = Counter()
        self._reached: dict[int, set[Address]] = defaultdict(set)

    def note(self, parts: Sequence[Part]) -> None:
        """Take note of what all processes have recorded."""
        for part in parts:
            for row in part.rows:
                event, message, names = row[2], row[5], part.report.names
                if event == tr.SEND:
                    self._rows[message] = row
                    self._open[message] += int(row[12])
                elif event == tr.RETRANSMIT or (event == tr.DUPLICATE and names[row[13]] == "link"):
                    self._open[message] += 1
                elif event in (tr.DELIVER, tr.DROP, tr.DUPLICATE):
                    self._open[message] -= 1
                    self._reached[message].add(row[3] if event == tr.DELIVER else row[4])

    def on_the_way(self, gone: Sequence[Address]) -> Iterator[tuple[tr.PlainRow, Address]]:
        """Each copy that has come to no end: the row of its send, and its receiver, one that is gone if there is."""
        for message, count in self._open.items():
            if count > 0 and message in self._rows:
                row = self._rows[message]
                to = [row[4]] if row[4] != tr.EVERYONE else [one for one in gone if one != row[3]] or list(gone)
                missing = [one for one in to if one not in self._reached[message]] or to
                yield from ((row, missing[number % len(missing)]) for number in range(count))


def _lose_on_the_way(
    merged: MergedTrace, parts: Sequence[Part], audit: invariants.Audit, gone: Sequence[Address]
) -> None:
    """Copies to and from agents whose process was lost are lost, unless somebody has recorded their end."""
    sends, names = Sends(), {part.rows[0][0] // NUMBERS: part.report.names for part in parts if part.rows}
    sends.note(parts)
    for row, receiver in sends.on_the_way(gone):
        kind = names[row[0] // NUMBERS][row[7]]
        audit.copies[kind].dropped += 1
        merged.drop(row, kind, receiver)


def _overheads(parts: Sequence[Part]) -> dict[str, int | float]:
    """What the simulator does not have: bytes, and how late copies leave and arrive, in units of simulated time."""
    found: dict[str, int | float] = {"live_bytes": sum(part.report.bytes for part in parts)}
    for name in ("lateness", "transits"):
        times = np.concatenate([np.array(getattr(part.report, name), dtype=np.float64) for part in parts])
        if len(times):
            found[f"live_{name}_median"], found[f"live_{name}_90"] = np.quantile(times, (0.5, 0.9)).tolist()
    return found


def _ledger(machine: Machine, parts: Sequence[Part]) -> ledger.Ledger:
    network = machine.plan.network
    total = ledger.Ledger(machine.plan.agents.count, network.scalar_bits, network.header_bits)
    for found in (part.report.ledger for part in parts):
        for kind, direction, *numbers in found.kinds:
            entry = total.by_kind.setdefault((kind, direction), ledger.Entry())
            _add(entry, numbers)
            total.scalars += numbers[2]
        for round, scalars in found.rounds:
            total.by_round[round] += scalars
        for own, theirs in zip(
            (total.uplink_by_agent, total.downlink_by_agent, total.peer_by_agent),
            (found.uplink, found.downlink, found.peer),
            strict=True,
        ):
            own[:] = [one + other for one, other in zip(own, theirs, strict=True)]
        messages, scalars, bits, acknowledgements = found.repeated
        total.repeated_messages += messages
        total.repeated_scalars += scalars
        total.repeated_bits += bits
        total.acknowledgements += acknowledgements
        for way, name, sizes, widths, copies in found.carried:
            key = way, machine.kinds[name], sizes, widths or None
            total.carried[key] = total.carried.get(key, 0) + copies
    return total


def _audit(machine: Machine, parts: Sequence[Part]) -> invariants.Audit:
    audit = invariants.Audit(machine.plan.network.transport == "reliable")
    for part in parts:
        for kind, numbers in part.report.copies.items():
            _add(audit.copies[kind], numbers)
    return audit


def _add(record: ledger.Entry | invariants.Copies, numbers: Sequence[int]) -> None:
    for name, number in zip(record.__dataclass_fields__, numbers, strict=True):
        setattr(record, name, getattr(record, name) + number)


def _progress(machine: Machine, parts: Sequence[Part], merged: MergedTrace, accounts: ledger.Ledger) -> Progress:
    """The pulls of all processes in the order of the trace, each with the scalars that were sent by then."""
    pulls = sorted(
        (merged.numbers[mark], agent, count, time, regret, reward)
        for part in parts
        for agent, count, time, regret, reward, mark in zip(*part.report.pulls, strict=True)
    )
    places, scalars = np.array(merged.sends, dtype=np.int64).reshape(-1, 2).T
    sums = np.concatenate([[0], np.cumsum(scalars)])
    total = Progress(accounts, None, None, False, getattr(machine.world, "realised", False))
    total.outstanding = sum(part.report.outstanding for part in parts)
    now = 0.0
    for place, agent, count, time, regret, reward in pulls:
        now = max(now, time)
        total.pulled(agent, now, regret, reward, place, count)
        total.scalars[-1] = int(sums[np.searchsorted(places, place, side="right")])
    return total


def _agents(machine: Machine, parts: Sequence[Part]) -> list[Client]:
    told = {facts.agent: facts for part in parts for facts in part.report.agents}
    facts = [told.get(agent) or UNKNOWN._replace(agent=agent) for agent in range(len(machine.agents))]
    closest = Ending([agent.closest for agent in facts])
    return [
        (ReportedBatchAgent if isinstance(client, BatchAgent) else Reported)(
            replace(client.context, closest=closest), said
        )
        for client, said in zip(machine.agents, facts, strict=True)
    ]
