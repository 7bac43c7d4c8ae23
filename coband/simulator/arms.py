"""Arm sets: what an agent is offered at a turn, and which of them it pulls."""

from __future__ import annotations

import numpy as np

from coband.simulator.arrays import FloatArray, IndexArray

ALONE = -1
"""In the place of a turn among several."""


class ArmSet:
    """n arms in order, immutable.

    Two arm sets are equal only when they are one object, so what is computed for one is cached with it as the key.

    Args:
        features: (n, d); the arm set keeps a read-only view. With a place those of several turns, (turns, n, d).
        place: which of these turns it is for.

    Attributes:
        block, place: these, where others have the same block.
    """

    __slots__ = ("_domain", "_features", "_ids", "_start", "block", "place")

    def __init__(self, features: FloatArray, place: int = ALONE) -> None:
        if features.flags.writeable:
            features = features.view()
            features.setflags(write=False)
        self.block, self.place = features, place
        self._features = features if place == ALONE else None
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
        if self._features is None:
            self._features = self.block[self.place]
        return self._features

    @property
    def domain(self) -> ArmSet | None:
        """The fixed arm set that these arms are from, itself for the whole of it; None for arms that change."""
        return self._domain

    @property
    def ids(self) -> IndexArray:
        """Numbers of the arms (n,): in the domain if there is one, else in the arm set of the turn."""
        if self._ids is None:
            self._ids = np.arange(self._start, self._start + len(self))
        return self._ids

    def select(self, places: int | IndexArray) -> ArmSet:
        """The arms in these places (p,), or the one in this place, with the ids that they have here."""
        if isinstance(places, int) and self._ids is None:
            chosen = ArmSet(self.features[places : places + 1])
            chosen._start = self._start + places
        else:
            rows = np.atleast_1d(places)
            chosen = ArmSet(self.features[rows])
            chosen._ids = self.ids[rows]
        chosen._domain = self._domain
        return chosen

    def __len__(self) -> int:
        return int(self.block.shape[-2])

    def __repr__(self) -> str:
        of = "" if self._domain is None else f" of a domain of {len(self._domain)}"
        return f"<ArmSet: {len(self)} arms{of}, {self.block.shape[-1]} features>"


def coming(features: FloatArray) -> list[ArmSet]:
    """The arm sets of several turns, (turns, n, d), all of one block."""
    block = ArmSet(features).block
    return [ArmSet(block, place) for place in range(len(block))]


Points = ArmSet | FloatArray
"""Arms, or any points (n, d) that are not from an arm set."""


def features_of(points: Points) -> FloatArray:
    """The features (n, d) of points."""
    return points.features if isinstance(points, ArmSet) else points
