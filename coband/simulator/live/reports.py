"""What a process reports in the end, and whether what comes as such from a station fits together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple

import numpy as np

from coband.simulator.core.hosts.host import ClientHost
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import Address, BatchAgent, Client
from coband.simulator.core.records.ledger import DOWN, PEER, UP, Ledger
from coband.simulator.core.records.trace import SEND, PlainRow
from coband.simulator.live.codec import WireError
from coband.simulator.live.machine import Machine, MarkedProgress
from coband.simulator.live.schema import DETAILS, ROWS, Accounts, AgentFacts, Pulls, Report


def report_of(machine: Machine) -> Report:
    """All that the result needs of a process but for the trace."""
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
        agents=tuple(_facts(machine, agent) for agent in machine.agents if agent.context.index in machine.share.nodes),
        spent=() if noising is None else tuple(noising.noted(machine.share.nodes)),
        clipped=(0,) * len(machine.agents) if noising is None else tuple(noising.clipped),
        steps=tuple(machine.steps.items()),
    )


def _accounts(ledger: Ledger) -> Accounts:
    return Accounts(
        kinds=tuple((*key, *astuple(entry)) for key, entry in ledger.by_kind.items()),
        rounds=tuple(ledger.by_round.items()),
        uplink=tuple(ledger.uplink_by_agent),
        downlink=tuple(ledger.downlink_by_agent),
        peer=tuple(ledger.peer_by_agent),
        repeated=(ledger.repeated_messages, ledger.repeated_scalars, ledger.repeated_bits, ledger.acknowledgements),
        carried=tuple(
            (way, kind.__name__, sizes, bits or (), count) for (way, kind, sizes, bits), count in ledger.carried.items()
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


def portions(rows: Sequence[PlainRow]) -> Iterator[tuple[PlainRow, ...]]:
    """Events in portions of which each has room in a frame."""
    start = letters = 0
    for end, row in enumerate(rows, 1):
        letters += len(row[-1] or "")
        if end == len(rows) or end - start == ROWS or letters >= DETAILS:
            yield tuple(rows[start:end])
            start, letters = end, 0


def check_rows(rows: Sequence[PlainRow], due: int, agents: int) -> None:
    """Events must be numbered one by one, from ``due``, and happen at nodes that there are.

    Raises:
        WireError: what is wrong.
    """
    for seq, row in enumerate(rows, due):
        if row[0] != seq:
            raise WireError(f"rows with event {row[0]} where event {seq} was due")
        if row[3] >= agents or row[4] >= agents or (row[2] == SEND and not 0 <= row[12] <= agents):
            raise WireError(f"rows whose event {seq} is of nodes that there are not")


def check_report(
    report: Report,
    rows: Sequence[PlainRow],
    first: int,
    own: Sequence[Address],
    agents: int,
    kinds: Mapping[str, type[Message]],
) -> None:
    """All that a report names must be there.

    Args:
        rows: the events that came before, numbered from ``first``.
        own: agents of the station.
        agents: of the run.
        kinds: of messages, by name.

    Raises:
        WireError: what is wrong.
    """
    pulls, ledger = report.pulls, report.ledger
    if len({len(column) for column in pulls}) > 1:
        raise WireError("a report whose columns of pulls differ in length")
    if not set(pulls.agents) <= set(own) or [facts.agent for facts in report.agents] != list(own):
        raise WireError("a report about agents of other stations, or not about all of this one's")
    if any(not first <= mark < first + len(rows) for mark in pulls.marks):
        raise WireError("a report of pulls without their events")
    if list(report.steps) != sorted(report.steps):
        raise WireError("a report whose steps go back")
    if any(max(row[7], row[13]) >= len(report.names) for row in rows):
        raise WireError("a report without names that its events have")
    if any(
        way not in (UP, DOWN, PEER)
        or name not in kinds
        or not len(kinds[name].payload_fields()) == len(sizes) == len(bits or sizes)
        for way, name, sizes, bits, _ in ledger.carried
    ):
        raise WireError("a report of messages or fields that this algorithm does not have")
    if any(len(scalars) != agents for scalars in (ledger.uplink, ledger.downlink, ledger.peer)):
        raise WireError(f"a report whose ledger is not one of {agents} agents")
    if len(report.clipped) != agents or not {node for _, node, _ in report.spent} <= set(own):
        raise WireError("a report about the privacy of other agents")
