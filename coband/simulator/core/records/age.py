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
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from coband.simulator.arrays import FloatArray, IntArray

NEVER = -1.0
"""In the place of a time: no message has been learnt from."""


def numbers() -> array[float]:
    """Notes of millions of pulls, at 8 bytes each."""
    return array("d")


def counts() -> array[int]:
    """The same for whole numbers."""
    return array("q")


def small_counts() -> array[int]:
    """The same at 4 bytes each, for those below two thousand millions."""
    return array("i")


@dataclass(slots=True)
class Decisions:
    """What is noted of every decision while a run goes on, in the order of pulls; nothing where nobody counts.

    Attributes:
        in_model: pulls in the model.
        newest: when the newest message was sent from which the agent had learnt; NEVER without one.
        events: number of the event that chose the arm.
    """

    in_model: array[int] = field(default_factory=counts)
    newest: array[float] = field(default_factory=numbers)
    events: array[int] = field(default_factory=counts)

    def note(self, in_model: int | None, newest: float, event: int) -> None:
        """Take note of a decision; ``in_model``: None if nobody counts."""
        if in_model is not None:
            self.in_model.append(in_model)
            self.newest.append(newest)
            self.events.append(event)


@dataclass(frozen=True)
class Ages:
    """The age of every decision, in the order of pulls; nothing where the algorithm does not count.

    Attributes:
        pulls: pulls that each decision did not know of, (n,).
        times: simulated time since the newest message that it had learnt from was sent, (n,); NaN without one.
        events: number of the event that chose the arm.
    """

    pulls: IntArray
    times: FloatArray
    events: Sequence[int]

    @classmethod
    def of(cls, decisions: Decisions, times: Sequence[float]) -> Ages:
        """The ages of decisions at some times; every pull is one decision."""
        if len(decisions.in_model) < len(times):
            return NO_AGES
        newest = np.asarray(decisions.newest)
        since = np.where(newest == NEVER, math.nan, np.asarray(times) - newest)
        return cls(np.arange(len(newest)) - np.asarray(decisions.in_model, dtype=np.intp), since, decisions.events)

    @property
    def known(self) -> bool:
        """Whether there is an age of any decision."""
        return bool(self.pulls.size)

    def means(self) -> dict[str, float]:
        """The metrics of a result; empty where ages are not known."""
        if not self.known:
            return {}
        found = {"mean_age": float(np.mean(self.pulls))}
        heard = self.times[~np.isnan(self.times)]
        return found | ({"mean_age_time": float(heard.mean())} if heard.size else {})

    def series(self, ends: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean age of the decisions between points of a curve.

        Args:
            ends: numbers of the last decision before each point, from 1, ascending, (points,).

        Returns:
            Mean age in pulls and in time, each (points,); NaN where no decision in between has one.
        """
        return _means_between(self.pulls.astype(np.float64), ends), _means_between(self.times, ends)


NO_AGES = Ages(np.empty(0, dtype=np.intp), np.empty(0), ())


def _means_between(values: FloatArray, ends: FloatArray) -> FloatArray:
    """Means of the values up to each end, from the end before on; NaN is left out."""
    there = ~np.isnan(values)
    last = np.asarray(ends, dtype=np.intp) - 1
    sums, counts = np.cumsum(np.where(there, values, 0.0))[last], np.cumsum(there)[last]
    total, number = np.diff(sums, prepend=0.0), np.diff(counts, prepend=0)
    return np.where(number > 0, total / np.maximum(number, 1), np.nan)
