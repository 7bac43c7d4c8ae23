"""How close the closest decision of a run was: whether rounding could have decided it.

Other processors and libraries compute the same scores with other last bits. Where the best arm is better than the
second one by less than that, they pull another arm, and from there on the run is another one.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np

from coband.simulator.arrays import FloatArray

ROWS = 256
"""Decisions that are looked at together, which takes a hundredth of the time of looking at each."""
MANY = 4096
"""Arms from which on each decision is looked at by itself, so that no more memory is taken."""


CLOSE = 1e-9
"""Relative: two ways to compute what a trigger compares, alone or with others' work, may differ by so much."""


def exceeds(value: Any, threshold: float) -> Any:
    """Whether a trigger's value is above its threshold by more than rounding, so that a tie never is."""
    return value > threshold + CLOSE * abs(threshold)


class ClosestDecision:
    """The smallest gap between the best score and the next lower one, for each agent.

    The gap of a decision is (best - next) / max(|best|, |next|). Scores that are exactly equal are a tie, not a close
    decision; -inf stands for arms that are certainly worse and does not count.

    Args:
        agents: their number.
    """

    def __init__(self, agents: int) -> None:
        self._least = array("d", [np.inf]) * agents
        self._gaps = np.frombuffer(self._least)  # the same numbers
        self._whose: list[int] = []
        self._kept: list[FloatArray] = []  # tables, or single rows

    def note(self, agent: int, scores: FloatArray) -> None:
        """Take note of the scores (n,) that an agent chooses from."""
        self.note_together((agent,), scores)

    def note_gap(self, agent: int, gap: float) -> None:
        """Take note of a decision with this gap."""
        if gap < self._least[agent]:
            self._least[agent] = gap

    def note_together(self, agents: Sequence[int], table: FloatArray) -> None:
        """Take note of the scores of several agents, one row each."""
        self._whose += agents
        self._kept.append(table.copy())  # whose array may be used again
        if len(self._whose) >= ROWS or table.shape[-1] > MANY:
            self._look()

    def of_agents(self) -> list[float | None]:
        """The smallest gap of each agent, to two digits; None of one who has not decided."""
        self._look()
        return [float(f"{gap:.1e}") if gap < np.inf else None for gap in self._gaps.tolist()]

    def _look(self) -> None:
        """Look at what was noted, decisions among equally many arms together."""
        whose = iter(self._whose)
        alike: dict[int, tuple[list[int], list[FloatArray]]] = {}
        for table in self._kept:
            agents, tables = alike.setdefault(table.shape[-1], ([], []))
            tables.append(rows := np.atleast_2d(table))
            agents += islice(whose, len(rows))
        for agents, tables in alike.values():
            np.minimum.at(self._gaps, agents, gaps(np.concatenate(tables)))
        self._whose.clear()
        self._kept.clear()


def gaps(table: FloatArray) -> FloatArray:
    """The relative gap of each row of scores (rows, n), shape (rows,); inf where there is no second one."""
    if table.shape[1] < 2:
        return np.full(len(table), np.inf)
    best = table.max(axis=1)
    lower = np.where(table < best[:, None], table, -np.inf).max(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        found: FloatArray = (best - lower) / np.maximum(np.abs(best), np.abs(lower))
    return np.where(np.isfinite(found), found, np.inf)
