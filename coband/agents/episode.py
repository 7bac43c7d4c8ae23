"""FedLinUCB (He et al. 2022): the turns of an agent between two changes of its model are worked out together.

The model stays, so the scores of all turns whose arms are known follow from one product. What the pulls x_1, x_2, ...
since the last upload would add to it is not needed before the next one: by Fischer's inequality

    log det(V + sum x_i x_i^T) - log det V <= sum log(1 + ||x_i||^2_(V^-1)),

whose terms the scores contain, and only where that is too much for a trigger the left side is worked out.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence

import numpy as np

from coband.simulator.arms import ArmSet, ComingArms
from coband.simulator.arrays import FloatArray
from coband.simulator.maths.linalg.gram import Gram
from coband.simulator.maths.posteriors.observations import Observations
from coband.simulator.maths.posteriors.synchronised_ridge import LocalRidge, SynchronisedRidge

NOTHING: FloatArray = np.empty((0, 0))


class Episode:
    """Scores x^T theta + alpha ||x||_(V^-1) of a model, and the news of an agent, which do not enter them.

    Args:
        model: stays as it is until ``begin``.
        alpha: exploration.
    """

    __slots__ = ("_alpha", "_bound", "_exact", "_model", "_news", "_next", "_pulls", "_sets", "_start", "_table")

    def __init__(self, model: SynchronisedRidge, alpha: float) -> None:
        self._model, self._alpha = model, alpha
        self._pulls = array("d")  # x and y of each that is not in the news yet
        self._news: LocalRidge | None = None
        self._bound, self._exact = 0.0, False  # of what all of them add to log det V; whether it is just that
        self.look_ahead(())

    def look_ahead(self, arm_sets: Sequence[ArmSet]) -> None:
        """The arm sets of the turns to come, the next one first."""
        self._sets, self._next = arm_sets, 0
        self._forget()

    def _forget(self) -> None:
        self._start = self._next  # from which turn on; then (turns, 2 n), scores beside variances
        self._table = NOTHING

    def begin(self) -> None:
        """The model is another one."""
        self._forget()
        if self._news is not None:
            self._news.clear()  # of what was worked out with the model before; none of them is given out
        self._bound = math.inf if self._pulls or self._news is not None else 0.0
        self._exact = False

    def scores(self, arms: ArmSet) -> FloatArray:
        """The scores of the arms of a turn, (n,)."""
        if self._next >= len(self._sets) or self._sets[self._next] is not arms:
            self.look_ahead((arms,))
        place = self._next - self._start
        if place >= len(self._table):
            self._foresee(arms)
            place = 0
        scores: FloatArray = self._table[place, : len(arms)]
        return scores

    def _foresee(self, arms: ArmSet) -> None:
        """Work out turns whose arms are known: one before the first model comes, as it will soon be another one."""
        self._forget()
        G = arms.features[None]
        if self._model.version and isinstance(self._sets, ComingArms):
            features = self._sets.features[self._next :]
            if isinstance(features, np.ndarray):
                G = features
            elif len({len(rows) for rows in features}) == 1:
                G = np.stack(features)
        mean, variance = self._model.ridge.predict(G)
        self._table = np.concatenate([mean + self._alpha * np.sqrt(variance), variance], axis=1)

    def pull(self, arms: ArmSet, arm: int, reward: float) -> None:
        """V_loc += x x^T, b_loc += y x."""
        place = self._next - self._start
        known = place < len(self._table) and self._sets[self._next] is arms
        self._exact = known and not self._bound  # of one pull the bound is the gain itself
        self._bound += math.log1p(self._table.item(place, len(arms) + arm)) if known else math.inf
        self._next += 1
        self._pulls.extend(arms.features[arm].tolist())
        self._pulls.append(reward)

    def gain(self, most: float) -> float:
        """log det(V + V_loc) - log det V; where that is certainly not above ``most``, a bound that is not."""
        if self._bound > most and not self._exact:
            self._bound = self.news.gain("full")
        return self._bound

    @property
    def news(self) -> LocalRidge:
        """V_loc and b_loc, to be given out or taken back."""
        self._news = self._news or LocalRidge(self._model)
        if self._pulls:
            table = np.array(self._pulls).reshape(-1, self._model.ridge.dimension + 1)
            self._news.update(Observations(table[:, :-1], table[:, -1]))
            del self._pulls[:]
        return self._news

    def clear(self) -> None:
        """The news have been given out."""
        self._news, self._bound = None, 0.0

    def restore(self, W: Gram, b: FloatArray) -> None:
        """Take back news that were given out."""
        self.news.restore(0, W, b)
        self._bound, self._exact = math.inf, False
