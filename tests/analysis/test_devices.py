"""The panels of devices: what they show are the devices of the run; without their files there are none."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import coband
from coband.simulator.analysis.comparison import data
from coband.simulator.analysis.comparison.analysis import Analysis
from coband.simulator.analysis.devices import devices_of, groupings
from coband.simulator.analysis.report.catalogue import panel
from coband.simulator.core.plan import settled
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.experiments.runs.job import plan
from coband.simulator.experiments.scenario.loading import loads
from coband.simulator.experiments.store.store import open_run

SCENARIO = """\
name: fleet
seed: 3
agents: {{count: 30, population: {population}}}
schedule: {{kind: rounds, turns: 2}}
problem: {{kind: contextual, arms: {{kind: ball, dimension: 3, count: 5}}, reward: {{kind: square}}}}
algorithms: [{{algorithm: fed_lin_ucb}}]
"""


def performed(folder: Path, population: str, name: str = "run", agents: int = 30) -> coband.Run:
    file = folder / "fleet.yaml"
    file.write_text(SCENARIO.format(population=population).replace("count: 30", f"count: {agents}"))
    return coband.run(file, out=folder / name, workers=1)


def test_the_panels_show_the_devices_of_the_run(tmp_path: Path) -> None:
    """One for turns, one for links and one for hours, with the numbers that the run has."""
    phones = "{kind: preset, name: phones}"
    scenario = loads(SCENARIO.format(population=phones))
    devices = devices_of(scenario.resolved())
    run = settled(plan(scenario, "random"), Streams(3, 0)).agents
    times = [run.compute.of(agent).mean for agent in range(30)]
    np.testing.assert_array_equal(devices.numbers["compute"], times)
    frame = performed(tmp_path, phones).plot.frame("devices")
    assert list(dict.fromkeys(frame["number"])) == ["time of a turn", "bits per time unit"]
    assert frame["value"][frame["part"] == "compute"].tolist() == sorted(times)
    hours = coband.load(tmp_path / "run").plot.frame("availability")
    np.testing.assert_allclose(hours["mean"], devices.hours)
    for name in ("devices", "availability", "fates"):
        getattr(coband.load(tmp_path / "run").plot, name)()
    assert "median" in coband.load(tmp_path / "run").report(out=tmp_path / "report.html").read_text(encoding="utf-8")


def test_what_became_of_devices_is_known_without_batteries_too(tmp_path: Path) -> None:
    run = performed(tmp_path, "{kind: preset, name: phones, time_unit: minutes}")
    fates = run.plot.frame("fates")
    assert list(dict.fromkeys(fates["by"])) == ["speed", "availability"]
    speed = fates["mean"][fates["by"] == "speed"]
    assert 2 * 6 * speed.sum() == pytest.approx(run.results["regret"][0])
    assert run.plot.frame("ran_out").empty


def test_regret_by_fifths_and_who_ran_out(tmp_path: Path) -> None:
    energy = "{kind: preset, name: phones, time_unit: minutes}, energy: {capacity: 90, per_turn: 80, "
    run = performed(tmp_path, energy + "recharge: {kind: rate, power: 1}}")
    with open_run(tmp_path / "run") as opened:
        analysis = Analysis(data.load([opened]))
        devices = devices_of(analysis.comparison.scenario_of(analysis.contenders[0]))
        fates, ran_out = (panel(name).numbers(analysis) for name in ("fates", "ran_out"))
    groups = groupings(devices)
    assert {name: np.bincount(of).tolist() for name, of in groups.items()} == {
        "speed": [6] * 5,
        "availability": [6] * 5,
    }
    slowest = np.argsort(devices.numbers["compute"])[-6:]
    agents = run.agents[run.agents["replication"] == 0]
    rates = (agents["regret"] / agents["turns"].where(agents["turns"] > 0)).to_numpy()
    last = fates[(fates["by"] == "speed") & (fates["fifth"] == 5)]["mean"].iloc[0]
    assert last == pytest.approx(np.nanmean(rates[slowest]))
    assert ran_out["mean"].iloc[-1] * 30 == pytest.approx(agents["ran_out"].notna().sum())
    assert ran_out["at"].is_monotonic_increasing


@pytest.mark.parametrize(("agents", "minutes"), [(20, ""), (30, ", time_unit: minutes")])
def test_each_run_has_its_own_devices(tmp_path: Path, agents: int, minutes: str) -> None:
    """Those of another run are more, or others."""
    runs = {
        "run": performed(tmp_path, "{kind: preset, name: phones}"),
        "other": performed(tmp_path, f"{{kind: preset, name: phones{minutes}}}", "other", agents),
    }
    with open_run(tmp_path / "run") as one, open_run(tmp_path / "other") as two:
        analysis = Analysis(data.load([one, two]))
        devices, hours, fates = (panel(name).numbers(analysis) for name in ("devices", "availability", "fates"))
    assert fates["mean"].tolist() == pd.concat([run.plot.frame("fates") for run in runs.values()])["mean"].tolist()
    for name, run in runs.items():
        own = run.plot.frame("devices")
        values = own["value"][own["part"] == "compute"].tolist()
        assert devices["value"][devices["part"] == f"compute ({name})"].tolist() == values
        assert hours["mean"][hours["run"] == name].tolist() == run.plot.frame("availability")["mean"].tolist()


def test_without_the_file_there_is_no_figure(tmp_path: Path) -> None:
    """A run can be read where its table is not."""
    file = tmp_path / "devices.csv"
    file.write_text("step\n1\n2\n")
    population = f"{{kind: file, file: {file}, columns: {{compute: step}}}}"
    resolved = loads(SCENARIO.format(population=population)).resolved()
    assert devices_of(resolved) is not None
    file.unlink()
    assert devices_of(resolved) is None
    assert devices_of({"agents": {"count": 3}}) is None


def test_where_no_drawn_device_says_when_it_is_up_there_is_no_panel(tmp_path: Path) -> None:
    (tmp_path / "windows.csv").write_text("id,up,down\na,0,10\n")
    (tmp_path / "devices.csv").write_text("seconds,id,often\n1,,1\n2,a,0\n")
    file = f"kind: file, file: {tmp_path}/devices.csv, windows_file: {tmp_path}/windows.csv"
    columns = "{compute: seconds, availability: id, weight: often}"
    run = performed(tmp_path, f"{{{file}, columns: {columns}}}")
    assert run.plot.frame("availability").empty
    assert len(run.plot.frame("devices")) == 30
