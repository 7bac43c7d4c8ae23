"""The figure of devices: what it shows are the devices of the run; without their files there is none."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from coband.simulator.analysis.devices import devices_of
from coband.simulator.analysis.report.population import draw
from coband.simulator.core.plan import settled
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.experiments.runs.job import plan
from coband.simulator.experiments.scenario.loading import loads

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
    assert devices is not None
    run = settled(plan(scenario, "random"), Streams(3, 0)).agents
    times = [run.compute.of(agent).mean for agent in range(30)]
    np.testing.assert_array_equal(devices.numbers["compute"], times)
    assert devices.hours is not None
    assert len(devices.hours) == 24
    turns, links, hours = draw(devices).axes
    assert [axis.get_title() for axis in (turns, links, hours)] == [
        "time of a turn",
        "bits per time unit",
        "availability",
    ]
    np.testing.assert_array_equal(turns.lines[0].get_xdata(), np.sort(times))


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
