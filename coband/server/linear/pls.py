"""The server of PLS (Salgia and Zhao 2022): the mean of the agents' changes, rounded once more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np

from coband.agents.messages.phases import EstimateLevels, ModelLevels
from coband.server.common.ends_together import InStepServer
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import ALL_AGENTS, Address, NodeContext


class PlsServer(InStepServer):
    """Sees only levels."""

    hears = (EstimateLevels,)
    noted: ClassVar[Mapping[str, str]] = {"apply": "sum of the absolute levels of the change"}

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self._total = np.zeros(context.dimension, dtype=np.int64)
        self._sent = self._signs = 0

    def conclude(self, found: Mapping[Address, EstimateLevels]) -> None:
        """One epoch: when all changes are here, their mean, in steps of the coarser grid."""
        self.rounds += 1
        now = self.context.config.epoch(self.context, self.rounds)
        self._total = np.sum([message.levels for message in found.values()], axis=0)
        levels = now.down.levels(self._total * (now.up.step / self.context.agents), self.context.rng)
        self._sent, self._signs = self._sent + int(abs(levels).sum()), self._signs + int(np.count_nonzero(levels))
        self.note("apply", version=self.rounds, round=self.rounds, value=int(abs(levels).sum()))
        self.tell(ALL_AGENTS, ModelLevels(levels=levels, version=self.rounds, round=self.rounds))

    def discrepancies(self, uploads: Sequence[tuple[Address, Message]]) -> Iterator[str]:
        """The levels of the last epoch add up."""
        kept = self._total.astype(float)
        return self.resummed("the sum of levels", kept, uploads, EstimateLevels, lambda agent, one: one.levels)

    def report(self) -> dict[str, float | int]:
        return {"levels_down": self._sent, "signs_down": self._signs}
