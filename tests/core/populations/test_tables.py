"""Tables of devices: units, windows, bad rows by number, orders; and what scenarios are told."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coband.simulator.core.populations.populations import FilePopulation
from coband.simulator.core.populations.table import Windows, in_period, mistake_in

HEADER = "step_ms,up,down,rtt_ms,trace,share\n"
ROWS = ["100,8,80,40,a,1", "250,4,40,,b,3", "50,,20,10,,0"]
WINDOWS = "id,up,down\na,0,6\nb,2,3\nb,4,5\n"
COLUMNS = {"compute": "step_ms", "uplink": "up", "downlink": "down", "round_trip": "rtt_ms", "availability": "trace"}


def _population(folder: Path, rows: list[str], **changes: Any) -> FilePopulation:
    (folder / "devices.csv").write_text(HEADER + "\n".join(rows) + "\n")
    (folder / "windows.csv").write_text(WINDOWS)
    given = {
        "kind": "file",
        "file": str(folder / "devices.csv"),
        "columns": COLUMNS,
        "units": {
            "compute": "milliseconds",
            "latency": "milliseconds",
            "availability": "hours",
            "bandwidth": "kilobits",
        },
        "windows_file": str(folder / "windows.csv"),
        "repeat_after": 6,
        "time_unit": "minutes",
    }
    return FilePopulation.model_validate({**given, **changes})


def test_rows_in_simulated_units(tmp_path: Path) -> None:
    """Minutes and bits per minute; half of a round trip; empty cells say nothing; traces repeat."""
    fleet = _population(tmp_path, ROWS).table()
    assert {name: values.tolist() for name, values in fleet.numbers.items() if name == "compute"} == {
        "compute": pytest.approx([0.1 / 60, 0.25 / 60, 0.05 / 60])
    }
    np.testing.assert_allclose(fleet.numbers["uplink"], [8e3 * 60, 4e3 * 60, np.nan])
    np.testing.assert_allclose(fleet.numbers["latency"], [0.02 / 60, np.nan, 0.005 / 60])
    assert fleet.trace is not None
    assert fleet.windows is not None
    assert fleet.trace.tolist() == [0, 1, -1]
    assert list(fleet.windows.absences(0)) == []  # up for its whole period
    away = fleet.windows.absences(1)
    assert [next(away) for _ in range(4)] == [(0, 120), (180, 240), (300, 480), (540, 600)]
    np.testing.assert_allclose(fleet.shares, [1, 1 / 3, np.nan])


def test_the_same_table_in_each_format(tmp_path: Path) -> None:
    """CSV, JSON and Parquet give the same rows; JSON may hold windows itself."""
    parquet, arrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    csv = _population(tmp_path, ROWS).table()
    cells = [dict(zip(HEADER.strip().split(","), row.split(","), strict=True)) for row in ROWS]
    rows = [{key: (cell if key == "trace" else float(cell)) for key, cell in row.items() if cell} for row in cells]
    (tmp_path / "devices.json").write_text(json.dumps(rows))
    parquet.write_table(arrow.Table.from_pylist(rows), tmp_path / "devices.parquet")
    inside = [{**row, "trace": {"a": [[0, 6]], "b": [[2, 3], [4, 5]]}[row["trace"]]} for row in rows if "trace" in row]
    (tmp_path / "inside.json").write_text(json.dumps([*inside, rows[2]]))
    files = {"devices.json": {}, "devices.parquet": {}, "inside.json": {"windows_file": None}}
    for name, changes in files.items():
        found = _population(tmp_path, ROWS, file=str(tmp_path / name), **changes).table()
        assert found.trace is not None
        assert found.windows is not None
        assert csv.trace is not None
        assert csv.windows is not None
        for key, values in csv.numbers.items():
            np.testing.assert_array_equal(found.numbers[key], values)
        for one, other in zip(found.trace, csv.trace, strict=True):
            assert one == other == -1 or found.windows.pairs(one) == csv.windows.pairs(other)


BAD: dict[str, str] = {
    "0,8,80,40,a,1": "row 2: step_ms is 0: must be > 0 and at most 86,400 seconds",
    "1e9,8,80,40,a,1": "row 2: step_ms is 1e+09: must be > 0 and at most 86,400 seconds",
    "1,-8,80,40,a,1": "row 2: up is -8: must be > 0 and at most 1,000,000,000,000 bits per second",
    "1,8,80,0,a,1": "row 2: rtt_ms is 0: must be > 0",
    "1,8,fast,40,a,1": "row 2: down is 'fast', which is not a number",
    "1,8,80,40,c,1": "has no windows with the id 'c'",
    "1,8,80": "row 2: has 3 cells: must have 6",
}


@pytest.mark.parametrize("row", BAD)
def test_bad_rows_are_refused_by_number_or_dropped(row: str, tmp_path: Path) -> None:
    """With on_bad_row: drop the rest remains, and it is said which are gone."""
    rows = [ROWS[0], row, ROWS[1]]
    with pytest.raises(ValueError, match="1 of 3 rows is bad") as refused:
        _population(tmp_path, rows)
    assert BAD[row] in str(refused.value)
    assert "correct them, or give on_bad_row: drop" in str(refused.value)
    kept = _population(tmp_path, rows, on_bad_row="drop")
    assert kept.table().numbers["compute"].tolist() == pytest.approx([0.1 / 60, 0.25 / 60])
    assert BAD[row] in kept.dropped
    with pytest.raises(ValueError, match="no row is left"):
        _population(tmp_path, [row], on_bad_row="drop")
    with pytest.raises(ValueError, match="has no rows"):
        _population(tmp_path, [])


def test_bad_windows_are_refused_by_number_or_dropped(tmp_path: Path) -> None:
    """A device keeps its other windows; one that has no other is bad itself."""

    def population(windows: str, **changes: Any) -> FilePopulation:
        (tmp_path / "bad.csv").write_text(f"id,up,down\n{windows}")
        return _population(tmp_path, ROWS, windows_file=str(tmp_path / "bad.csv"), **changes)

    with pytest.raises(ValueError, match=r"bad\.csv': 1 of 3 rows is bad: row 2: from 5 to 4 .*on_bad_row: drop"):
        population("a,0,6\nb,5,4\nb,2,3\n")
    kept = population("a,0,6\nb,5,4\nb,2,3\n", on_bad_row="drop")
    fleet = kept.table()
    assert fleet.windows is not None
    assert fleet.windows.pairs(1) == [(120.0, 180.0)]
    assert "1 of 3 rows is bad: row 2: from 5 to 4 is not a window" in kept.dropped
    kept = population("a,0,6\nb,5,4\nb,,3\nb,soon,3\n", on_bad_row="drop")
    assert kept.table().count == 2
    assert "3 of 4 rows are bad" in kept.dropped
    assert "has no windows with the id 'b'" in kept.dropped


def test_many_bad_rows_are_counted(tmp_path: Path) -> None:
    """The first ones are named; numbers hold beyond one chunk of the file."""
    rows = [*[ROWS[0]] * 6000, *["0,1,1,1,a,1"] * 8]
    with pytest.raises(ValueError, match=r"8 of 6,008 rows are bad: row 6001: .*row 6005: .*; and 3 more; correct"):
        _population(tmp_path, rows)


def test_windows_that_cannot_be() -> None:
    """The reason of each; a window of no length is none."""
    assert mistake_in([(3, 2)]) == "a window ends at 2, before it begins at 3"
    assert mistake_in([(0, 4), (3, 5)]) == "windows overlap at 3"
    assert mistake_in([(-1, 4)]) == "a window from -1 to 4 does not lie in time"
    assert mistake_in([(1, 1)]) == mistake_in([]) == "has no window of any length, so that it is never up"
    assert mistake_in([(1, 1), (2, 3)]) == ""


def test_windows_over_the_end_of_a_period_and_by_hour() -> None:
    """A window that is cut at the end of the period goes on at its beginning; hours of the day add up to the share, and
    no share is above 1, whatever the period is, and whether or not the last window ends."""
    assert in_period([(50, 70), (100, 110), (120, 120)], 60) == [(0, 10), (40, 50), (50, 60)]
    assert in_period([(5, 6), (50, 70)], 60) == [(0, 10), (50, 60)]
    assert in_period([(5, 130)], 60) == [(0, 60)]
    windows = Windows.of([in_period([(50, 70), (100, 110)], 60)], [60.0])
    away = windows.absences(0)
    assert [next(away) for _ in range(2)] == [(10, 40), (70, 100)]
    hours = windows.by_hour(day=60.0, hours=6)
    np.testing.assert_allclose(hours, [[1, 0, 0, 0, 1, 1]])
    assert hours.mean() == pytest.approx(windows.shares()[0])
    once = Windows.of([[(1.0, 2.0)]], [np.inf])
    assert list(once.absences(0)) == [(0.0, 1.0), (2.0, np.inf)]
    always = Windows.of([[(0.0, 90.0)], [(0.0, 25.0)], [(5.0, np.inf)], [], [(0.0, 30.0)]], [90.0, 25.0, *[np.inf] * 3])
    np.testing.assert_allclose(always.by_hour(day=60.0, hours=2), [[1, 1], [1, 1], [1, 1], [0, 0], [1, 0]])
    np.testing.assert_allclose(always.shares(), [1, 1, 1, 0, 1])


def test_orders_and_weights(tmp_path: Path) -> None:
    """In order: row by row; sampled: as the weights say, never a row of weight 0."""
    ordered = _population(tmp_path, ROWS, order="in_order")
    assert ordered.draw(2, np.random.default_rng(0)).numbers["downlink"].tolist() == [80e3 * 60, 40e3 * 60]
    assert ordered.misfit(4) == "has 3 rows for 4 agents; give order: sampled"
    weighted = _population(tmp_path, ROWS, columns={**COLUMNS, "weight": "share"})
    drawn = weighted.draw(4000, np.random.default_rng(0)).numbers["downlink"] / (1e3 * 60)
    assert [np.mean(drawn == value) for value in (80, 40, 20)] == pytest.approx([0.25, 0.75, 0], abs=0.03)


def test_what_configurations_cannot_be(tmp_path: Path) -> None:
    """Each with what to do."""
    for changes, message in [
        ({"columns": {}}, "give at least one column besides weight"),
        ({"columns": {**COLUMNS, "latency": "rtt_ms"}}, "give either latency or round_trip"),
        ({"columns": {"compute": "step"}, "windows_file": None}, "no column 'step'; did you mean step_ms"),
        ({"columns": {"compute": "step_ms"}}, "windows_file needs columns.availability"),
        ({"only": ["speed"]}, "only: these devices do not say speed; they say compute, uplink, downlink"),
        ({"windows_file": None}, "columns.availability has the ids of windows; give windows_file"),
        ({"repeat_after": 4}, "row 1: a window ends after repeat_after, 4; row 2: a window ends after repeat_after, 4"),
        ({"file": str(tmp_path / "none.csv")}, "does not exist; give a table with one row per device"),
        ({"file": str(tmp_path / "windows.txt")}, "does not exist"),
    ]:
        with pytest.raises(ValueError, match=message.replace(".", r"\.")):
            _population(tmp_path, ROWS, **changes)
