"""The server of Approx-DisKernelUCB (Li et al. 2022): a synchronisation has a dictionary and a statistics phase.

An agent's statistics summarise all its data, so newer statistics replace older ones. With a quorum (ours), the server
uses the last statistics of an agent that does not answer in time, re-expressed over the new dictionary (paper 000,
equation 5). Without a quorum it keeps no statistics of single agents, so a synchronisation for which those of one agent
cannot be had is abandoned: a sum without them would forget what earlier models knew.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from coband.agents.messages.synchronisation import (
    GlobalStatistics,
    LocalStatistics,
    Sample,
    SharedDictionary,
    SyncStart,
)
from coband.server.sums import SquaresCheck, sum_mismatch
from coband.server.synchronisation import MessageBuffer, SynchronousServer
from coband.simulator.core.message import Message
from coband.simulator.core.node import ALL_AGENTS, Address, NodeContext, Outbox
from coband.simulator.maths.posteriors.dictionary import Dictionary
from coband.simulator.maths.posteriors.domain import distinct
from coband.simulator.maths.posteriors.statistics import Statistics


class ApproxDisKernelUCBServer(SynchronousServer):
    """Unites the agents' samples, then sums their statistics.

    Statistics are added as they arrive; only with a quorum does the server store the matrices of all agents.
    """

    asking: ClassVar[tuple[type[Message], ...]] = (SyncStart, SharedDictionary)

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self._samples: MessageBuffer[Sample] = MessageBuffer(context.agents)
        self.points = np.empty((0, context.dimension))
        self.statistics = Statistics.zero(0)
        self._before = (self.points, self.statistics)  # of the last synchronisation that was not abandoned
        self._summed = 0  # its round
        self._check = SquaresCheck("statistics A")
        self._dictionaries: dict[int, Dictionary] = {}
        self._last: dict[Address, tuple[int, Statistics]] = {}

    def collect(self, message: Message, source: Address) -> Outbox:
        """Handle a sample or an agent's statistics; a late sample is ignored: the agent's next one covers its data."""
        late = self.is_late(message)
        if isinstance(message, Sample):
            if late or self.phase != 1:
                return []
            self._samples.add(source, message)
            return self.end_phase() if self.record_answer(source) else []
        assert isinstance(message, LocalStatistics)
        self.applied += message.pulls
        statistics = Statistics(message.A, message.b)
        if not self.waits_for_all:
            self._last[source] = (message.round, statistics)
        if late:
            return []
        self.statistics = self.statistics + statistics
        return self.end_phase() if self.record_answer(source) else []

    def end_phase(self) -> Outbox:
        """End the dictionary phase or the statistics phase."""
        if self.phase == 1:
            return self._unite()
        return self._sum_up() if self.everyone_answered or not self.waits_for_all else self.abandon()

    def abandon(self) -> Outbox:
        """Keep the dictionary and the statistics of the last synchronisation; nobody has sampled in phase 1."""
        if self.phase == 2:
            self.points, self.statistics = self._before
        return super().abandon()

    def _unite(self) -> Outbox:
        """Dictionary phase: broadcast the union of all samples, in the order of the agents."""
        self._before = self.points, self.statistics
        self.points = np.concatenate([sample.points for sample in self._samples.take()])
        if self.context.config.repeats == "drop":
            self.points, _ = distinct(self.points)
        self.statistics = Statistics.zero(len(self.points))
        if not self.waits_for_all:
            self._dictionaries[self.round] = Dictionary(self.context.config.kernel).appended(self.points)
        shared = SharedDictionary(points=self.points, version=self.version, round=self.round)
        return [(ALL_AGENTS, shared), *self.begin_phase(2)]

    def _sum_up(self) -> Outbox:
        """Statistics phase: broadcast the sum, with the last statistics of the agents that are late."""
        if not self.waits_for_all:
            self._add_previous_statistics()
        self.finish_synchronisation()
        total, self._summed = self.statistics, self.round
        known = self.applied
        model = GlobalStatistics(A=total.A, b=total.b, version=self.version, round=self.round, known=known)
        return [(ALL_AGENTS, model)]

    def _add_previous_statistics(self) -> None:
        new = self._dictionaries[self.round]
        for agent, (round, statistics) in sorted(self._last.items()):
            if not self.has_answered(agent):
                self.statistics = self.statistics + statistics.reexpressed(self._dictionaries[round], new)
        if len(self._last) == self.context.agents:
            oldest = min(round for round, _ in self._last.values())
            self._dictionaries = {round: stored for round, stored in self._dictionaries.items() if round >= oldest}

    def discrepancies(self, uploads: Sequence[tuple[Address, Message]]) -> Iterator[str]:
        """After a synchronisation of all agents, A is the sum of the statistics that they sent for it."""
        if self.synchronising or not self.waits_for_all or not self.version:
            return
        last = [message for _, message in uploads if isinstance(message, LocalStatistics)]
        last = [message for message in last if message.round == self._summed]
        A = sum((message.A for message in last), start=np.zeros_like(self.statistics.A))
        yield from sum_mismatch(f"A of version {self.version}", self.statistics.A, A, len(last))

    def broken_invariants(self) -> Iterator[str]:
        """A is symmetric and positive semidefinite; log det may fall, since each version has its own dictionary."""
        return iter(()) if self.synchronising else self._check.violations(self.statistics.A, self.version)

    def report(self) -> dict[str, float | int]:
        """Size of the last dictionary, and how many of its points lie in the span of the others."""
        dictionary = Dictionary(self.context.config.kernel).appended(self.points)
        return {"dictionary_size": len(self.points), "skipped_points": dictionary.skipped}
