"""An agent in simulated time: takes one turn after the other, and hears its neighbours in a graph."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from coband.simulator.arms import ArmSet
from coband.simulator.core.audit import trace as tr
from coband.simulator.core.audit.progress import Progress
from coband.simulator.core.audit.trace import Trace
from coband.simulator.core.clock.clock import TURN, Clock
from coband.simulator.core.hosts.host import ClientHost, Inspect, Send
from coband.simulator.core.message import Message
from coband.simulator.core.node import Address, Agent
from coband.simulator.core.packet import Packet
from coband.simulator.core.randomness.distributions import Draws
from coband.simulator.core.world import World


class AgentHost(ClientHost):
    """Wraps one agent and gives it its turns.

    Args:
        world: where arms and rewards come from.
        compute: draws the time that a turn takes; None for none.
        progress: takes note of every pull.
        after_turn: called with the agent's index when one of its turns has ended (renewal schedules).
    """

    node: Agent

    def __init__(
        self,
        node: Agent,
        clock: Clock,
        trace: Trace,
        handling: Draws | None,
        send: Send,
        check: Inspect | None,
        *,
        world: World,
        compute: Draws | None,
        progress: Progress,
        after_turn: Callable[[int], None] | None,
    ) -> None:
        super().__init__(node, clock, trace, handling, send, check)
        self._world, self._compute, self._progress, self._after_turn = world, compute, progress, after_turn
        self._domain = node.context.domain
        self._prefetched: ArmSet | None = None
        foresees = node.context.sharing.on and type(node).foresee is not Agent.foresee and self._domain is None
        self._ahead: int = getattr(world, "turns_ahead", 0) if foresees else 0
        self._foreseen: deque[ArmSet] = deque()
        self.turns = 0
        self._due = 0

    def tick(self) -> None:
        """The schedule allows one more turn."""
        if self.node.done:
            return
        if self._busy or self.node.waiting or self._due or self.down:
            self._due += 1
        else:
            self._start_turn()

    @property
    def due(self) -> int:
        """Turns that the schedule has allowed and the agent has not started."""
        return self._due

    def _start_turn(self) -> None:
        self.turns += 1
        now = self._clock.now
        cause, self._resumption = self._resumption, tr.NONE
        seq = self._trace.record(now, tr.TURN, self.address, cause=cause, value=self.turns)
        if self._compute is None:
            self._turn(seq)
        else:
            self._busy = True
            self._clock.at(now + self._compute(), TURN, self.address, self._end_turn, seq)

    def _end_turn(self, event: Any) -> None:
        if self._is_suspended(TURN, self._end_turn, event):
            return
        self._busy = False
        self._turn(event.value)
        self._next()

    def _turn(self, cause: int) -> None:
        """Choose, pull, observe, send: one step of the paper's loop."""
        agent, turn, now = self.address, self.turns, self._clock.now
        arms, self._prefetched = self._arms(turn), None
        arm = self.node.choose(arms)
        reward, regret = self._world.pull(agent, turn, arm)
        detail = self._progress.describe_choice(arms.features, arm)
        seq = self._trace.record(now, tr.CHOOSE, agent, cause=cause, value=arm, detail=detail)
        seq = self._trace.record(now, tr.REWARD, agent, cause=seq, value=reward)
        self._carry_out(self.node.observe(arms, arm, reward), seq)
        self._progress.pulled(agent, now, regret, reward, seq)
        if self._check is not None:
            self._check(self.node, None, seq)
        self._note_waiting(seq)
        self._foresee()
        if self._after_turn is not None:
            self._after_turn(agent)

    def hear(self, messages: Sequence[tuple[Address, Message]], cause: int) -> None:
        """LOCAL messages have reached this agent, all at one moment; their arrival is in the trace already."""
        if not self._busy and self._handling is None:
            self._carry_out(self.node.receive_all(messages), cause)
            if self._check is not None:
                self._check(self.node, None, cause)
            self._after_handling(cause)
            return
        for origin, message in messages:
            packet = Packet(message, -1, origin, self.address, 0, cause, tr.NONE, message.scalars)
            if self._busy:
                self._inbox.append((packet, cause))
            else:
                self._start_handling(packet, cause)

    def prefetch(self) -> None:
        """Show the agent the arms of the turn that it is about to take."""
        if not (self._busy or self._due or self.down or self.node.waiting or self.node.done):
            self._prefetched = self._arms(self.turns + 1)
            self.node.prefetch(self._prefetched)

    def _arms(self, turn: int) -> ArmSet:
        """The arm set of the turn that comes next: one object, however often it is asked for."""
        if self._domain is not None:
            return self._domain
        if self._prefetched is not None:
            return self._prefetched
        return self._foreseen.popleft() if self._foreseen else ArmSet(self._world.arms(self.address, turn))

    def _foresee(self) -> None:
        """Show the agent the arms of turns to come."""
        while len(self._foreseen) < self._ahead:
            arms = ArmSet(self._world.arms(self.address, self.turns + len(self._foreseen) + 1))
            self._foreseen.append(arms)
            self.node.foresee(arms)

    def _handle(self, packet: Packet, seq: int) -> None:
        super()._handle(packet, seq)
        self._after_handling(seq)

    def _after_handling(self, seq: int) -> None:
        self._note_waiting(seq)
        if self._due and not self._busy and not self.node.waiting and not self._inbox:
            self._clock.at(self._clock.now, TURN, self.address, self._take_due)

    def _wake(self, cause: int) -> None:
        if self._due and not self._busy:
            if self._resumption == tr.NONE:
                self._resumption = cause
            self._clock.at(self._clock.now, TURN, self.address, self._take_due)

    @property
    def has_work(self) -> bool:
        may = self._due > 0 and not (self.node.waiting or self.node.done)
        return may or super().has_work

    def _next(self) -> None:
        super()._next()
        self._take_due()

    def _take_due(self, event: Any = None) -> None:
        """Take the turns that fell due while the agent was busy or waiting."""
        while self._due and not (self._busy or self.down or self.node.waiting or self.node.done):
            self._due -= 1
            if self._progress.may_start(self._clock.now):
                self._start_turn()
