"""An agent whose rewards come some time after its pulls: meanwhile it takes other turns."""

from __future__ import annotations

from collections import deque
from typing import Any

from coband.simulator.core.clock.clock import DELIVERY
from coband.simulator.core.hosts.agent_host import AgentHost
from coband.simulator.core.hosts.host import Outstanding, kept_of, observe_late
from coband.simulator.core.randomness.distributions import Draws
from coband.simulator.core.records import trace as tr


class LateRewardsHost(AgentHost):
    """Gives an agent its rewards when they have come.

    Those that come while it is busy, down or waiting for its protocol, which rests then, are kept until it goes on;
    they are before turns that are due.

    Args:
        delay: draws the time from a pull to its reward.
    """

    def __init__(self, *host: Any, delay: Draws, **rest: Any) -> None:
        super().__init__(*host, **rest)
        self._delay = delay
        self._here = deque[Outstanding]()

    def _start_turn(self) -> None:
        if self._compute is not None:
            super()._start_turn()
            return
        self.turns += 1
        now = self._clock.now
        self._turn(self._trace.record(now, tr.TURN, self.address, cause=self.resumed(), value=self.turns))

    def _turn(self, cause: int) -> None:
        node, now, progress = self.node, self._clock.now, self._progress
        offered = arms = self._arms()
        arm = node.choose(arms)
        reward, regret = self._reward(offered, arm)
        if self._veiled is not None:
            arms = self._veiled(self.address, self.turns, arms, arm)
        detail = progress.describe_choice(arms.features, arm)
        seq = self._trace.record(now, tr.CHOOSE, self.address, cause=cause, value=arm, detail=detail)
        self._carry_out([], seq, "choose")
        progress.decisions.note(node.pulls_in_model, self.newest, seq)
        progress.pulled(self.address, now, regret, reward, seq)
        if self._check is not None:
            self._check.chose(node, offered, arm, seq)
        progress.outstanding += 1
        pull = Outstanding(arms, arm, reward, seq, kept_of(node))
        self._clock.at(now + self._delay(), DELIVERY, self.address, self._comes, pull)
        if self._after_turn is not None:
            self._after_turn(self.address)

    def _comes(self, pull: Outstanding) -> None:
        self._here.append(pull)
        self._learn()

    def _learn(self) -> None:
        """Learn from the rewards that are here, as long as the agent may."""
        while self._here and not (self.busy or self.address in self._down or self.node.waiting):
            pull, node, now = self._here.popleft(), self.node, self._clock.now
            seq = self._trace.record(now, tr.REWARD, self.address, cause=pull.choice, value=pull.reward)
            outbox = observe_late(node, pull)
            self._progress.outstanding -= 1
            self._progress.last_reward = now
            self._carry_out(outbox, seq, "observe")
            if self._check is not None:
                self._check.rewarded(node, pull, outbox, seq)
            self._note_waiting(seq)

    def _go_on(self) -> None:
        if not self._inbox:
            self._learn()
        super()._go_on()

    def _wake(self, cause: int) -> None:
        self._learn()
        super()._wake(cause)

    @property
    def has_work(self) -> bool:
        return bool(self._here and not self.node.waiting) or super().has_work

    def _take_due(self, _: None = None) -> None:
        self._learn()
        super()._take_due()
