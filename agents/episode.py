"""The turns of an agent between two changes of the model by which it chooses: their scores are worked out together.

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

from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray
from coband.simulator.core.nodes.node import Client
from coband.simulator.maths.linalg.gram import Gram
from coband.simulator.maths.posteriors.observations import Observations
from coband.simulator.maths.posteriors.synchronised_ridge import LocalRidge, SynchronisedRidge


class Episode:
    """Scores x^T theta + alpha ||x||_(V^-1) of a model, and the news of an agent, which do not enter them.

    Args:
        model: stays as it is until ``begin``.
        alpha: exploration.
    """

    __slots__ = ("_alpha", "_bound", "_model", "_news", "_next", "_pulls", "_sets", "_table", "_variance", "_winners")

    def __init__(self, model: SynchronisedRidge, alpha: float) -> None:
        self._model, self._alpha = model, alpha
        self._pulls = array("d")  # x and y of each that is not in the news yet
        self._news: LocalRidge | None = None
        self._bound = 0.0  # of what all of them add to log det V
        self.look_ahead(())

    def look_ahead(self, arm_sets: Sequence[ArmSet]) -> None:
        """The arm sets of the turns to come, the next one first."""
        self._sets, self._next = arm_sets, 0
        self._table: FloatArray | None = None  # scores of the first ones, (turns, n), with variances and winners
        self._variance: FloatArray | None = None
        self._winners: Sequence[int | None] = ()

    def begin(self) -> None:
        """The model is another one."""
        self.look_ahead(self._sets[self._next :])
        if self._news is not None:
            W, b = self._news.news(0)
            self._news = LocalRidge(self._model)
            self._news.restore(0, W, b)
        self._bound = math.inf if self._pulls or self._news is not None else 0.0

    def scores(self, arms: ArmSet) -> tuple[FloatArray, int | None]:
        """The scores of the arms of a turn, (n,), and the place of the highest where it is known; see `Client.best`."""
        if self._next >= len(self._sets) or self._sets[self._next] is not arms:
            self.look_ahead((arms,))
        if self._next >= len(self._winners):
            self._foresee()
        assert self._table is not None
        return self._table[self._next], self._winners[self._next]

    def _foresee(self) -> None:
        """Work out turns whose arms are known: one before the first model comes, as it will soon be another one."""
        self.look_ahead(self._sets[self._next :])
        features = [arms.features for arms in self._sets] if self._model.version else [self._sets[0].features]
        if len(features) > 1 and len({len(rows) for rows in features}) == 1:
            G = np.concatenate(features).reshape(len(features), *features[0].shape)
        else:
            G = features[0][None]
        mean, self._variance = self._model.ridge.predict(G)
        self._table = mean + self._alpha * np.sqrt(self._variance)
        self._winners = Client.winners(self._table) if len(G) > 1 else (None,)

    def pull(self, arms: ArmSet, arm: int, reward: float) -> None:
        """V_loc += x x^T, b_loc += y x."""
        foreseen = self._next < len(self._winners) and self._sets[self._next] is arms
        self._bound += math.log1p(self._variance[self._next, arm]) if foreseen else math.inf  # type: ignore[index]
        self._next += 1
        self._pulls.extend(arms.features[arm].tolist())
        self._pulls.append(reward)

    def gain(self, most: float) -> float:
        """log det(V + V_loc) - log det V; where that is certainly not above ``most``, a bound that is not."""
        if self._bound > most:
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
        self._bound = math.inf
