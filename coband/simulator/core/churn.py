"""Churn: nodes go down and come up as a plan says, until nobody has anything left to do.

Without batteries an outage is an event, as is every change of agents that have outages, or whose availability does not
say when they leave for good (``BaseAvailability.leaves``). For all others it is worked out when it matters: when an
agent has something to do, or is sent something. If it is down then, it comes up by an event; if it has been down in the
middle of work, the work takes longer by as much. So an agent that has nothing to do costs nothing while it comes and
goes.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from coband.simulator.core.clock.clock import STATE
from coband.simulator.core.hosts import absence
from coband.simulator.core.hosts.absence import Absent, Ahead, Powered
from coband.simulator.core.hosts.availability import Always, BaseAvailability, blocks_of
from coband.simulator.core.hosts.batteries import Batteries
from coband.simulator.core.hosts.host import Host
from coband.simulator.core.hosts.stays import Stays
from coband.simulator.core.network.local import Local
from coband.simulator.core.network.transport import Transport
from coband.simulator.core.nodes.node import SERVER, Address
from coband.simulator.core.plan import Plan
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.core.records import trace as tr
from coband.simulator.core.run_context import RunContext


class Churn:
    """Tells hosts, transport and LOCAL service which nodes are up.

    Args:
        hosts: by address; the server's, if there is one, last.
        has_server: whether there is one.
    """

    def __init__(
        self,
        plan: Plan,
        run: RunContext,
        hosts: Sequence[Host],
        has_server: bool,
        transport: Transport,
        local: Local | None,
    ) -> None:
        self._plan, self._run, self._hosts, self._has_server = plan, run, hosts, has_server
        self._transport, self._local = transport, local
        self._since: dict[Address, int] = {}  # seq of the event of going down
        self.lost: set[Address] = set()  # down for good
        self._ahead = 0
        self.heals = math.inf if plan.network.heals is None else plan.network.heals

    def start(self, streams: Streams) -> None:
        """Put the changes that are events on the clock."""
        plan, availability, count = self._plan, self._plan.agents.availability, self._plan.agents.count
        outages = [
            {
                node: windows
                for node, windows in outage.windows(count, streams("faults", number, "outage")).items()
                if node != SERVER or self._has_server
            }
            for number, outage in enumerate(plan.network.outages)
        ]
        if plan.stays is not None:
            self._await(plan.stays)
        absences: dict[Address, list[Ahead]] = defaultdict(list)
        if self._run.energy is not None or not isinstance(availability, Always):
            times = partial(_times, self._run.energy, availability, outages, streams)
            attendance = Attendance(self, self._run, self._hosts, times)
            apart = {node for nodes in outages for node in nodes}
            for agent in range(count):
                leaves = availability.leaves(agent)
                if self._run.energy is not None:
                    last = math.inf if plan.stays is None else float(plan.stays.leaving[agent])
                    attendance.expect(agent, last if leaves is None else leaves)
                elif leaves is None or agent in apart:
                    absences[agent].append(_usual(availability, streams, agent))
                else:
                    attendance.expect(agent, leaves)
        for nodes in outages:
            for node, windows in nodes.items():
                if node == SERVER or self._run.energy is None:
                    absences[node].append(_outage(node, windows))
        for node, found in absences.items():
            Switch(self, self._run, node, found).next()

    def _await(self, stays: Stays) -> None:
        """Nobody counts on agents until they join."""
        for agent in np.flatnonzero(stays.joins > 0.0).tolist():
            self._run.down.gone.add(agent)
            if stays.joins[agent] < stays.leaving[agent]:
                self.at(float(stays.joins[agent]), agent, self._join, agent)
            else:
                self.lost.add(agent)
                self._run.down.left.add(agent)

    # --- changes

    def at(self, time: float, node: Address, change: Callable[[Any], None], value: object) -> None:
        """Put a change on the clock: ``change`` is called with ``value``."""
        self._ahead += 1
        self._run.clock.at(time, STATE, node, change, value)

    def due(self, value: Any) -> Any:
        """A change is due: its value."""
        self._ahead -= 1
        return value

    def go_down(self, node: Address, since: float) -> None:
        """A node is down, since some time until now."""
        run = self._run
        run.down.add(node)
        self._since[node] = run.trace.record(run.clock.now, tr.DOWN, node, value=run.clock.now - since)
        self._hosts[node].go_down(since)

    def come_up(self, node: Address, since: float) -> None:
        """A node is up again, since some time until now."""
        run = self._run
        run.down.remove(node)
        cause = run.trace.record(run.clock.now, tr.UP, node, value=run.clock.now - since)
        self._hosts[node].come_up(cause, since)
        self._transport.came_up(node)
        if self._local is not None:
            self._local.came_up(node)

    def _join(self, value: Any) -> None:
        agent = self.due(value)
        if agent not in self.lost:
            self._run.down.gone.discard(agent)

    def gone(self, node: Address) -> None:
        """A node is down for good: all others notice, after a while, that nothing comes from it; in a star agents wait
        for the server only."""
        if node in self.lost:
            return
        self.lost.add(node)
        self._run.down.gone.add(node)
        if self._plan.stays is not None and node != SERVER and self._run.clock.now >= self._plan.stays.leaving[node]:
            self._run.down.left.add(node)
        self._transport.went(node)
        if self._local is not None:
            self._local.went(node)
        for host in self._hosts[-1:] if self._has_server and node != SERVER else self._hosts:
            if host.address != node:
                host.on_silence(node, self._since[node])

    @property
    def idle(self) -> bool:
        """Whether nobody need go down any more, so that the run ends.

        That is when nothing is ahead but changes of availability, and no node that is down has work left.
        """
        clock = self._run.clock
        if clock.now >= self.heals:
            return True
        if clock.ahead > self._ahead + self._transport.idle_timers:
            return False
        postponed = self._transport.postponed or (self._local is not None and self._local.postponed)
        return not postponed and not any(self._hosts[node].has_work for node in self._run.down - self._run.down.gone)


class Switch:
    """Puts a node down and up by events; with several reasons to be down it is up when none is left."""

    def __init__(self, churn: Churn, run: RunContext, node: Address, absences: Sequence[Ahead]) -> None:
        self._churn, self._clock, self._node, self._absences = churn, run.clock, node, absences

    def next(self) -> None:
        """Put the next time of going down on the clock."""
        start = min(ahead.skip(self._clock.now)[0] for ahead in self._absences)
        if math.isfinite(start):
            self._churn.at(start, self._node, self._go_down, None)

    def _go_down(self, value: Any) -> None:
        self._churn.due(value)
        if not self._churn.idle:
            self._churn.go_down(self._node, self._clock.now)
            self._stay(self._at_hand())

    def _at_hand(self) -> list[tuple[float, float]]:
        """The absences of now; others that they cover are never looked at."""
        now = self._clock.now
        return [window for window in (ahead.skip(now) for ahead in self._absences) if window[0] <= now]

    def _stay(self, windows: Sequence[tuple[float, float]]) -> None:
        """Stay down until the last of some absences is over."""
        end = max(end for _, end in windows)
        if math.isfinite(end):
            self._churn.at(end, self._node, self._come_up, None)
        else:
            self._churn.gone(self._node)

    def _come_up(self, value: Any) -> None:
        self._churn.due(value)
        if windows := self._at_hand():
            self._stay(windows)
        else:
            self._churn.come_up(self._node, self._clock.now)
            self.next()


class Attendance:
    """Works out whether agents are down when somebody asks.

    Args:
        times: the times of an agent.
    """

    def __init__(
        self, churn: Churn, run: RunContext, hosts: Sequence[Host], times: Callable[[Address], Ahead | Powered]
    ) -> None:
        assert isinstance(run.down, Absent)
        self._churn, self._clock, self._down, self._hosts, self._times = churn, run.clock, run.down, hosts, times
        self._ahead: dict[Address, Ahead | Powered] = {}
        self._down.catch_up, self._down.is_away = self._catch_up, self._is_away
        if run.energy is not None:
            run.energy.drained = self._drained

    def expect(self, agent: Address, leaves: float) -> None:
        """Answer for an agent, which goes down for good at a time."""
        self._down.until[agent] = 0.0
        if math.isfinite(leaves):
            self._churn.at(leaves, agent, self._leave, agent)

    def _drained(self, agent: Address, flat: bool) -> None:
        """An agent has spent energy; one that is below its reserve ends what it is doing at this moment."""
        times, now = self._times_of(agent), self._clock.now
        assert isinstance(times, Powered)
        self._down.until[agent] = max(times.changed(), math.nextafter(now, math.inf))
        if flat:
            self._churn.at(now, agent, self._flat, agent)

    def _flat(self, value: Any) -> None:
        agent = self._churn.due(value)
        if not set.__contains__(self._down, agent):
            self._catch_up(agent)

    def _times_of(self, agent: Address) -> Ahead | Powered:
        ahead = self._ahead.get(agent)
        if ahead is None:
            ahead = self._ahead[agent] = self._times(agent)
        return ahead

    def _is_away(self, agent: Address) -> bool:
        """Whether an agent is down now that does nothing."""
        start, _ = self._times_of(agent).skip(self._clock.now)
        return start <= self._clock.now and start < self._churn.heals

    def _catch_up(self, agent: Address) -> None:
        """Take note of absences in the middle of work, and of one that lasts until later than now."""
        ahead, now, heals = self._times_of(agent), self._clock.now, self._churn.heals
        self._down.until[agent] = math.inf
        if self._hosts[agent].busy:
            passed = 0
            while ahead.window[1] <= now and ahead.window[0] < heals:
                start, end = ahead.window
                ahead.drop()
                if (passed := passed + 1) > absence.MOST_AT_ONCE:
                    raise absence.too_many(agent, now)
                self._churn.go_down(agent, start)
                self._churn.come_up(agent, end)
        start, end = ahead.skip(now)
        if start >= heals:
            return
        if start > now:
            self._down.until[agent] = start
            return
        self._churn.go_down(agent, start)
        if math.isfinite(end):
            self._churn.at(end, agent, self._come_up, agent)
        elif isinstance(ahead, Powered):
            self._churn.gone(agent)

    def _come_up(self, value: Any) -> None:
        agent = self._churn.due(value)
        self._ahead[agent].drop()
        self._churn.come_up(agent, self._clock.now)
        self._down.until[agent] = self._clock.now

    def _leave(self, value: Any) -> None:
        agent = self._churn.due(value)
        if self._churn.idle:
            self._down.until[agent] = math.inf
        elif agent in self._churn.lost:  # its battery was flat until now
            self._down.left.add(agent)
        elif agent in self._down:
            self._churn.gone(agent)


def _usual(availability: BaseAvailability, streams: Streams, agent: Address) -> Ahead:
    stream = streams("faults", agent, "availability")
    return Ahead(agent, availability.blocks(agent, stream), partial(availability.later, agent, stream))


def _outage(node: Address, windows: Iterable[tuple[float, float]]) -> Ahead:
    return Ahead(node, blocks_of(node, windows), lambda _: None)


def _times(
    energy: Batteries | None,
    availability: BaseAvailability,
    outages: Sequence[Mapping[Address, Iterable[tuple[float, float]]]],
    streams: Streams,
    agent: Address,
) -> Ahead | Powered:
    if energy is None:
        return _usual(availability, streams, agent)
    away = [_outage(agent, nodes[agent]) for nodes in outages if agent in nodes]
    if not isinstance(availability, Always):
        away.append(_usual(availability, streams, agent))
    return Powered(energy, agent, away)
