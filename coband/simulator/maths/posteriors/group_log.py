"""Exact posteriors on observations of several agents, with the factor shared by all who know the same.

Observations are keyed (trial, agent). Those of a group of agents have a canonical order, by trial and then by agent,
and a log in that order has one growing factor (``maths.posteriors.shared_log``). What somebody knows beyond the leading
part of the log that it knows without a gap is a small factor of its own on top. So members of a clique at one hop, who
all know everything up to the last trial, share one factor, and in any other case the result is the same, more slowly.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache

import numpy as np

from coband.simulator.arrays import FloatArray
from coband.simulator.maths.posteriors.observations import Key, Observations
from coband.simulator.maths.posteriors.shared_log import LogPosterior, SharedLog


class CanonicalPosterior(LogPosterior):
    """What one agent knows of a group's observations, which have ``keys``.

    Args:
        log: in canonical order, after the ``first`` observations if there are any.
        members: the group, in ascending order.
        first: keys that stand at the start of the log, whatever their canonical place.
    """

    def __init__(self, log: SharedLog, members: tuple[int, ...], first: Iterable[Key] = ()) -> None:
        super().__init__(log)
        self._members = members
        self._first = frozenset(first)
        self._next = (1, 0)  # trial, and position among the members
        self._beyond: dict[Key, tuple[FloatArray, float]] = {}
        if self._first:
            self.adopt(len(self._first), 0)

    def update(self, observations: Observations) -> None:
        """Learn observations; points and rewards that the log has already are not looked at."""
        assert observations.keys is not None, "observations of a group have keys"
        keys = observations.keys
        trial, position = self._next
        if position == 0 and not self._first and keys == _whole_trial(self._members, trial):
            run: Sequence[Key] = keys
            cursor = (trial + 1, 0)  # one whole trial, as with one hop and ideal links
        else:
            keys = list(keys)
            run, cursor = self._without_gap(set(keys))
        if self._beyond or run != keys:
            self._update_with_gaps(keys, observations)
            return
        start = self.known
        if self._log.size < start + len(run):
            self._log.extend(start, observations)
        self.adopt(start + len(run), 0)
        self._next = cursor

    def _update_with_gaps(self, keys: Sequence[Key], observations: Observations) -> None:
        rows = zip(keys, observations.features, observations.rewards.tolist(), strict=True)
        unlogged = {key: (point, reward) for key, point, reward in rows}
        known = {**self._beyond, **unlogged}
        run, cursor = self._without_gap(known)
        # Whatever stays on top is factored again, so the log is followed only where that gains more than it costs.
        if run and 2 * len(run) >= len(known) - len(run):
            start = self.known
            self._log.extend(start, _joined([known.pop(key) for key in run]))
            self.adopt(start + len(run), self.own_size)
            self._next, self._beyond, unlogged = cursor, known, known
        else:
            self._beyond = known
        if unlogged:
            super().update(_joined(unlogged.values()))

    def _without_gap(self, known: Collection[Key]) -> tuple[Sequence[Key], tuple[int, int]]:
        """The keys that come next in the log, as far as they are known, and where the first gap is."""
        trial, position = self._next
        run: list[Key] = []
        while True:
            key = (trial, self._members[position])
            if key in known:
                run.append(key)
            elif key not in self._first:
                return run, (trial, position)
            position += 1
            if position == len(self._members):
                trial, position = trial + 1, 0


@lru_cache(maxsize=256)
def _whole_trial(members: tuple[int, ...], trial: int) -> list[Key]:
    """The keys of all members' observations of a trial, in order; shared, so nobody changes them."""
    return [(trial, member) for member in members]


def _joined(rows: Collection[tuple[FloatArray, float]]) -> Observations:
    points, rewards = zip(*rows, strict=True)
    return Observations(np.array(points), np.array(rewards))
