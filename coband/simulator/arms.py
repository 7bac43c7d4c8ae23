"""Arm sets: what an agent is offered at a turn, and which of them it pulls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coband.simulator.arrays import FloatArray, IndexArray


class ArmSet:
    """n arms in order, immutable.

    Two arm sets are equal only when they are one object, so what is computed for one is cached with it as the key.

    Args:
        features: (n, d); the arm set keeps a read-only view.
    """

    __slots__ = ("_domain", "_features", "_ids", "_start")

    def __init__(self, features: FloatArray) -> None:
        if features.flags.writeable:
            features = features.view()
            features.setflags(write=False)
        self._features = features
        self._domain: ArmSet | None = None
        self._ids: IndexArray | None = None
        self._start = 0

    @classmethod
    def fixed(cls, features: FloatArray) -> ArmSet:
        """The domain of a problem that offers the same arms (n, d) at every turn: one object for all turns."""
        domain = cls(features)
        domain._domain = domain
        return domain

    @property
    def features(self) -> FloatArray:
        """Features of the arms, read-only (n, d)."""
        return self._features

    @property
    def domain(self) -> ArmSet | None:
        """The fixed arm set that these arms are from, itself for the whole of it; None for arms that change."""
        return self._domain

    @property
    def ids(self) -> IndexArray:
        """Numbers of the arms (n,): in the domain if there is one, else in the arm set of the turn."""
        if self._ids is None:
            self._ids = np.arange(self._start, self._start + len(self._features))
        return self._ids

    def select(self, places: int | IndexArray) -> ArmSet:
        """The arms in these places (p,), or the one in this place, with the ids that they have here."""
        if isinstance(places, int) and self._ids is None:
            chosen = ArmSet(self._features[places : places + 1])
            chosen._start = self._start + places
        else:
            rows = np.atleast_1d(places)
            chosen = ArmSet(self._features[rows])
            chosen._ids = self.ids[rows]
        chosen._domain = self._domain
        return chosen

    def __len__(self) -> int:
        return len(self._features)

    def __repr__(self) -> str:
        of = "" if self._domain is None else f" of a domain of {len(self._domain)}"
        return f"<ArmSet: {len(self)} arms{of}, {self._features.shape[-1]} features>"


class ComingArms(Sequence[ArmSet]):
    """The arm sets of turns to come: each is made when it is asked for, and is the same object until it is forgotten.

    Attributes:
        features: of each turn (n, d); an array (turns, n, d) where the turns were drawn together.
        first: number of the first of these turns.
    """

    __slots__ = ("_made", "features", "first")

    def __init__(self, features: Sequence[FloatArray] | FloatArray, first: int = 1) -> None:
        self.features, self.first = features, first
        self._made: list[ArmSet | None] = [None] * len(features)

    def __len__(self) -> int:
        return len(self._made)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[number] for number in range(len(self))[place]]
        made = self._made[place]
        if made is None:
            made = self._made[place] = ArmSet(self.features[place])
        return made

    def forget(self, place: int) -> None:
        """A turn is over."""
        self._made[place] = None


Points = ArmSet | FloatArray
"""Arms, or any points (n, d) that are not from an arm set."""


def features_of(points: Points) -> FloatArray:
    """The features (n, d) of points."""
    return points.features if isinstance(points, ArmSet) else points
