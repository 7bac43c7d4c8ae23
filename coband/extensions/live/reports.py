"""What a process reports in the end, and whether what comes as such from a station fits together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple
from itertools import chain

import numpy as np

from coband import Address, Client, Message
from coband.extending import BatchAgent, ClientHost, ledger, trace
from coband.extensions.live.codec import WireError
from coband.extensions.live.machine import Machine, MarkedProgress
from coband.extensions.live.schema import DETAILS, ROWS, Accounts, AgentFacts, Pulls, Report, Rows


class Recorder:
    """Tells bit by bit what a machine has recorded, so that nothing that others know of is lost with its process."""

    def __init__(self, machine: Machine) -> None:
        self._machine, self._rows = machine, 0
        self._told: Report | None = None

    def news(self) -> Iterator[Rows | Report]:
        """What was recorded since the last time; nothing if no event was."""
        self._machine.run.trace.flush()
        if len(self._machine.rows) > self._rows:
            yield from self._since(last=False)

    def rest(self) -> Iterator[Rows | Report]:
        """All that is left, at the end."""
        self._machine.run.trace.flush()
        yield from self._since(last=True)

    def _since(self, *, last: bool) -> Iterator[Rows | Report]:
        rows, self._rows = self._machine.rows[self._rows :], len(self._machine.rows)
        yield from map(Rows, portions(rows))
        report = report_of(self._machine, last=last)
        told, self._told = self._told, report
        yield report if told is None else _news(report, told)


def _news(report: Report, told: Report) -> Report:
    """What is new in a report since an earlier one."""
    return report._replace(
        ledger=report.ledger._replace(rounds=tuple(set(report.ledger.rounds).difference(told.ledger.rounds))),
        pulls=Pulls._make(column[len(old) :] for column, old in zip(report.pulls, told.pulls, strict=True)),
        lateness=report.lateness[len(told.lateness) :],
        transits=report.transits[len(told.transits) :],
        steps=report.steps[len(told.steps) :],
    )


def report_of(machine: Machine, *, last: bool = True) -> Report:
    """All that the result needs of a process but for the trace; of its agents when it is the ``last``."""
    run, transport, noising = machine.run, machine.transport, machine.noising
    run.trace.flush()
    return Report(
        names=tuple(machine.names),
        ledger=_accounts(run.ledger),
        copies={kind: astuple(copies) for kind, copies in run.audit.copies.items()},
        pulls=_pulls(machine.progress),
        outstanding=machine.progress.outstanding,
        last_delivery=max(machine.router.last_delivery, machine.progress.last_reward),
        bytes=transport.written_bytes,
        lateness=tuple(transport.lateness),
        transits=tuple(transport.transits),
        agents=tuple(
            _facts(machine, agent) for agent in machine.agents if last and agent.context.index in machine.share.nodes
        ),
        spent=() if noising is None else tuple(noising.noted(machine.share.nodes)),
        clipped=(0,) * len(machine.agents) if noising is None else tuple(noising.clipped),
        steps=tuple(machine.steps.items()),
    )


def _accounts(book: ledger.Ledger) -> Accounts:
    return Accounts(
        kinds=tuple((*key, *astuple(entry)) for key, entry in book.by_kind.items()),
        rounds=tuple(book.by_round.items()),
        uplink=tuple(book.uplink_by_agent),
        downlink=tuple(book.downlink_by_agent),
        peer=tuple(book.peer_by_agent),
        repeated=(book.repeated_messages, book.repeated_scalars, book.repeated_bits, book.acknowledgements),
        carried=tuple(
            (way, kind.__name__, sizes, bits or (), count) for (way, kind, sizes, bits), count in book.carried.items()
        ),
    )


def _pulls(progress: MarkedProgress) -> Pulls:
    return Pulls(
        agents=tuple(progress.agents),
        pulls=tuple(progress.pulls),
        times=tuple(progress.times),
        regrets=tuple(progress.regrets),
        rewards=tuple(progress.rewards),
        marks=tuple(progress.scalars),
    )


def _facts(machine: Machine, agent: Client) -> AgentFacts:
    index, closest = agent.context.index, agent.context.closest
    host = machine.hosts[index]
    assert isinstance(host, ClientHost)
    return AgentFacts(
        agent=index,
        rounds=agent.rounds,
        unshared=agent.unshared,
        answer=agent.answer if isinstance(agent, BatchAgent) else None,
        stalled=0 if agent.done else machine.turns.never_taken(host),
        report=agent.report(),
        own=agent.report_own(),
        hindsight=_hindsight(machine, agent),
        warnings=tuple(agent.warnings()),
        closest=None if closest is None else closest.of_agents()[index],
    )


def _hindsight(machine: Machine, agent: Client) -> dict[str, float | int]:
    if not isinstance(agent, BatchAgent) or not hasattr(machine.world, "means"):
        return {}
    return agent.report_in_hindsight(np.stack([machine.world.means(other, 1) for other in range(len(machine.agents))]))


def portions(rows: Sequence[trace.PlainRow]) -> Iterator[tuple[trace.PlainRow, ...]]:
    """Events in portions of which each has room in a frame."""
    start = letters = 0
    for end, row in enumerate(rows, 1):
        letters += len(row[-1] or "")
        if end == len(rows) or end - start == ROWS or letters >= DETAILS:
            yield tuple(rows[start:end])
            start, letters = end, 0


def whole(reports: Sequence[Report]) -> Report:
    """The last of a process's reports, with what was new in all of them."""
    rounds = dict(chain.from_iterable(report.ledger.rounds for report in reports))
    columns = zip(*(report.pulls for report in reports), strict=True)
    return reports[-1]._replace(
        ledger=reports[-1].ledger._replace(rounds=tuple(rounds.items())),
        pulls=Pulls._make(tuple(chain.from_iterable(column)) for column in columns),
        lateness=tuple(chain.from_iterable(report.lateness for report in reports)),
        transits=tuple(chain.from_iterable(report.transits for report in reports)),
        steps=tuple(chain.from_iterable(report.steps for report in reports)),
    )


def check_rows(rows: Sequence[trace.PlainRow], due: int, agents: int) -> None:
    """Events must be numbered one by one, from ``due``, and happen at nodes that there are.

    Raises:
        WireError: what is wrong.
    """
    for seq, row in enumerate(rows, due):
        if row[0] != seq:
            raise WireError(f"rows with event {row[0]} where event {seq} was due")
        if row[3] >= agents or row[4] >= agents or (row[2] == trace.SEND and not 0 <= row[12] <= agents):
            raise WireError(f"rows whose event {seq} is of nodes that there are not")


def check_report(
    report: Report,
    rows: Sequence[trace.PlainRow],
    numbers: range,
    own: Sequence[Address],
    agents: int,
    kinds: Mapping[str, type[Message]],
) -> None:
    """All that a report names must be there.

    Args:
        rows: the events that came since the last report.
        numbers: of all events of the station.
        own: agents of the station.
        agents: of the run.
        kinds: of messages, by name.

    Raises:
        WireError: what is wrong.
    """
    pulls, accounts = report.pulls, report.ledger
    if len({len(column) for column in pulls}) > 1:
        raise WireError("a report whose columns of pulls differ in length")
    told = [facts.agent for facts in report.agents]
    if not set(pulls.agents) <= set(own) or (told and told != list(own)):
        raise WireError("a report about agents of other stations, or not about all of this one's")
    if any(mark not in numbers for mark in pulls.marks):
        raise WireError("a report of pulls without their events")
    if list(report.steps) != sorted(report.steps):
        raise WireError("a report whose steps go back")
    if any(max(row[7], row[13]) >= len(report.names) for row in rows):
        raise WireError("a report without names that its events have")
    if any(
        way not in (ledger.UP, ledger.DOWN, ledger.PEER)
        or name not in kinds
        or not len(kinds[name].payload_fields()) == len(sizes) == len(bits or sizes)
        for way, name, sizes, bits, _ in accounts.carried
    ):
        raise WireError("a report of messages or fields that this algorithm does not have")
    if any(len(scalars) != agents for scalars in (accounts.uplink, accounts.downlink, accounts.peer)):
        raise WireError(f"a report whose ledger is not one of {agents} agents")
    if len(report.clipped) != agents or not {node for _, node, _ in report.spent} <= set(own):
        raise WireError("a report about the privacy of other agents")
