"""An agent in simulated time: takes one turn after the other, and hears its neighbours in a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coband.simulator.arms import ArmSet, coming
from coband.simulator.arrays import FloatArray
from coband.simulator.core.clock.clock import TURN
from coband.simulator.core.hosts.host import ClientHost
from coband.simulator.core.nodes.message import Message, refuse_choice, returned
from coband.simulator.core.nodes.node import Address, Agent, Neighbours, Outbox
from coband.simulator.core.packet import Packet
from coband.simulator.core.randomness.distributions import Draws
from coband.simulator.core.records import trace as tr
from coband.simulator.core.records.progress import NEVER, Progress
from coband.simulator.core.world import World

Veil = Callable[[Address, int, ArmSet, int], ArmSet]
"""What an agent learns of its arms after a pull, where that is not what it has chosen from."""


@dataclass(slots=True)
class Turn:
    """A turn that was taken: chosen, pulled and observed, and not yet in the accounts."""

    host: AgentHost
    number: int
    arms: ArmSet
    arm: int
    reward: float
    regret: float
    in_model: int | None
    outbox: Outbox

    @property
    def uneventful(self) -> bool:
        """Whether it has nothing to tell the trace beside its messages."""
        node = self.host.node
        return not node.notes and node.waiting == self.host.waited

    @property
    def floods(self) -> bool:
        """Whether its one message goes to all agents within some hops."""
        try:
            return len(self.outbox) == 1 and type(self.outbox[0][0]) is Neighbours
        except TypeError:  # it is not an outbox, which its host says
            return False


class AgentHost(ClientHost):
    """Wraps one agent and gives it its turns.

    Args:
        compute: draws the time that a turn takes; None for none.
        after_turn: called with the agent's index when one of its turns has ended (renewal schedules).
        upcoming: the arms of an agent's turn, given by its number, and of turns after it; None to ask turn by turn.
    """

    node: Agent
    due = 0

    def __init__(
        self,
        *host: Any,
        world: World,
        compute: Draws | None,
        progress: Progress,
        after_turn: Callable[[int], None] | None,
        upcoming: Callable[[Address, int], FloatArray] | None = None,
    ) -> None:
        super().__init__(*host)
        self._world, self._compute, self._progress, self._after_turn = world, compute, progress, after_turn
        self._domain = self.node.context.domain
        self._veiled: Veil | None = getattr(world, "veiled", None)
        self._upcoming = upcoming
        self._ahead: list[ArmSet] = []  # from this turn on, if the agent looks ahead
        self._first = 1
        self.turns = 0
        self.newest = NEVER  # when the newest message from which the agent has learnt was sent

    def tick(self) -> None:
        """The schedule allows one more turn."""
        if self.admits():
            self._start_turn()

    def admits(self) -> bool:
        """Whether a turn that the schedule allows can start now; if not, it is kept."""
        if self.node.done:
            return False
        if self.busy or self.node.waiting or self.due or self.address in self._down:
            self.due += 1
            return False
        return True

    def _start_turn(self) -> None:
        self.turns += 1
        if self._compute is None:
            arms = self._arms()
            self.enter(self.pull(arms, self.node.choose(arms)))
        else:
            now = self._clock.now
            seq = self._trace.record(now, tr.TURN, self.address, cause=self.resumed(), value=self.turns)
            self.busy = True
            self._clock.at(now + self._compute(), TURN, self.address, self._end_turn, seq)

    def resumed(self) -> int:
        """What ended the wait before the turn that starts now; NONE if there was none."""
        cause, self._resumption = self._resumption, tr.NONE
        return cause

    def _end_turn(self, cause: int) -> None:
        if self._is_suspended(TURN, self._end_turn, cause):
            return
        self.busy = False
        self._turn(cause)
        self._next()

    def _turn(self, cause: int) -> None:
        """Choose, pull, observe, send: one step of the paper's loop, at the end of a turn that took time."""
        arms = self._arms()
        turn = self.pull(arms, self.node.choose(arms))
        now, detail = self._clock.now, self._described(turn)
        seq = self._trace.record(now, tr.CHOOSE, self.address, cause=cause, value=turn.arm, detail=detail)
        self._end(turn, self._trace.record(now, tr.REWARD, self.address, cause=seq, value=turn.reward))

    def begin(self) -> ArmSet:
        """Start a turn that takes no time; the arms to choose from."""
        self.turns += 1
        return self._arms() if self._domain is None else self._domain

    def pull(self, arms: ArmSet, arm: int) -> Turn:
        """Pull an arm and have the agent learn from it."""
        reward, regret = self._reward(arms, arm)
        in_model = self.node.pulls_in_model
        if self._veiled is not None:
            arms = self._veiled(self.address, self.turns, arms, arm)
        outbox = self.node.observe(arms, arm, reward)
        return Turn(self, self.turns, arms, arm, reward, regret, in_model, outbox)

    def _reward(self, arms: ArmSet, arm: int) -> tuple[float, float]:
        """Reward and regret of an arm of those offered.

        Raises:
            NodeMistake: the agent has chosen none of them, or the world answers with something else.
        """
        if isinstance(arm, (bool, np.bool_)):
            refuse_choice(self.node, arm, len(arms))
        try:
            found = self._world.pull(self.address, self.turns, arm)
        except Exception:
            refuse_choice(self.node, arm, len(arms))
            raise
        try:
            reward, regret = found
        except (TypeError, ValueError):
            raise returned(self._world, "pull", found, "return the reward and its pseudo-regret") from None
        return reward, regret

    def enter(self, turn: Turn) -> None:
        """Keep the accounts of a turn that took no time, and send its messages."""
        detail = self._described(turn) if self._progress.full else None
        cause, self._resumption = self._resumption, tr.NONE
        seq = self._trace.record_turn(self._clock.now, self.address, cause, turn.number, turn.arm, turn.reward, detail)
        self._end(turn, seq)

    def _described(self, turn: Turn) -> str | None:
        return self._progress.describe_choice(turn.arms.features, turn.arm)

    def _end(self, turn: Turn, seq: int) -> None:
        """Send the messages of a turn and take note of it; ``seq``: of its reward."""
        node = self.node
        if turn.outbox != [] or node.notes or self.address in self._down:
            self._carry_out(turn.outbox, seq, "observe")
        progress = self._progress
        progress.decisions.note(turn.in_model, self.newest, seq - 1)
        progress.pulled(self.address, self._clock.now, turn.regret, turn.reward, seq)
        if self._check is not None:
            self._check.pulled(node, turn.arms, turn.arm, turn.reward, turn.outbox, seq)
        if node.waiting != self.waited:
            self._note_waiting(seq)
        if self._after_turn is not None:
            self._after_turn(self.address)

    @property
    def accepts(self) -> frozenset[Address] | None:
        """Origins of the LOCAL messages that its agent looks at; None if handling takes time or it may look at all."""
        return self.node.accepts if self._handling is None else None

    def hear(self, messages: Sequence[tuple[Address, Message]], cause: int, sent: float) -> None:
        """LOCAL messages have reached this agent, all at one moment; their arrival is in the trace already."""
        if not self.busy and self._handling is None:
            if messages:
                self.newest = max(self.newest, sent)
            outbox = self.node.receive_all(messages)
            self._carry_out(outbox, cause, "receive_all")
            if self._check is not None:
                self._check.heard(self.node, messages, outbox, cause)
            self._note_waiting(cause)
            self._go_on()
            return
        for origin, message in messages:
            packet = Packet(message, origin, self.address, send=cause, scalars=message.scalars, sent=sent)
            if self.busy:
                self.queue(packet, cause)
            else:
                self._start_handling(packet, cause)

    def _arms(self) -> ArmSet:
        """The arm set of the turn that was started."""
        if self._domain is not None:
            return self._domain
        if self._upcoming is None:
            return ArmSet(self._world.arms(self.address, self.turns))
        place = self.turns - self._first
        if place >= len(self._ahead):
            self._ahead, self._first, place = coming(self._upcoming(self.address, self.turns)), self.turns, 0
            self.node.look_ahead(self._ahead)
        return self._ahead[place]

    def _handle(self, packet: Packet, seq: int) -> int:
        node = self.node
        before = node.pulls_in_model
        seq = ClientHost._handle(self, packet, seq)
        if before is not None and not (packet.timer or packet.expired):
            told = packet.origin in node.accepts if node.accepts is not None else node.pulls_in_model != before
            if told:
                self.newest = max(self.newest, packet.sent)
        self._go_on()
        return seq

    def _go_on(self) -> None:
        """After a message: a turn that is due can be taken now."""
        if self.due and not self.busy and not self.node.waiting and not self._inbox:
            self._clock.at(self._clock.now, TURN, self.address, self._take_due)

    def _wake(self, cause: int) -> None:
        if self.due and not self.busy:
            if self._resumption == tr.NONE:
                self._resumption = cause
            self._clock.at(self._clock.now, TURN, self.address, self._take_due)

    @property
    def has_work(self) -> bool:
        may = self.due > 0 and not (self.node.waiting or self.node.done)
        return may or super().has_work

    def _next(self) -> None:
        super()._next()
        self._take_due()

    def _take_due(self, _: None = None) -> None:
        """Take the turns that fell due while the agent was busy or waiting."""
        while self.due and not (self.busy or self.address in self._down or self.node.waiting or self.node.done):
            if self._energy is not None and self._energy.is_flat(self.address):
                return  # it goes down at this moment
            self.due -= 1
            if self._progress.may_start(self._clock.now):
                self._start_turn()
