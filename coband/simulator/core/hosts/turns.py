"""The schedule at work: tells agents when a turn of theirs is due."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import takewhile

import numpy as np

from coband.simulator.core.clock.clock import TURN, Clock
from coband.simulator.core.clock.schedule import AnySchedule, BaseSchedule, Phases, Renewal, Rounds
from coband.simulator.core.hosts.agent_host import AgentHost
from coband.simulator.core.hosts.cohort import Cohort
from coband.simulator.core.hosts.host import ClientHost, Host
from coband.simulator.core.hosts.phases import PhaseHost
from coband.simulator.core.hosts.stays import Stays
from coband.simulator.core.nodes.node import Address
from coband.simulator.core.randomness.distributions import Draws
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.core.records.progress import Progress


class Turns:
    """Puts the turns of a run on the clock.

    Args:
        cohort: takes the turns of one instant; None: each turn has an event of its own.
        stays: when agents join and leave, as turns before and after are lost; None: they do not.
    """

    def __init__(
        self,
        schedule: AnySchedule,
        agents: int,
        clock: Clock,
        streams: Streams,
        progress: Progress,
        cohort: Cohort | None,
        stays: Stays | None,
    ) -> None:
        self._schedule, self._agents, self._clock, self._streams = schedule, agents, clock, streams
        self._progress, self._cohort, self._stays = progress, cohort, stays
        self._hosts: Sequence[Host] = ()
        self._thinking: list[Draws] = []
        self._ticks: Iterator[tuple[float, int]] = iter(())
        self._instants: Iterator[tuple[float, list[int]]] = iter(())
        self._together: list[int] = []  # who acted last at one instant, and their hosts
        self._acting: list[AgentHost] = []

    def start(self, hosts: Sequence[Host], only: Collection[Address] | None = None) -> None:
        """Begin; ``hosts`` by address, agents first; ``only``: for these agents, as others are elsewhere."""
        self._hosts = hosts
        schedule, agents = self._schedule, range(self._agents) if only is None else sorted(only)
        if isinstance(schedule, Renewal):
            self._thinking = self._paced(schedule)
            for agent in agents:
                self._begin(agent, partial(self.think, agent))
        elif isinstance(schedule, Phases):
            for agent in agents:
                if isinstance(host := hosts[agent], PhaseHost):
                    self._begin(agent, host.call)
        elif isinstance(schedule, BaseSchedule):
            ticks = schedule.ticks(self._agents, self._streams)
            if self._progress.duration is not None:
                ticks = takewhile(lambda tick: self._progress.may_start(tick[0]), ticks)
            self._ticks = ticks if only is None else (tick for tick in ticks if tick[1] in only)
            if self._cohort is None:
                self._schedule_tick()
            else:
                rounds = schedule.rounds(self._agents) if isinstance(schedule, Rounds) else None
                self._instants = rounds or _instants(self._ticks)
                self._schedule_cohort()

    def _begin(self, agent: Address, start: Callable[[], None]) -> None:
        """Start the turns of an agent when it joins."""
        joins = 0.0 if self._stays is None else float(self._stays.joins[agent])
        if joins > 0.0:
            self._clock.at(joins, TURN, agent, lambda _: start())
        else:
            start()

    def host(self, agent: Address) -> AgentHost:
        host = self._hosts[agent]
        assert isinstance(host, AgentHost)
        return host

    def _paced(self, schedule: Renewal) -> list[Draws]:
        paces = [1.0] * self._agents
        if schedule.pace is not None:
            paces = schedule.pace.draw(self._streams("schedule", 0, "pace"), self._agents).tolist()
        return [
            Draws(schedule.think, self._streams("schedule", agent, "think"), pace) for agent, pace in enumerate(paces)
        ]

    def _schedule_tick(self) -> None:
        """Schedule the next tick; those before which nothing else is due are given at once, as events cost more."""
        clock, hosts, stays = self._clock, self._hosts, self._stays
        for time, agent in self._ticks:
            if not clock.passes(time, TURN, agent):
                clock.at(time, TURN, agent, self._tick, agent)
                return
            if stays is None:
                hosts[agent].tick()  # type: ignore[attr-defined]
            else:
                self._allow(agent)

    def _tick(self, agent: Address) -> None:
        self._allow(agent)
        self._schedule_tick()

    def _allow(self, agent: Address) -> None:
        """The schedule allows one more turn, which is lost before the agent joins and after it leaves."""
        stays = self._stays
        if stays is None or stays.joins[agent] <= self._clock.now < stays.leaving[agent]:
            self.host(agent).tick()

    def _schedule_cohort(self) -> None:
        time, agents = next(self._instants, (np.inf, []))
        if agents and self._progress.may_start(time):
            self._clock.at(time, TURN, agents[0], self._tick_together, agents)

    def _tick_together(self, agents: list[int]) -> None:
        assert self._cohort is not None
        if self._together != agents:
            self._together, self._acting = agents, [self.host(agent) for agent in agents]
        self._cohort.tick(self._acting)
        self._schedule_cohort()

    def think(self, agent: Address) -> None:
        """Renewal: the agent's next turn is due when its think time is over."""
        schedule = self._schedule
        assert isinstance(schedule, Renewal)
        host = self.host(agent)
        if schedule.turns is None or host.turns < schedule.turns:
            time = self._clock.now + self._thinking[agent]()
            if self._progress.may_start(time):
                self._clock.at(time, TURN, agent, self._allow, agent)

    def never_taken(self, host: ClientHost) -> int:
        """Turns of a client that the schedule has and that have not ended at the end of a run, unless it has left."""
        schedule = self._schedule
        if host.left:
            return 0
        if isinstance(schedule, Renewal) and schedule.turns is not None and schedule.duration is None:
            left = schedule.turns - self.host(host.address).turns  # each would have allowed the next
            return left + host.unfinished
        return host.due + host.unfinished


def _instants(ticks: Iterable[tuple[float, int]]) -> Iterator[tuple[float, list[int]]]:
    """Ticks in their order, those at one time together; an agent with several starts again with each of them."""
    now, agents = 0.0, list[int]()
    for time, agent in ticks:
        if agents and (time != now or agent <= agents[-1]):
            yield now, agents
            agents = []
        now = time
        agents.append(agent)
    if agents:
        yield now, agents
