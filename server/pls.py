"""The server of PLS (Salgia and Zhao 2022): the mean of the agents' changes, rounded once more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np

from coband.agents.messages.phases import EstimateLevels, ModelLevels
from coband.server.in_step import InStepServer
from coband.server.sums import sum_mismatch
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import ALL_AGENTS, Address, NodeContext


class PlsServer(InStepServer):
    """Sees levels alone."""

    hears = (EstimateLevels,)
    noted: ClassVar[Mapping[str, str]] = {"apply": "sum of the absolute levels of the change"}

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self._total = np.zeros(context.dimension, dtype=np.int64)
        self._sent = self._signs = 0

    async def step(self) -> bool:
        """One epoch: when all changes are here, their mean, in steps of the coarser grid."""
        found = await self.gather(None, reply=EstimateLevels, together=True)
        if found.left:
            return False
        self.rounds += 1
        now = self.context.config.epoch(self.context, self.rounds)
        self._total = np.sum([message.levels for message in found.values()], axis=0)
        levels = now.down.levels(self._total * (now.up.step / self.context.agents), self.context.rng)
        self._sent, self._signs = self._sent + int(abs(levels).sum()), self._signs + int(np.count_nonzero(levels))
        self.note("apply", version=self.rounds, round=self.rounds, value=int(abs(levels).sum()))
        self.tell(ALL_AGENTS, ModelLevels(levels=levels, version=self.rounds, round=self.rounds))
        return True

    def discrepancies(self, uploads: Sequence[tuple[Address, Message]]) -> Iterator[str]:
        """The levels of the last epoch add up."""
        last = [one.levels for _, one in uploads if isinstance(one, EstimateLevels) and one.round == self.rounds]
        total = np.sum(last, axis=0) if last else np.zeros(self.context.dimension)
        yield from sum_mismatch("the sum of levels", self._total.astype(float), total.astype(float), len(last))

    def report(self) -> dict[str, float | int]:
        """What has been sent."""
        return {"levels_down": self._sent, "signs_down": self._signs}
