"""How far each algorithm has come at the same simulated times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from coband.simulator.experiments.store.store import Series, StoredRun

SHARES = (0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class Snapshot:
    """Means over replications of a label at one simulated time; ``regret_per_turn`` is None before the first turn."""

    time: float
    label: str
    turns: float
    regret: float
    regret_per_turn: float | None
    scalars: float


def timeline(run: StoredRun, labels: Sequence[str]) -> Iterator[Snapshot]:
    """Every label at the times when the fastest one has taken a quarter, a half, three quarters and all of its turns.

    Between two stored points of a series its earlier one counts, so nothing is said to have happened too early.
    """
    series = {label: run.series(label) for label in labels}
    series = {label: found for label, found in series.items() if found and all(len(one.times) for one in found)}
    for share in SHARES:
        if not series:
            return
        time = min(float(np.mean([_time_of(one, share) for one in found])) for found in series.values())
        for label, found in series.items():
            turns, regret, scalars = np.mean([_at(one, time) for one in found], axis=0).tolist()
            yield Snapshot(time, label, turns, regret, regret / turns if turns else None, scalars)


def _time_of(series: Series, share: float) -> float:
    """When ``share`` of the turns had been taken."""
    index = int(np.searchsorted(series.turns, share * series.turns[-1]))
    return float(series.times[min(index, len(series.times) - 1)])


def _at(series: Series, time: float) -> tuple[float, float, float]:
    """Turns, regret and scalars at ``time``."""
    index = int(np.searchsorted(series.times, time, side="right")) - 1
    if index < 0:
        return 0.0, 0.0, 0.0
    return float(series.turns[index]), float(series.regret[index]), float(series.scalars[index])
