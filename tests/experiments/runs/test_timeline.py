"""Algorithms at the same simulated times."""

from typing import Any, cast

import numpy as np
import pytest

from coband.simulator.experiments.runs.footing import timeline
from coband.simulator.experiments.store.store import Series, StoredRun


class Stored:
    """Two labels: one takes a turn every time unit, one every four."""

    def series(self, label: str) -> list[Series]:
        if label == "none":
            return []
        pace = {"fast": 1.0, "slow": 4.0}[label]
        turns = np.arange(1, 9)
        return [
            Series(replication, turns, pace * turns + 10 * replication, 0.5 * turns, 3 * turns)
            for replication in (0, 1)
        ]


def test_labels_are_compared_at_the_times_of_the_fastest() -> None:
    rows = list(timeline(cast(StoredRun, cast(Any, Stored())), ["slow", "fast", "none"]))
    assert [(row.time, row.label) for row in rows] == [
        (time, label) for time in (7.0, 9.0, 11.0, 13.0) for label in ("slow", "fast")
    ]
    last = {row.label: row for row in rows[-2:]}
    # at time 13: fast has taken 8 turns and 3, slow 3 and none
    assert (last["fast"].turns, last["fast"].regret, last["fast"].scalars) == (5.5, 2.75, 16.5)
    assert (last["slow"].turns, last["slow"].scalars) == (1.5, 4.5)
    assert last["slow"].regret_per_turn == pytest.approx(0.5)
