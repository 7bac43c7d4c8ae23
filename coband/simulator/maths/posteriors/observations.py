"""What posteriors learn from: points with their rewards."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coband.simulator.arms import ArmSet, Points, features_of
from coband.simulator.arrays import FloatArray

Key = tuple[int, int]
"""(trial, agent) of an observation."""


class Observations:
    """n observations, immutable.

    Args:
        points: arms that were pulled, or any points (n, d).
        rewards: (n,).
        tasks: of each the task z, or the agent's number where K_z is a table, (n, s); None where there is one task.
        keys: of each its (trial, agent); None where nobody asks.

    Raises:
        ValueError: points and rewards differ in number.
    """

    __slots__ = ("_keys", "_points", "_rewards", "_tasks")

    def __init__(
        self,
        points: Points,
        rewards: FloatArray,
        *,
        tasks: FloatArray | None = None,
        keys: Sequence[Key] | None = None,
    ) -> None:
        if len(points) != len(rewards):
            raise ValueError(
                f"one reward per point is needed; {len(points)} points and {len(rewards)} rewards were given."
            )
        self._points, self._rewards = points, rewards
        self._tasks, self._keys = tasks, keys

    @classmethod
    def pull(cls, arms: ArmSet, arm: int, reward: float) -> Observations:
        return cls(arms.select(arm), np.array([reward]))

    def __len__(self) -> int:
        return len(self.rewards)

    @property
    def points(self) -> Points:
        """Arms, or points (n, d)."""
        return self._points

    @property
    def features(self) -> FloatArray:
        """Features of the points, (n, d)."""
        return features_of(self.points)

    @property
    def rewards(self) -> FloatArray:
        """Rewards, (n,)."""
        return self._rewards

    @property
    def tasks(self) -> FloatArray | None:
        """Tasks, (n, s)."""
        return self._tasks

    @property
    def keys(self) -> Sequence[Key] | None:
        """(trial, agent) of each."""
        return self._keys

    @property
    def key_bytes(self) -> bytes:
        """The keys in a compact form, by which caches tell which observations these are."""
        assert self.keys is not None, "these observations have no keys"
        return np.array(self.keys, dtype=np.int32).tobytes()


class GrowingObservations:
    """Points of shape (n, d) and rewards of shape (n,), in the order in which they came, with room for more.

    Args:
        dimension: d.
    """

    __slots__ = ("_points", "_rewards", "size")

    def __init__(self, dimension: int) -> None:
        self._points = np.empty((8, dimension))
        self._rewards = np.empty(8)
        self.size = 0

    @property
    def points(self) -> FloatArray:
        return self._points[: self.size]

    @property
    def rewards(self) -> FloatArray:
        return self._rewards[: self.size]

    def append(self, point: FloatArray, reward: float) -> None:
        if self.size == len(self._rewards):
            self._points = np.concatenate([self._points, np.empty_like(self._points)])
            self._rewards = np.concatenate([self._rewards, np.empty_like(self._rewards)])
        self._points[self.size] = point
        self._rewards[self.size] = reward
        self.size += 1

    def extend(self, observations: Observations) -> None:
        for point, reward in zip(observations.features, observations.rewards.tolist(), strict=True):
            self.append(point, reward)

    def since(self, start: int) -> Observations:
        """Those from number ``start`` on, copied."""
        return Observations(self._points[start : self.size].copy(), self._rewards[start : self.size].copy())
