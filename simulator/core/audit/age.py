"""The age of information: what a decision did not know of.

At the decision of a pull, with n pulls of all agents made before it and k of them in the model that chose the arm
(`Agent.pulls_in_model`),

    age = n - k,

the pulls by anybody that it did not know of (the version age of information, as in Kaul, Yates and Gruteser 2012, with
pulls in the place of time). Beside it stands the simulated time since the newest message from which the model has
learnt was sent by its origin: the time for which nothing newer has come from other agents.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from coband.simulator.arrays import FloatArray

NEVER = -1.0
"""In the place of a time: no message has been learnt from."""


@dataclass
class Ages:
    """The age of every decision, in the order of pulls.

    Attributes:
        tracked: whether the algorithm counts the pulls in its models; if not, nothing is kept.
        pulls: pulls that each decision did not know of.
        times: simulated time since the newest message that it had learnt from was sent; NaN without one.
        events: number of the event that chose the arm.
    """

    tracked: bool = True
    pulls: list[int] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    events: list[int] = field(default_factory=list)

    def decided(self, made: int, in_model: int | None, now: float, newest: float, event: int) -> None:
        """Take note of a decision.

        Args:
            made: pulls of all agents before it.
            in_model: pulls in its model; None: nobody counts them.
            now: simulated time.
            newest: when the newest message was sent from which the agent has learnt; NEVER without one.
            event: number of the event.
        """
        if in_model is None:
            self.tracked = False
            return
        self.pulls.append(made - in_model)
        self.times.append(now - newest if newest != NEVER else math.nan)
        self.events.append(event)

    @property
    def known(self) -> bool:
        """Whether every decision has an age, and there is one."""
        return self.tracked and bool(self.pulls)

    def means(self) -> dict[str, float]:
        """The metrics of a result; empty where ages are not known."""
        if not self.known:
            return {}
        found = {"mean_age": float(np.mean(self.pulls))}
        times = np.asarray(self.times)
        heard = times[~np.isnan(times)]
        return found | ({"mean_age_time": float(heard.mean())} if heard.size else {})

    def series(self, ends: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean age of the decisions between points of a curve.

        Args:
            ends: numbers of the last decision before each point, from 1, ascending, (points,).

        Returns:
            Mean age in pulls and in time, each (points,); NaN where no decision in between has one.
        """
        return _means_between(np.asarray(self.pulls, dtype=np.float64), ends), _means_between(
            np.asarray(self.times), ends
        )


def _means_between(values: FloatArray, ends: FloatArray) -> FloatArray:
    """Means of the values up to each end, from the end before on; NaN is left out."""
    there = ~np.isnan(values)
    index = np.asarray(ends, dtype=np.intp)
    sums = np.concatenate([[0.0], np.cumsum(np.where(there, values, 0.0))])[index]
    counts = np.concatenate([[0], np.cumsum(there)])[index]
    total, number = np.diff(sums, prepend=0.0), np.diff(counts, prepend=0)
    means: FloatArray = np.where(number > 0, total / np.maximum(number, 1), np.nan)
    return means
