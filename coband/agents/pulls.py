"""Pulls that agents tell each other of, as observations."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from coband.agents.messages.sharing import Pull
from coband.simulator.arrays import FloatArray, IndexArray
from coband.simulator.maths.posteriors.observations import Key, Observations


class PullObservations(Observations):
    """Pulls, each column put together when it is first asked for: a log that has them already asks for the keys alone.

    Args:
        pulls: by trial and agent; not changed as long as this is in use.
        by_agent: tasks are numbers of agents; else their network contexts, or nothing where pulls have none.
    """

    def __init__(self, pulls: Sequence[Pull], by_agent: bool) -> None:
        self.pulls, self.by_agent = pulls, by_agent

    def __len__(self) -> int:
        return len(self.pulls)

    @cached_property
    def points(self) -> FloatArray:
        return np.array([pull.point for pull in self.pulls])

    @cached_property
    def rewards(self) -> FloatArray:
        return np.array([pull.reward for pull in self.pulls])

    @cached_property
    def tasks(self) -> FloatArray:
        """Numbers of agents (n, 1), or network contexts (n, d_z), d_z = 0 where there are none."""
        if self.by_agent:
            return np.array([[float(pull.agent)] for pull in self.pulls])
        return np.array([() if pull.context is None else pull.context for pull in self.pulls])

    @cached_property
    def places(self) -> IndexArray:
        """Places of the arms in their arm sets, 0 where they make no difference, (n,)."""
        return np.array([pull.place or 0 for pull in self.pulls])

    @cached_property
    def keys(self) -> list[Key]:
        return [(pull.trial, pull.agent) for pull in self.pulls]

    @cached_property
    def key_bytes(self) -> bytes:
        return super().key_bytes


class SomePulls(PullObservations):
    """Some of the pulls of a table, whose columns are cut out of its columns.

    Args:
        table: the pulls of several agents.
        rows: which of them.
    """

    def __init__(self, table: PullObservations, rows: Sequence[int]) -> None:
        self.by_agent = table.by_agent
        self._table, self._rows = table, np.array(rows)

    def __len__(self) -> int:
        return len(self._rows)

    @cached_property
    def pulls(self) -> Sequence[Pull]:  # type: ignore[override]
        """The pulls themselves, by trial and agent."""
        return [self._table.pulls[row] for row in self._rows.tolist()]

    @cached_property
    def keys(self) -> list[Key]:
        return [self._table.keys[row] for row in self._rows.tolist()]

    @cached_property
    def points(self) -> FloatArray:
        return self._table.points.take(self._rows, axis=0)

    @cached_property
    def rewards(self) -> FloatArray:
        return self._table.rewards.take(self._rows, axis=0)

    @cached_property
    def tasks(self) -> FloatArray:
        return self._table.tasks.take(self._rows, axis=0)

    @cached_property
    def places(self) -> IndexArray:
        return self._table.places.take(self._rows, axis=0)
