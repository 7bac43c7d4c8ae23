"""Turns of an agent whose model lasts for several of them, evaluated together; nothing but time depends on it."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray
from coband.simulator.core.nodes.node import Client
from coband.simulator.maths.posteriors.predictor import NystromPredictor


@dataclass(slots=True)
class Evaluated:
    """What the model says of the arms of a turn.

    Attributes:
        scores: mu + alpha * sigma, or -inf for arms that are certainly not the best.
        variance: sigma^2 of the others.
        winner: the best arm, where no other has exactly the same score.
    """

    scores: FloatArray
    variance: FloatArray
    winner: int | None = None


class Evaluations:
    """The arms of an agent's turns to come, and what its model says of them."""

    def __init__(self) -> None:
        self._ahead: deque[ArmSet] = deque()
        self._evaluated: dict[ArmSet, Evaluated] = {}

    def begin(self, arm_sets: Sequence[ArmSet]) -> None:
        """The arm sets of the next turns."""
        self._ahead = deque(arm_sets)

    def forget(self) -> None:
        """The model has changed."""
        self._evaluated = {}

    def evaluate(self, arms: ArmSet, model: NystromPredictor, alpha: float, turns: int) -> Evaluated:
        """The arms of a turn, and those of the turns after it, if the model is likely to last for so many turns."""
        found = self._evaluated.pop(arms, None)
        if found is not None:
            return found
        ahead = self._ahead
        while ahead and ahead[0] is not arms:
            ahead.popleft()
        together = list(islice(ahead, turns))
        if len(together) < 2 or len(set(map(len, together))) > 1:
            mean, variance = model.predict(arms)
            return Evaluated(mean + alpha * np.sqrt(variance), variance)
        scores, variances = model.scores_stack(np.array([other.features for other in together]), alpha)
        rows = map(Evaluated, scores, variances, Client.winners(scores))
        self._evaluated = dict(zip(together, rows, strict=True))
        return self._evaluated.pop(arms)
