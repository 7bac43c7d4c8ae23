"""Stochastic rounding to a grid whose steps get finer as estimates do (Salgia and Zhao 2022)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from coband.simulator.arrays import FloatArray, IntArray


@dataclass(frozen=True)
class Grid:
    """Multiples m of a step in [-radius, radius], |m| <= ceil(radius sqrt(d) / error).

    A vector of ``dimension`` d numbers within the radius is rounded without bias, and by at most ``error`` in norm.
    """

    dimension: int
    radius: float
    error: float

    @property
    def step(self) -> float:
        """Between neighbours."""
        return self.radius / math.ceil(self.radius * math.sqrt(self.dimension) / self.error)

    def levels(self, values: FloatArray, rng: np.random.Generator) -> IntArray:
        """m of each number, (d,); what is outside of the radius is rounded to its end. One coin for each is drawn."""
        places = np.clip(values, -self.radius, self.radius) / self.step
        low = np.floor(places)
        return (low + (rng.random(len(values)) < places - low)).astype(np.int64)
