from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from coband.simulator.analysis.report.frames import at, curve, progress
from coband.simulator.experiments.statistics.estimates import interval
from coband.simulator.experiments.store.store import Series


def series(turns: list[int], times: list[float], regret: list[float], scalars: list[int], number: int = 0) -> Series:
    return Series(number, np.array(turns), np.array(times), np.array(regret), np.array(scalars))


FIRST = series([1, 2, 3, 4], [1.0, 2.0, 4.0, 5.0], [1.0, 2.0, 3.0, 4.0], [0, 10, 10, 30])
SECOND = series([1, 2, 3, 4], [1.5, 3.0, 4.5, 9.0], [2.0, 3.0, 4.0, 6.0], [0, 0, 20, 40], 1)


def test_a_step_function_holds_the_last_value() -> None:
    assert at(FIRST, "time", "regret", np.array([0.5, 1.0, 1.9, 2.0, 3.9, 100.0])).tolist() == [0, 1, 1, 2, 2, 4]
    # Turns 2 and 3 both end with 10 scalars sent: the regret at 10 scalars is that of the later one.
    assert at(FIRST, "scalars", "regret", np.array([0.0, 9.0, 10.0, 29.0, 30.0])).tolist() == [1, 1, 3, 3, 4]


def test_against_turns_only_stored_points_are_used() -> None:
    found = curve([FIRST, SECOND], "turns", "regret")
    assert found["at"].tolist() == [0, 1, 2, 3, 4]
    assert found["mean"].tolist() == [0, 1.5, 2.5, 3.5, 5]
    assert (found["low"].iloc[-1], found["high"].iloc[-1]) == pytest.approx(interval([4.0, 6.0]))


def test_a_curve_ends_with_its_first_replication() -> None:
    assert curve([FIRST, SECOND], "time", "turns")["at"].iloc[-1] == 5.0
    assert curve([FIRST, SECOND], "scalars", "regret", log=True)["at"].iloc[-1] == pytest.approx(30.0)


def test_progress_is_shown_where_labels_differ_in_any_replication() -> None:
    later = series([1, 2, 3, 4], [1.5, 3.0, 4.5, 9.5], [2.0, 3.0, 4.0, 6.0], [0, 0, 20, 40], 1)
    for own, shown in (([FIRST, SECOND], False), ([FIRST, later], True), ([FIRST], False)):
        labels = [SimpleNamespace(label="A", series=[FIRST, SECOND]), SimpleNamespace(label="B", series=own)]
        analysis: Any = SimpleNamespace(comparison=SimpleNamespace(stops_itself=lambda: False), contenders=labels)
        assert progress(analysis).empty != shown


def test_one_replication_has_no_band() -> None:
    found = curve([FIRST], "turns", "regret")
    assert found["low"].isna().all()
    assert (found["n"] == 1).all()


def test_who_sends_nothing_stands_at_no_place() -> None:
    silent = series([1, 2], [1.0, 2.0], [3.0, 5.0], [0, 0])
    found = curve([silent], "scalars", "regret")
    assert (found["at"].isna().tolist(), found["mean"].tolist()) == ([True], [5.0])


def test_where_one_replication_sends_nothing_the_curve_ends_at_0() -> None:
    silent, other = series([1, 2], [1.0, 2.0], [3.0, 5.0], [0, 0]), series([1, 2], [1.0, 2.0], [1.0, 4.0], [0, 6])
    for log in (False, True):
        found = curve([silent, other], "scalars", "regret", log=log)
        assert (found["at"].tolist(), found["mean"].tolist()) == ([0.0], [3.0])
