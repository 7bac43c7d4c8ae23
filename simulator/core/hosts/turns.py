"""The schedule at work: tells agents when a turn of theirs is due."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from coband.simulator.core.audit.progress import Progress
from coband.simulator.core.clock.clock import TURN, Clock
from coband.simulator.core.clock.schedule import AnySchedule, Phases, Renewal
from coband.simulator.core.hosts.agent_host import AgentHost
from coband.simulator.core.hosts.host import Host
from coband.simulator.core.hosts.phases import PhaseHost
from coband.simulator.core.node import Address
from coband.simulator.core.randomness.distributions import Draws
from coband.simulator.core.randomness.streams import Streams


class Turns:
    """Puts the turns of a run on the clock.

    Args:
        agents: number of agents.
        prefetching: whether agents are shown their arms before a round.
    """

    def __init__(
        self, schedule: AnySchedule, agents: int, clock: Clock, streams: Streams, progress: Progress, prefetching: bool
    ) -> None:
        self._schedule, self._agents, self._clock, self._streams = schedule, agents, clock, streams
        self._progress, self._prefetching = progress, prefetching
        self._hosts: Sequence[Host] = ()
        self._thinking: list[Draws] = []
        self._ticks: Iterator[tuple[float, int]] = iter(())

    def start(self, hosts: Sequence[Host]) -> None:
        """Begin; ``hosts`` by address, agents first."""
        self._hosts = hosts
        schedule = self._schedule
        if isinstance(schedule, Renewal):
            self._thinking = self._paced(schedule)
            for agent in range(self._agents):
                self.think(agent)
        elif isinstance(schedule, Phases):
            for host in hosts:
                if isinstance(host, PhaseHost):
                    host.call()
        else:
            self._ticks = schedule.ticks(self._agents, self._streams)
            self._schedule_tick()

    def host(self, agent: Address) -> AgentHost:
        """The host of an agent that takes turns."""
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
        """Put the schedule's next tick on the clock."""
        time, agent = next(self._ticks, (np.inf, -1))
        if agent >= 0 and self._progress.may_start(time):
            self._clock.at(time, TURN, agent, self._tick, agent)

    def _tick(self, event: Any) -> None:
        if event.value == 0 and self._prefetching:
            for agent in range(self._agents):
                self.host(agent).prefetch()
        self.host(event.value).tick()
        self._schedule_tick()

    def think(self, agent: Address) -> None:
        """Renewal: the agent's next turn is due when its think time is over."""
        schedule = self._schedule
        assert isinstance(schedule, Renewal)
        host = self.host(agent)
        if schedule.turns is None or host.turns < schedule.turns:
            time = self._clock.now + self._thinking[agent]()
            if self._progress.may_start(time):
                self._clock.at(time, TURN, agent, lambda event: host.tick())
