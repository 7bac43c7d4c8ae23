"""A batch agent in simulated time: phases of pulls, each a few events however many pulls it holds."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from coband.simulator.arrays import FloatArray, IntArray
from coband.simulator.core.clock.clock import TURN
from coband.simulator.core.hosts.host import ClientHost
from coband.simulator.core.hosts.speed import SlowPeriod
from coband.simulator.core.nodes.node import BatchAgent
from coband.simulator.core.packet import Packet
from coband.simulator.core.randomness.distributions import Draws
from coband.simulator.core.records import trace as tr
from coband.simulator.core.records.progress import Progress
from coband.simulator.core.world import BatchWorld


@dataclass(frozen=True)
class PhaseTiming:
    """How long the phases of one agent take.

    Attributes:
        pull_time: time of one pull, the agent's slowness included.
        compute: draws the rest of a phase's time; None for none.
        limit: number of phases at most; None for no limit.
        slow_period: when the agent is slower than that; None for never.
    """

    pull_time: float
    compute: Draws | None
    limit: int | None
    slow_period: SlowPeriod | None = None

    def time(self, pulls: int) -> float:
        """Time that the next phase takes."""
        pulling = pulls * self.pull_time * (1.0 if self.slow_period is None else self.slow_period.factor())
        return pulling + (0.0 if self.compute is None else self.compute())


class PhaseHost(ClientHost):
    """Wraps one batch agent: asks for its next batch as soon as it is free and does not wait."""

    node: BatchAgent

    def __init__(self, *host: Any, world: BatchWorld, pace: PhaseTiming, progress: Progress) -> None:
        super().__init__(*host)
        self._world, self._pace, self._progress = world, pace, progress
        self.phases = 0
        self._called = False

    @property
    def due(self) -> int:
        """1 when the agent waits for the protocol, else 0."""
        return int(self.node.waiting)

    def call(self) -> None:
        """Start the next phase at this time, after what is to happen at once."""
        if not self._called:
            self._called = True
            self._clock.at(self._clock.now, TURN, self.address, self._start)

    def _may_go_on(self) -> bool:
        within = self._pace.limit is None or self.phases < self._pace.limit
        return within and not (
            self.busy or self.address in self._down or self.node.waiting or self.node.done or self._inbox
        )

    def _start(self, _: None) -> None:
        self._called = False
        if not self._may_go_on() or not self._progress.may_start(self._clock.now):
            return
        self.phases += 1
        cause, self._resumption = self._resumption, tr.NONE
        seq = self._trace.record(self._clock.now, tr.TURN, self.address, cause=cause, value=self.phases)
        counts = self.node.request()
        if counts.min(initial=0) < 0:
            raise ValueError(f"agent {self.address} asked for {counts.tolist()} pulls; counts must be >= 0.")
        self.busy = True
        end = self._clock.now + self._pace.time(int(counts.sum()))
        self._clock.at(end, TURN, self.address, self._end, (seq, counts))

    def _end(self, due: tuple[int, IntArray]) -> None:
        """The batch has been pulled: observe, send."""
        if self._is_suspended(TURN, self._end, due):
            return
        seq, counts = due
        self.busy = False
        means, regret = self._world.pull_batch(self.address, self.phases, counts)
        seq = self._record(counts, means, seq)
        pulls, total = int(counts.sum()), float(counts @ means)
        outbox = self.node.observe_batch(counts, means)
        self._carry_out(outbox, seq, "observe_batch")
        self._progress.pulled(self.address, self._clock.now, regret, total, seq, pulls)
        if self._check is not None:
            self._check.pulled_batch(self.node, counts, means, outbox, seq)
        self._note_waiting(seq)
        self._next()
        if self._may_go_on():
            self.call()

    def _record(self, counts: IntArray, means: FloatArray, seq: int) -> int:
        """One choose and one reward event per arm that was pulled; returns the last event."""
        for arm, (count, mean) in enumerate(zip(counts.tolist(), means.tolist(), strict=True)):
            if count:
                detail, now = json.dumps({"arm": arm, "pulls": count}), self._clock.now
                seq = self._trace.record(now, tr.CHOOSE, self.address, cause=seq, value=arm, detail=detail)
                seq = self._trace.record(now, tr.REWARD, self.address, cause=seq, value=mean, detail=detail)
        return seq

    def _handle(self, packet: Packet, seq: int) -> int:
        seq = super()._handle(packet, seq)
        if self._may_go_on():
            self.call()
        return seq

    def _wake(self, cause: int) -> None:
        if self._may_go_on():
            if self._resumption == tr.NONE:
                self._resumption = cause
            self.call()

    @property
    def has_work(self) -> bool:
        within = self._pace.limit is None or self.phases < self._pace.limit
        may = within and not (self.node.waiting or self.node.done) and self._progress.may_start(self._clock.now)
        return may or super().has_work
