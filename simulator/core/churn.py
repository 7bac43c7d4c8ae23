"""Churn: nodes go down and come up as a plan says, until nobody has anything left to do."""

from __future__ import annotations

from collections.abc import Sequence

from coband.simulator.core.hosts.availability import Always, Switch
from coband.simulator.core.hosts.host import Host
from coband.simulator.core.network.local import Local
from coband.simulator.core.network.transport import Transport
from coband.simulator.core.nodes.node import SERVER, Address
from coband.simulator.core.plan import Plan
from coband.simulator.core.randomness.streams import Streams
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

    def start(self, streams: Streams) -> None:
        """Put the changes of availability on the clock."""
        switch = Switch(self._run.clock, self._run.trace, self._run.down, self._switched, self._gone, self._idle)
        availability = self._plan.agents.availability
        if not isinstance(availability, Always):
            for agent in range(self._plan.agents.count):
                switch.follow(agent, availability.windows(agent, streams("faults", agent, "availability")))
        for number, outage in enumerate(self._plan.network.outages):
            rng = streams("faults", number, "outage")
            for node, windows in outage.windows(self._plan.agents.count, rng).items():
                if node != SERVER or self._has_server:
                    switch.follow(node, iter(windows))

    def _switched(self, node: Address, up: bool, cause: int) -> None:
        host = self._hosts[node]
        if not up:
            host.go_down()
            return
        host.come_up(cause)
        self._transport.came_up(node)
        if self._local is not None:
            self._local.came_up(node)

    def _gone(self, node: Address, cause: int) -> None:
        """A node has gone down for good: all others notice, after a while, that nothing comes from it."""
        for host in self._hosts:
            if host.address != node:
                host.on_silence(node, cause)

    def _idle(self, changes: int) -> bool:
        """Whether nobody need go down any more.

        That is when nothing is ahead but so many changes of availability, and no node that is down has work left.
        """
        heals, clock = self._plan.network.heals, self._run.clock
        if heals is not None and clock.now >= heals:
            return True
        if clock.ahead > changes + self._transport.idle_timers:
            return False
        postponed = self._transport.postponed or (self._local is not None and self._local.postponed)
        return not postponed and not any(self._hosts[node].has_work for node in self._run.down)
