"""The server of batched pure exploration with ``share: rewards``: it adds up the rewards of a batch by point."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from coband.agents.messages.epochs import BatchRewards, RewardSums
from coband.server.common.ends_together import TrimmingServer
from coband.simulator.arrays import FloatArray
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import ALL_AGENTS, Address, NodeContext
from coband.simulator.maths.exploration.bpe import Batch
from coband.simulator.maths.linalg.caches import VersionCache


class BpeServer(TrimmingServer):
    """Broadcasts the sums of rewards of every batch, and trims the active set as the agents do."""

    hears = (BatchRewards,)

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self._shared: VersionCache[Batch] = context.sharing.get("batches", lambda: VersionCache(2))
        self._lengths = self.config.lengths(context)
        self._beta = self.config.width(len(self.active), len(self._lengths))
        self._sums: FloatArray = np.zeros(0)
        self._points = 0

    def conclude(self, found: Mapping[Address, BatchRewards]) -> None:
        """Sums of rewards by point, place n + N k being the k-th pull of agent n; then trim as the agents do."""
        lam = self.config.lam
        batch = self._shared.get(self.rounds, lambda: Batch(self._domain, self.active, lam))
        rewards = np.stack([message.rewards for message in found.values()], axis=1).ravel()
        self._sums = batch.sums(rewards)
        self._points += len(self._sums)
        self.active = batch.kept(len(rewards), self._sums, self._beta)
        self.rounds += 1
        self.note_left()
        self.tell(ALL_AGENTS, RewardSums(sums=self._sums, version=self.rounds, round=self.rounds))

    def discrepancies(self, uploads: Sequence[tuple[Address, Message]]) -> Iterator[str]:
        """The sums of the last batch add up to the rewards that were sent for it."""
        name, kept = "the sum of all rewards of a batch", np.array([self._sums.sum()])
        return self.resummed(name, kept, uploads, BatchRewards, lambda agent, one: [one.rewards.sum()])

    def report(self) -> dict[str, float | int]:
        """What has been sent, in closed form."""
        return {"shared_pulls": sum(self._lengths[: self.rounds]), "shared_points": self._points}
