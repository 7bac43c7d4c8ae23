"""The server of FTS, FTS-DE, DP-FTS and DP-FTS-DE (Dai et al. 2020, Dai et al. 2021): averages of weights by region."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np

from coband.agents.messages.federated import DrawnWeights, PrivateRegionWeights, RegionWeights
from coband.server.common.sums import sum_mismatch
from coband.simulator.arrays import FloatArray
from coband.simulator.core.conversations import Talks, on
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import ALL_AGENTS, Address, NodeContext, Server


class FtsServer(Talks, Server):
    """Averages the newest weights of all agents, whenever it has heard something new of everybody, or of one agent
    `patience` times."""

    message: ClassVar[type[RegionWeights]] = RegionWeights

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self._newest: dict[Address, DrawnWeights] = {}
        self._fresh: dict[Address, int] = {}  # draws of this round, by agent
        # the shared features, which agents draw from this stream, come first
        context.config.draw_features(context.rng, context.dimension)

    @on(DrawnWeights)
    def collect(self, drawn: DrawnWeights, agent: Address) -> None:
        """Keep what is newer; the last one of a round ends it."""
        if agent not in self._newest or drawn.round > self._newest[agent].round:
            self._newest[agent] = drawn
            self._fresh[agent] = self._fresh.get(agent, 0) + 1
        if self._fresh.get(agent, 0) < self.context.config.patience and not self._heard_all():
            return
        self._fresh = {}
        self.rounds += 1
        shares = self.context.config.shares(self.context.agents, self.context.dimension, self.rounds)
        weights = self.averages(shares, {agent: self._newest[agent].weights for agent in sorted(self._newest)})
        self.tell(ALL_AGENTS, self.message(weights=weights, version=self.rounds, round=self.rounds))

    def _heard_all(self) -> bool:
        """Whether everybody who is there has sent something new."""
        missing = self.context.agents - len(self._fresh)
        if missing and self.context.gone:
            missing = sum(one not in self._fresh and self.context.is_there(one) for one in range(self.context.agents))
        return not missing

    def averages(self, shares: FloatArray, heard: Mapping[Address, FloatArray]) -> FloatArray:
        """sum_n phi_np omega_n, (P, M), from phi (P, N); who has not been heard leaves its part to the others."""
        shares = shares[:, list(heard)]
        return np.asarray(shares / shares.sum(axis=1, keepdims=True) @ np.array(list(heard.values())))

    def discrepancies(self, uploads: Sequence[tuple[Address, Message]]) -> Iterator[str]:
        """What it has of each agent is the newest that it was sent."""
        newest: dict[Address, DrawnWeights] = {}
        for agent, one in uploads:
            if isinstance(one, DrawnWeights) and one.round >= newest.get(agent, one).round:
                newest[agent] = one
        kept, sent = (
            np.sum([one.weights for one in found.values()] or [np.zeros(1)], axis=0) for found in (self._newest, newest)
        )
        yield from sum_mismatch("sum of weights", kept, sent, len(newest))


class PrivateFtsServer(FtsServer):
    """Averages the weights of a random subset, with noise."""

    message = PrivateRegionWeights

    def averages(self, shares: FloatArray, heard: Mapping[Address, FloatArray]) -> FloatArray:
        """sum over the subset of phi_np omega_n / q, weights cut, and noise.

        An agent that has not been heard counts with weights of zero: phi of the others and the noise stay what they
        are, so that averages say nothing of whether it is there. When rounds end does say so.
        """
        self.releases = self.rounds
        weights = np.zeros((shares.shape[1], self.context.config.features))
        weights[list(heard)] = list(heard.values())
        found: FloatArray = self.context.config.release(self.context.rng, shares, weights)
        return found
