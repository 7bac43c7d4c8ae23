"""The figure of devices: what it shows are the devices of the run; without their files there is none."""

from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest

import coband
from coband.simulator.analysis.devices import Devices, devices_of
from coband.simulator.analysis.report import data
from coband.simulator.analysis.report.analysis import Analysis
from coband.simulator.analysis.report.devices import Fate, draw, fates_table, found_in, groupings, population_figure
from coband.simulator.analysis.report.drawing import styled
from coband.simulator.analysis.report.palette import line_style
from coband.simulator.core.plan import settled
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.experiments.runs.job import plan
from coband.simulator.experiments.scenario.loading import loads
from coband.simulator.experiments.store.store import open_run
from tests.every import every
from tests.everyday import slow

SCENARIO = """\
name: fleet
seed: 3
agents: {{count: 30, population: {population}}}
schedule: {{kind: rounds, turns: 2}}
problem: {{kind: contextual, arms: {{kind: ball, dimension: 3, count: 5}}, reward: {{kind: square}}}}
algorithms: [{{algorithm: fed_lin_ucb}}]
"""


def test_the_figure_shows_the_devices_of_the_run() -> None:
    """A panel for turns, one for links and one for hours, with the numbers that the run has."""
    scenario = loads(SCENARIO.format(population="{kind: preset, name: phones}"))
    devices = devices_of(scenario.resolved())
    run = settled(plan(scenario, "random"), Streams(3, 0)).agents
    times = [run.compute.of(agent).mean for agent in range(30)]
    np.testing.assert_array_equal(devices.numbers["compute"], times)
    assert len(devices.hours) == 24
    turns, links, hours = draw(devices).axes
    expected = ["time of a turn", "bits per time unit", "availability"]
    assert [axis.get_title() for axis in (turns, links, hours)] == expected
    np.testing.assert_array_equal(turns.lines[0].get_xdata(), np.sort(times))


def test_what_became_of_devices_is_known_without_batteries_too(tmp_path: Path) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_text(SCENARIO.format(population="{kind: preset, name: phones, time_unit: minutes}"))
    run = coband.run(file, out=tmp_path / "run", workers=1)
    with open_run(tmp_path / "run") as opened:
        analysis = Analysis(data.load([opened]))
        (fate,), table = found_in(analysis)[1], fates_table(analysis)
    assert fate.energy is None
    assert np.nansum(2 * fate.regret) == pytest.approx(run.results["regret"][0])
    assert table.header == ("label", "fastest", "slowest", "seldom up", "mostly up")


def test_below_devices_stands_what_became_of_them(tmp_path: Path) -> None:
    """Regret per turn by fifths of turn times and of availability, and who has run out; the table has the same."""
    energy = "{kind: preset, name: phones, time_unit: minutes}, energy: {capacity: 90, per_turn: 80, "
    energy += "recharge: {kind: rate, power: 1}}"
    file = tmp_path / "fleet.yaml"
    file.write_text(SCENARIO.format(population=energy))
    coband.run(file, out=tmp_path / "run", workers=1)
    with open_run(tmp_path / "run") as opened:
        analysis = Analysis(data.load([opened]))
        devices, (fate,) = found_in(analysis)
        drawn, table = population_figure(analysis), fates_table(analysis)
    axes = drawn.axes
    expected = ["regret and speed", "regret and availability", "share that has run out of energy"]
    assert [axis.get_title() for axis in axes[3:]] == expected
    groups = groupings(devices)
    assert {name: np.bincount(of).tolist() for name, of in groups.items()} == {"slow": [6] * 5, "there": [6] * 5}
    slowest = np.argsort(devices.numbers["compute"])[-6:]
    by_hand = np.nanmean(fate.regret[slowest])
    assert axes[3].lines[0].get_ydata()[-1] == pytest.approx(by_hand)
    row = dict(zip(table.header, table.rows[0], strict=True))
    assert row["slowest"] == f"{by_hand:.3g}"
    assert row["ran out"] == str(np.isfinite(fate.ran_out).sum())


SAID = ("compute", "speed", "latency", "uplink", "battery", "capacity")


def _fate(energy: bool, agents: int) -> Fate:
    taken = np.ones(agents) if energy else None
    return Fate("FedLin", line_style(0), np.ones(agents), taken, np.full(agents, np.nan), 10.0)


ROWS = [*(SAID[:end] for end in range(1, 7)), *(SAID[start:] for start in range(1, 6))]
PANELS = list(product(ROWS, (False, True), (False, True)))


@every("said, hours, energy", [one if place % 7 == 0 else slow(one) for place, one in enumerate(PANELS)])
def test_no_panel_lies_over_another(said: tuple[str, ...], hours: bool, energy: bool) -> None:
    """Whatever devices say and whatever became of them, so that rows have different numbers of panels."""
    values = np.linspace(0.1, 0.9, 20)
    day = (np.full(24, 0.5), values) if hours else (None, None)
    with styled():
        drawn = draw(Devices(dict.fromkeys(said, values), *day), [_fate(energy, len(values))])
        layout = drawn.get_layout_engine()
        layout.execute(drawn)
        boxes = [axis.get_tightbbox() for axis in drawn.axes] + [legend.get_window_extent() for legend in drawn.legends]
    assert len(drawn.axes) == len(said) + hours + ("compute" in said) + hours + energy
    assert not [pair for pair in combinations(boxes, 2) if pair[0].overlaps(pair[1])]


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


def test_where_no_drawn_device_says_when_it_is_up_a_sentence_says_so(tmp_path: Path) -> None:
    (tmp_path / "windows.csv").write_text("id,up,down\na,0,10\n")
    (tmp_path / "devices.csv").write_text("seconds,id,often\n1,,1\n2,a,0\n")
    file = f"kind: file, file: {tmp_path}/devices.csv, windows_file: {tmp_path}/windows.csv"
    columns = "{compute: seconds, availability: id, weight: often}"
    devices = devices_of(loads(SCENARIO.format(population=f"{{{file}, columns: {columns}}}")).resolved())
    assert np.isnan(devices.hours).all()
    hours = draw(devices).axes[-1]
    assert [text.get_text() for text in hours.texts] == ["no device says\nwhen it is up"]
    assert not hours.patches
