"""The server of Approx-DisKernelUCB (Li et al. 2022): a synchronisation has a dictionary and a statistics phase.

An agent's statistics summarise all its data, so newer statistics replace older ones. With a quorum (ours), the server
uses the last statistics of an agent that does not answer in time, re-expressed over the new dictionary (Li et al. 2023,
equation 5). Without a quorum it keeps no statistics of single agents, so a synchronisation for which those of one agent
cannot be had is abandoned: a sum without them would forget what earlier models knew.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import ClassVar

import numpy as np

from coband.agents.messages.synchronisation import (
    GlobalStatistics,
    LocalStatistics,
    Sample,
    SharedDictionary,
    SyncRequest,
)
from coband.server.common.sums import SquaresCheck, sum_mismatch
from coband.server.common.synchronisation import SynchronousServer
from coband.simulator.core.conversations import late
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import ALL_AGENTS, Address, NodeContext
from coband.simulator.maths.posteriors.dictionary import Dictionary, Statistics
from coband.simulator.maths.posteriors.finite_domain import distinct


class ApproxDisKernelUCBServer(SynchronousServer):
    """Unites the agents' samples, then sums their statistics.

    Statistics are added as they arrive; only with a quorum does the server store the matrices of all agents.
    """

    # A late sample is of no use: the agent's next one covers its data.
    ignores: ClassVar[tuple[type[Message], ...]] = (SyncRequest, Sample)

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.points = np.empty((0, context.dimension))
        self.statistics = Statistics.zero(0)
        self._summed = 0  # round of the last synchronisation that was not abandoned
        self._check = SquaresCheck("statistics A")
        self._dictionaries: dict[int, Dictionary] = {}
        self._last: dict[Address, tuple[int, Statistics]] = {}

    async def synchronise(self) -> bool:
        """Unite the samples in the order of the agents; sum A_i and b_i over this dictionary."""
        samples = await self.asked(Sample)
        if not samples:
            return False
        before = self.points, self.statistics
        shared = self._unite(list(samples.values()))
        answered = await self.gather(shared, reply=LocalStatistics, taking=self._add, **self.wait)
        if not answered or (answered.left and not self.partly):
            self.points, self.statistics = before
            return False
        if self.partly:
            self._add_previous_statistics(answered)
        self.conclude()
        total, self._summed = self.statistics, self.round
        versions = {"version": self.version, "round": self.round, "known": self.applied}
        self.tell(ALL_AGENTS, GlobalStatistics(A=total.A, b=total.b, **versions))
        return True

    def _unite(self, samples: list[Sample]) -> SharedDictionary:
        """Phase 1, the dictionary: the union of all samples."""
        self.points = np.concatenate([sample.points for sample in samples])
        if self.context.config.repeats == "drop":
            self.points, _ = distinct(self.points)
        self.statistics = Statistics.zero(len(self.points))
        if self.partly:
            self._dictionaries[self.round] = Dictionary(self.context.config.kernel).appended(self.points)
        return SharedDictionary(points=self.points, version=self.version, round=self.round)

    def _add(self, message: LocalStatistics, agent: Address) -> None:
        self.keep(message, agent)
        self.statistics = self.statistics + Statistics(message.A, message.b)

    @late(LocalStatistics)
    def keep(self, message: LocalStatistics, agent: Address) -> None:
        """The newest statistics of an agent stand for it in synchronisations that do not wait for it."""
        if self.partly:
            self._last[agent] = (message.round, Statistics(message.A, message.b))

    def _add_previous_statistics(self, answered: Container[Address]) -> None:
        """Those of the agents that are late."""
        new = self._dictionaries[self.round]
        for agent, (round, statistics) in sorted(self._last.items()):
            if agent not in answered:
                self.statistics = self.statistics + statistics.reexpressed(self._dictionaries[round], new)
        if len(self._last) == self.context.agents:
            oldest = min(round for round, _ in self._last.values())
            self._dictionaries = {round: stored for round, stored in self._dictionaries.items() if round >= oldest}

    def discrepancies(self, uploads: Sequence[tuple[Address, Message]]) -> Iterator[str]:
        """After a synchronisation of all agents, A is the sum of the statistics that they sent for it."""
        if self.synchronising or self.partly or not self.version:
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
