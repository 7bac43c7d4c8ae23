"""A generator fitted to a table: like rows that it has not seen, as measured; and tables that it refuses."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coband.simulator.analysis.fit.population import acceptance
from coband.simulator.arrays import FloatArray
from coband.simulator.core.fleet.copula import Copula, Fit, columns_of, kendall
from coband.simulator.core.fleet.populations import BasePopulation, FilePopulation
from coband.simulator.core.fleet.presets import Preset
from coband.simulator.core.fleet.public import Flash
from coband.simulator.core.fleet.table import Fleet, Windows

CORRELATION = np.array([[1.0, 0.7, -0.4, 0.3], [0.7, 1.0, 0.0, 0.2], [-0.4, 0.0, 1.0, 0.1], [0.3, 0.2, 0.1, 1.0]])


class Made(BasePopulation):
    """Devices with known columns that depend on each other, some in classes; and nights."""

    kind: str = "made"
    rows: int

    @property
    def offers(self) -> frozenset[str]:
        return frozenset({"compute", "uplink", "downlink", "availability"})

    def draw(self, count: int, rng: np.random.Generator) -> Fleet:
        Z = rng.standard_normal((count, 4)) @ np.linalg.cholesky(CORRELATION).T
        numbers = {"compute": np.exp(0.7 * Z[:, 0]), "uplink": 1e6 * np.exp(Z[:, 1]), "downlink": _classes(Z[:, 2])}
        begins = rng.uniform(0, 6 * 3600, 200)
        lengths = np.linspace(3600, 60_000, 200)
        traces = [[(begin, begin + length)] for begin, length in zip(begins.tolist(), lengths.tolist(), strict=True)]
        trace = np.clip((200 * _phi(Z[:, 3])).astype(int), 0, 199)
        return Fleet(count, numbers, trace, Windows.of(traces, [86400.0] * 200))

    def tables(self) -> tuple[Fleet]:
        return (self.draw(self.rows, np.random.default_rng(5)),)


def _phi(z: FloatArray) -> FloatArray:
    return np.array([0.5 * (1 + math.erf(value / math.sqrt(2))) for value in z])


def _classes(z: FloatArray) -> FloatArray:
    """Three kinds of links."""
    return np.select([z < -0.5, z < 0.8], [1e6, 1e7], 1e8)


def test_a_generator_is_like_rows_that_it_has_not_seen() -> None:
    """Quantiles and availability by hour within 5 %, Kendall's tau within .05, of 30,000 rows held out."""
    found = acceptance(Made(rows=60_000))
    assert [one.what for one in found].count("Kendall's tau") == 6
    assert len(found) == 4 * 3 + 6 + 1
    assert [(one.of, one.what, one.difference) for one in found if one.verdict != "met"] == []


def test_a_wrong_generator_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Independent columns miss the taus that are not 0, by more than chance; the quantiles stay."""
    monkeypatch.setattr("coband.simulator.core.fleet.copula.kendall", lambda columns: np.eye(len(columns)))
    found = {(one.of, one.what): one.verdict for one in acceptance(Made(rows=20_000))}
    assert found["compute, uplink", "Kendall's tau"] == "missed"
    assert found["compute", "50% quantile"] == "met"


def test_few_rows_are_not_blamed_on_the_generator() -> None:
    """What two halves of the rows differ by chance is said."""
    verdicts = {one.verdict for one in acceptance(Made(rows=60))}
    assert "missed, as halves of so few rows do" in verdicts


def test_rows_that_do_not_say_when_they_are_up_are_refused_in_both_halves(monkeypatch: pytest.MonkeyPatch) -> None:
    population = Made(rows=60)
    fitted, *_, held = np.random.default_rng(0).permutation(60)
    for silent in (fitted, held):
        (table,) = population.tables()
        assert table.trace is not None
        table.trace[silent] = -1
        monkeypatch.setattr(Made, "tables", lambda self, table=table: (table,))
        with pytest.raises(ValueError, match="rows without empty cells; 1 of 30 lack availability"):
            acceptance(population)
        monkeypatch.undo()


def _flash(folder: Path, phones: int = 60) -> Flash:
    """Phones, all with other numbers, and half as many speeds."""
    days = {
        str(n): {"trace_start": 0, "trace_end": 86400, "ready_time": [[600 * n, 600 * n + 900 + n]]}
        for n in range(phones)
    }
    files: dict[str, Any] = {
        "availability_file": days,
        "latency_file": [{"ResNet Latency": 100.0 + n} for n in range(phones)],
        "speed_file": [{"tcp_speed_results": [1000.0 + n]} for n in range(phones // 2)],
    }
    for name, rows in files.items():
        (folder / name).write_text(json.dumps(rows))
    return Flash.model_validate({"kind": "flash", **{name: str(folder / name) for name in files}})


def test_rows_that_are_held_out_are_not_fitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each file of phones half of the rows, each once; and a fit has all rows of each."""
    fitted, of, flash = list[Fleet](), Copula.of, _flash(tmp_path)
    monkeypatch.setattr(Copula, "of", staticmethod(lambda rows: fitted.append(rows) or of(rows)))
    found = acceptance(flash)
    assert {one.of for one in found} == {"availability", "compute", "downlink"}
    assert [rows.count for rows in fitted] == [30, 30, 15]
    assert [len({*map(tuple, np.transpose([*columns_of(rows).values()]))}) for rows in fitted] == [30, 30, 15]
    for name, half in zip(("availability", "compute", "downlink"), fitted, strict=True):
        (median,) = (one.held_out for one in found if (one.of, one.what) == (name, "50% quantile"))
        whole = np.concatenate([columns_of(table)[name] for table in flash.tables() if name in columns_of(table)])
        rest = np.setdiff1d(whole, columns_of(half)[name])
        assert len(rest) == len(whole) - half.count
        assert median == pytest.approx(np.median(rest))
    fitted.clear()
    drawn = Fit(kind="fit", of=flash).draw(20, np.random.default_rng(0))
    assert [rows.count for rows in fitted] == [60, 60, 30]
    assert {*drawn.numbers} == {"compute", "downlink"}
    assert drawn.windows is not None


def test_a_preset_is_compared_with_devices_drawn_anew() -> None:
    """No device and no times up are in both halves."""
    ((one, other),) = Fit(kind="fit", of=Preset(kind="preset", name="phones")).halves(np.random.default_rng(0))
    assert not {*one.numbers["compute"].tolist()} & {*other.numbers["compute"].tolist()}
    assert one.windows is not None
    assert other.windows is not None
    assert not {*one.windows.up.tolist()} & {*other.windows.up.tolist()} - {0.0}


def test_kendall_equals_counting_pairs() -> None:
    """tau-b by its definition, with ties, in plain loops."""
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, 6, 40).astype(float), rng.integers(0, 5, 40).astype(float)
    total, ties_x, ties_y, pairs = 0.0, 0, 0, 0
    for one in range(40):
        for other in range(one):
            total += np.sign(x[one] - x[other]) * np.sign(y[one] - y[other])
            ties_x += x[one] == x[other]
            ties_y += y[one] == y[other]
            pairs += 1
    expected = total / math.sqrt((pairs - ties_x) * (pairs - ties_y))
    assert kendall([x, y])[0, 1] == pytest.approx(expected)
    assert kendall([x, np.ones(40)])[0, 1] == 0.0


def test_devices_lie_within_the_table() -> None:
    """Classes stay classes; the range of a column is that of the rows; a device's trace has its share."""
    (table,) = Made(rows=500).tables()
    drawn = Copula.of(table).draw(30_000, np.random.default_rng(0))
    assert {*drawn.numbers["downlink"].tolist()} == {1e6, 1e7, 1e8}
    assert len({*drawn.numbers["compute"].tolist()}) > 25_000
    for name, values in drawn.numbers.items():
        assert table.numbers[name].min() <= values.min() <= values.max() <= table.numbers[name].max()
    assert {*drawn.trace.tolist()} <= {*table.trace.tolist()}  # type: ignore[union-attr]


def test_what_cannot_be_fitted(tmp_path: Path) -> None:
    """Each with the reason."""
    (tmp_path / "devices.csv").write_text("step,up,share\n" + "1,2,1\n" * 20 + "2,,1\n")
    of: dict[str, Any] = {"kind": "file", "file": str(tmp_path / "devices.csv"), "columns": {"compute": "step"}}
    for changes, message in [
        ({"columns": {"compute": "step", "uplink": "up"}}, "rows without empty cells; 1 of 21 lack uplink"),
        ({"columns": {"compute": "step", "weight": "share"}}, "a fit counts all rows alike"),
        ({"time_unit": "hours"}, "time_unit is seconds, and of.time_unit hours: must be the same"),
    ]:
        with pytest.raises(ValueError, match=message):
            Fit.model_validate({"kind": "fit", "of": {**of, **changes}})
    (tmp_path / "devices.csv").write_text("step\n1\n2\n")
    with pytest.raises(ValueError, match="at least 10 rows; there are 2"):
        Fit.model_validate({"kind": "fit", "of": of})


def test_a_fit_of_a_preset() -> None:
    """The generator takes the place of the table, with its columns."""
    fit = Fit(kind="fit", of=Preset(kind="preset", name="phones", only=("compute", "availability")))
    assert fit.offers == {"compute", "availability"}
    drawn = fit.draw(3000, np.random.default_rng(2))
    assert {*drawn.numbers} == {"compute"}
    assert len({*drawn.numbers["compute"].tolist()}) > 2900
    assert isinstance(fit.of, BasePopulation)
    assert not isinstance(fit.of, FilePopulation)
