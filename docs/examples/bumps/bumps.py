"""A reward with bumps: a plugin of coband."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from pydantic import Field

from coband import ArmSource, FloatArray, Reward, RewardFunction


@dataclass(frozen=True)
class BumpFunction:
    """f(x) = max_j exp(-||x - c_j||^2 / (2 w^2)) with centres c, (m, d), and width w."""

    centres: FloatArray
    width: float

    def __call__(self, arms: FloatArray) -> FloatArray:
        """f of each arm: (turns, n, d) -> (turns, n)."""
        squares = ((arms[:, :, None] - self.centres) ** 2).sum(axis=-1)
        values: FloatArray = np.exp(-squares.min(axis=-1) / (2.0 * self.width**2))
        return values

    def describe(self) -> dict[str, Any]:
        """The drawn centres."""
        return {"centres": self.centres.tolist()}


class BumpReward(Reward):
    """Bumps of height 1 around centres that are drawn from the arms' domain."""

    kind: Literal["bumps"]
    """Bumps of height 1 around drawn centres."""
    count: int = Field(default=3, ge=1)
    """Number of bumps."""
    width: float = Field(default=0.3, gt=0)
    """Their width w."""

    def draw(self, rng: np.random.Generator, source: ArmSource) -> RewardFunction:
        """Draw the centres."""
        return BumpFunction(np.ascontiguousarray(source.domain(rng, self.count)), self.width)
