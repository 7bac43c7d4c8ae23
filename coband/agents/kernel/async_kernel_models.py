"""The models that the messages of an exchange of Async-KernelUCB describe, with ``transfer: full`` and ``delta``, and
turns for which one model lasts, evaluated together to save time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from coband.agents.kernel.async_kernel_config import AsyncConfig
from coband.agents.messages.asynchronous import NewModel, ServerModel
from coband.simulator.arms import ALONE, ArmSet
from coband.simulator.arrays import BoolArray, FloatArray
from coband.simulator.core.nodes.decisions import gaps
from coband.simulator.core.nodes.node import Client
from coband.simulator.maths.posteriors.dictionary import Dictionary, Statistics
from coband.simulator.maths.posteriors.finite_domain import first_appearances
from coband.simulator.maths.posteriors.nystrom import NystromModel, NystromPredictor
from coband.simulator.maths.posteriors.observations import Observations


@dataclass(slots=True)
class Evaluated:
    """What the model says of the arms of a turn.

    Attributes:
        scores: mu + alpha * sigma, or -inf for arms that are certainly not the best.
        variance: sigma^2 of the others.
        winner: the best arm, where no other has exactly the same score.
        gap: by which it is, where that is known.
    """

    scores: FloatArray
    variance: FloatArray
    winner: int | None = None
    gap: float | None = None


class Evaluations:
    """The arms of an agent's turns to come, and what its model says of them."""

    def __init__(self) -> None:
        self._block: FloatArray | None = None  # features of the turns to come
        self._of: FloatArray | None = None  # the block of which turns are evaluated, which ones, and how
        self._start, self._found = 0, list[Evaluated]()

    def begin(self, arm_sets: Sequence[ArmSet]) -> None:
        """The arm sets of the next turns."""
        self._block = arm_sets[0].block

    def forget(self) -> None:
        """The model has changed."""
        self._of = None

    def evaluate(self, arms: ArmSet, model: NystromPredictor, alpha: float, turns: Callable[[], int]) -> Evaluated:
        """The arms of a turn, and those of the turns after it, if the model is likely to last for so many ``turns``."""
        place = arms.place
        if arms.block is self._of and self._start <= place < self._start + len(self._found):
            return self._found[place - self._start]
        count = turns() if place != ALONE and arms.block is self._block else 1
        if count < 2 or place + 1 == len(arms.block):
            mean, variance = model.predict(arms)
            return Evaluated(mean + alpha * np.sqrt(variance), variance)
        scores, variances = model.scores_stack(arms.block[place : place + count], alpha)
        self._of, self._start = arms.block, place
        self._found = list(map(Evaluated, scores, variances, Client.winners(scores), gaps(scores).tolist()))
        return self._found[0]


def server_model(held: NystromModel, message: ServerModel, lam: float) -> NystromModel:
    """The server's model as message 2 describes it, to an agent that has the model ``held``."""
    if message.A is None or message.b is None:
        return held
    dictionary = held.dictionary.appended(message.points)
    return NystromModel.fit(dictionary, Statistics(message.A, message.b), lam)


@dataclass(slots=True)
class Exchange:
    """The new data, and the dictionary and the server's model in terms of which they are sent.

    Attributes:
        new: data since the last exchange.
        base: the server's model, of ``version``.
        sampled: which of the new points enter the dictionary.
        dictionary: S_k, as this agent knows it.
        embedded: Z, the new points embedded by it.
    """

    new: Observations
    base: NystromModel
    version: int
    sampled: BoolArray
    dictionary: Dictionary
    embedded: FloatArray

    @property
    def added(self) -> FloatArray:
        """dS_k."""
        return self.new.features[self.sampled]

    def updated(self, message: NewModel, config: AsyncConfig) -> NystromModel:
        """The model of line 14; points that others have added meanwhile come before this agent's."""
        given = None if message.A is None or message.b is None else Statistics(message.A, message.b)
        if message.version == self.version + 1:
            return self.base.updated(self.dictionary, self.embedded, self.new.rewards, given)
        assert given is not None
        added = self.added
        if config.repeats == "drop":
            added = added[first_appearances(added, message.points)]
        dictionary = self.base.dictionary.appended(message.points).appended(added)
        return NystromModel.fit(dictionary, given, config.lam)
