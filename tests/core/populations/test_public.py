"""Public measurements: FLASH as FLHetBench has it, and FedScale's pickles, also a malicious one."""

import json
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coband.simulator.core.populations.kinds import FedScale, Flash, Preset, presets
from tests.data_files import data_file


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    says = (
        r"does not exist; give a file of FLASH or FLHetBench, there or in the directory of downloads \(\$COBAND_DATA\)"
    )
    with pytest.raises(ValueError, match=says):
        Flash(kind="flash", latency_file=str(tmp_path / "none.json"))


def test_flash() -> None:
    """Every number of the real files once more, in plain loops; what cannot be is dropped and said."""
    files = {
        name: data_file(f"flhetbench/{name}.json") for name in ("cached_timers", "training_latency", "device_speeds")
    }
    given = {"availability_file": str(files["cached_timers"]), "latency_file": str(files["training_latency"])}
    settings: dict[str, Any] = {
        "kind": "flash",
        **given,
        "speed_file": str(files["device_speeds"]),
        "uplink_share": 0.25,
    }
    with pytest.raises(ValueError, match=r"296 of 1,000 rows are bad: row 4: phone 451: has no trace; "):
        Flash(**settings)
    flash = Flash(**settings, on_bad_row="drop")
    assert "19 of 997 rows are bad" in flash.dropped
    assert flash.offers == {"availability", "compute", "uplink", "downlink"}
    fleet = flash.draw(5000, np.random.default_rng(0))
    steps = {row["ResNet Latency"] / 1e3 for row in json.loads(files["training_latency"].read_text())} - {0.0}
    assert {*fleet.numbers["compute"].tolist()} <= steps
    means = [np.mean(row["tcp_speed_results"]) * 1e3 for row in json.loads(files["device_speeds"].read_text())]
    assert {*fleet.numbers["downlink"].tolist()} == {*means}
    np.testing.assert_allclose(fleet.numbers["uplink"], fleet.numbers["downlink"] / 4)
    shares = []
    for row in json.loads(files["cached_timers"].read_text()).values():
        length = sum(down - up for up, down in row["ready_time"])
        if length:
            shares.append(length / (row["trace_end"] - row["trace_start"]))
    assert len(shares) == 704
    assert fleet.windows is not None
    found = fleet.windows.shares()
    np.testing.assert_allclose(np.sort(found[found > 0]), np.sort(shares), rtol=1e-9)
    assert fleet.by_hour(flash.day).mean() == pytest.approx(np.mean(fleet.shares), rel=1e-9)


def test_a_file_of_another_format(tmp_path: Path) -> None:
    """It is said which key the file does not fit."""
    (tmp_path / "rows.json").write_text('[{"id": 3}]')
    for key in ("availability_file", "speed_file"):
        with pytest.raises(ValueError, match=f"does not have the format of {key}"):
            Flash.model_validate({"kind": "flash", key: str(tmp_path / "rows.json")})
    with pytest.raises(ValueError, match="row 1: has no ResNet Latency"):
        Flash(kind="flash", latency_file=str(tmp_path / "rows.json"))
    with pytest.raises(ValueError, match="give at least one of"):
        Flash(kind="flash")


DEVICES = {7: {"computation": 100.0, "communication": 800.0}, 8: {"computation": 50.0, "communication": 8000.0}}
BEHAVIOUR = {
    7: {"duration": 10, "active": [10, 50], "inactive": [20, 90], "finish_time": 100, "model": "CPH1801"},
    9: {"duration": 10, "active": [0], "inactive": [20], "finish_time": 100, "model": "A"},
}


def test_fedscale(tmp_path: Path) -> None:
    """Both pickles joined by id: three times the time of a sample, one rate both ways, windows that repeat."""
    for name, table in (("devices", DEVICES), ("behaviour", BEHAVIOUR)):
        (tmp_path / name).write_bytes(pickle.dumps(table))
    both = FedScale(kind="fedscale", device_file=str(tmp_path / "devices"), behaviour_file=str(tmp_path / "behaviour"))
    fleet = both.table()
    assert {name: values.tolist() for name, values in fleet.numbers.items()} == {
        "compute": [pytest.approx(0.3)],
        "uplink": [800e3],
        "downlink": [800e3],
    }
    assert fleet.windows is not None
    away = fleet.windows.absences(0)
    assert [next(away) for _ in range(3)] == [(0, 10), (20, 50), (90, 110)]
    alone = FedScale(kind="fedscale", device_file=str(tmp_path / "devices"), samples=10, time_unit="minutes").table()
    assert alone.numbers["compute"].tolist() == pytest.approx([3.0 / 60, 1.5 / 60])
    with pytest.raises(ValueError, match="give device_file, behaviour_file or both"):
        FedScale(kind="fedscale")


class Malicious:
    """Runs a command when it is unpickled."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self._file}",)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_malicious_pickle_is_refused_and_runs_nothing(protocol: int, tmp_path: Path) -> None:
    """Also where it hides inside a table; a plain unpickler runs the same pickle."""
    touched, file = tmp_path / "touched", tmp_path / "devices"
    file.write_bytes(pickle.dumps({7: {"computation": Malicious(touched), "communication": 1.0}}, protocol))
    with pytest.raises(ValueError, match=r"asks for \w+\.system.*can run code and are refused"):
        FedScale(kind="fedscale", device_file=str(file))
    assert not touched.exists()
    pickle.loads(file.read_bytes())
    assert touched.exists()


def test_what_is_no_pickle_of_fedscale(tmp_path: Path) -> None:
    """Damaged, of numpy, or of another shape."""
    for content, message in [
        (b"\x80\x04nonsense", "is not a pickle of only numbers and text"),
        (pickle.dumps(np.zeros(3)), "asks for numpy"),
        (pickle.dumps([1, 2]), "must hold a dict of dicts"),
        (pickle.dumps({1: {"speed": 3}}), "does not have FedScale's format"),
        (pickle.dumps({1: {"computation": 0.0, "communication": 1.0}}), "row 1: computation is 0"),
    ]:
        (tmp_path / "devices").write_bytes(content)
        with pytest.raises(ValueError, match=message):
            FedScale(kind="fedscale", device_file=str(tmp_path / "devices"))


@pytest.mark.parametrize("name", presets())
def test_presets(name: str) -> None:
    """They draw what their sources say, and each number has one."""
    kit = presets()[name]
    fleet = Preset(kind="preset", name=name).draw(20_000, np.random.default_rng(1))
    for key, classes in kit.numbers.items():
        assert all(len(drawn.source) > 20 for drawn in classes)
        expected = np.average(
            [
                np.mean(np.convolve(one.quantiles, [0.5, 0.5], "valid") if len(one.quantiles) > 1 else one.quantiles)
                for one in classes
            ],
            weights=kit.shares,
        )
        assert fleet.numbers[key].mean() == pytest.approx(expected, rel=0.05)
    assert (fleet.windows is None) == (kit.away is None)
    if kit.away is not None:
        share = (
            np.mean(np.convolve(kit.away.share.quantiles, [0.5, 0.5], "valid"))
            if len(kit.away.share.quantiles) > 1
            else kit.away.share.quantiles[0]
        )
        assert fleet.shares.mean() == pytest.approx(share, rel=0.15)
        assert len(kit.away.source) > 20
