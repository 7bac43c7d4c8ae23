"""Runs with devices: the same as with the keys that the devices stand for, and checked in full."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coband.simulator.core.clock.clock import Clock
from coband.simulator.core.hosts.batteries import Batteries
from coband.simulator.core.plan import Plan, settled
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.core.result import RunResult
from coband.simulator.experiments.runs.job import Job, built, plan
from coband.simulator.experiments.scenario.loading import loads
from coband.simulator.scenario_errors import ScenarioError

TABLE = "step,speed,up,down,delay,trace\n0.5,1,6400,64000,0.1,day\n0.25,2,,6400,0.3,night\n1,0.5,640,640,,\n"
WINDOWS = "id,up,down\nday,0,8\nnight,5,12\n"
SCENARIO = """\
name: fleet
seed: 3
checks: full
trace: full
agents: {agents}
schedule: {{kind: rounds, turns: 20}}
network: {network}
problem: {{kind: contextual, arms: {{kind: ball, dimension: 3, count: 5}}, reward: {{kind: square}}}}
algorithms: [{{algorithm: {algorithm}}}]
"""
POPULATION = (
    "population: {kind: file, file: devices.csv, order: in_order, windows_file: windows.csv, repeat_after: 12, "
    "columns: {compute: step, speed: speed, uplink: up, downlink: down, latency: delay, availability: trace}}"
)


def _result(folder: Path, agents: str, network: str, algorithm: str, settings: tuple[str, ...] = ()) -> RunResult:
    (folder / "devices.csv").write_text(TABLE)
    (folder / "windows.csv").write_text(WINDOWS)
    text = SCENARIO.format(agents=agents, network=network, algorithm=algorithm)
    scenario = loads(text, overrides=settings, base=folder)
    entry = scenario.algorithms[0].label
    return built(Job(0, entry, entry, 0, scenario.seed, "off"), scenario).run()


def _written_out(folder: Path) -> tuple[str, str]:
    """The keys that the devices of the table stand for; turns and speeds need one number for all."""
    times = "agent,up,down\n" + "".join(
        f"0,{12 * day},{12 * day + 8}\n1,{12 * day + 5},{12 * day + 12}\n" for day in range(99)
    )
    (folder / "times.csv").write_text(times)
    links = (
        "{agents: [0], direction: up, bandwidth: {bits: 6400}}, "
        "{agents: [0], direction: down, bandwidth: {bits: 64000}}, "
        "{agents: [1], direction: down, bandwidth: {bits: 6400}}, {agents: [2], bandwidth: {bits: 640}}, "
        "{agents: [0], latency: 0.1}, {agents: [1], latency: 0.3}"
    )
    return "availability: {kind: trace, file: times.csv}", f"{{latency: 0.2, bandwidth: 1000, links: [{links}]}}"


@pytest.mark.parametrize("algorithm", ["fed_lin_ucb", "async_kernel_ucb", "dis_lin_ucb"])
def test_devices_do_what_the_same_keys_do(algorithm: str, tmp_path: Path) -> None:
    """Links, availability and latency by device give the run in which they are written out agent by agent."""
    only = "only: [uplink, downlink, latency, availability], "
    devices = POPULATION.replace("{kind", "{" + only + "kind", 1)
    agents = "{{count: 3, compute: 0.5, {}}}"
    availability, network = _written_out(tmp_path)
    found = _result(tmp_path, agents.format(devices), "{latency: 0.2, bandwidth: 1000}", algorithm)
    expected = _result(tmp_path, agents.format(availability), network, algorithm)
    assert found.fingerprint == expected.fingerprint
    assert found.by_agent == expected.by_agent


def test_turns_take_the_time_of_the_device(tmp_path: Path) -> None:
    """compute / speed of each row, checked in full; the last turn ends when the slowest device is ready."""
    devices = POPULATION.replace("{kind", "{only: [compute, speed], kind", 1)
    found = _result(tmp_path, f"{{count: 3, compute: 9, {devices}}}", "{}", "fed_lin_ucb")
    assert found.simulated_time >= 20 * max(0.5 / 1, 0.25 / 2, 1 / 0.5)
    equal = _result(tmp_path, "{count: 3, compute: 2}", "{}", "fed_lin_ucb")
    assert found.turns == equal.turns == 60


@pytest.mark.parametrize("algorithm", ["coop_kernel_ucb", "one_kernel_ucb", "push_gossip_kernel_ucb"])
def test_devices_on_a_graph(algorithm: str, tmp_path: Path) -> None:
    """A link between two agents has the sum of their latencies and the smaller of their bandwidths."""
    devices = POPULATION.replace("{kind", "{only: [compute, uplink, downlink, latency], kind", 1)
    network = "{topology: line, latency: 0.2}"
    settings = () if algorithm != "one_kernel_ucb" else ("network.topology=star",)
    found = _result(tmp_path, f"{{count: 3, {devices}}}", network, algorithm, settings)
    assert found.turns == 60
    made = _plan(tmp_path, devices, network)
    latency, bandwidth = made.network.latency, made.network.bandwidth
    assert latency.between(0, 1).mean == pytest.approx(0.4)
    assert latency.between(1, 2).mean == 0.2  # device 2 does not say
    assert bandwidth.between(0, 1).bits == 6400
    assert bandwidth.between(1, 2).bits == 640
    assert bandwidth.between(1, -1) is None  # device 1 does not say how fast its uplink is, nor does the scenario


def _plan(folder: Path, devices: str, network: str) -> Any:
    scenario = loads(
        SCENARIO.format(agents=f"{{count: 3, {devices}}}", network=network, algorithm="coop_kernel_ucb"), base=folder
    )
    made: Plan = settled(plan(scenario, "random"), Streams(3, 0))
    assert made.agents.population is None
    return made


def test_each_replication_draws_its_devices(tmp_path: Path) -> None:
    """With the seed: the same for the same replication, others for another one."""
    (tmp_path / "devices.csv").write_text(TABLE)
    devices = "population: {kind: preset, name: phones, only: [compute]}"
    text = SCENARIO.format(agents=f"{{count: 8, {devices}}}", network="{}", algorithm="fed_lin_ucb")
    made = plan(loads(text), "random")
    times = [settled(made, Streams(3, replication)).agents.compute for replication in (0, 0, 1)]
    drawn = [np.array([one.of(agent).mean for agent in range(8)]) for one in times]
    assert (drawn[0] == drawn[1]).all()
    assert (drawn[0] != drawn[2]).any()


def test_dropped_rows_are_said_with_the_result(tmp_path: Path) -> None:
    """A row that was left out is a warning of the run."""
    bad = TABLE.replace("0.25,2", "0,2")
    (tmp_path / "bad.csv").write_text(bad)
    devices = "population: {kind: file, file: bad.csv, on_bad_row: drop, columns: {compute: step}}"
    found = _result(tmp_path, f"{{count: 3, {devices}}}", "{}", "fed_lin_ucb")
    assert any("agents.population: dropped: " in text and "row 2: step is 0" in text for text in found.warnings)


MISTAKES = {
    "{count: 4, " + POPULATION + "}": "agents.population: has 3 rows for 4 agents; give order: sampled",
    "{count: 2, population: {kind: preset, name: ships}}": "agents.population.name: 'ships' is not allowed: must be",
    "{count: 2, population: {kind: preset, name: phones, only: [speed]}}": "agents.population."
    "only: these devices do not say speed; they say compute, downlink, availability",
    "{count: 2, population: {kind: fleet}}": "known: file, flash, fedscale, preset",
}


@pytest.mark.parametrize("agents", MISTAKES)
def test_mistakes_are_said_with_their_place(agents: str, tmp_path: Path) -> None:
    """Before anything runs."""
    with pytest.raises(ScenarioError) as refused:
        _result(tmp_path, agents, "{}", "fed_lin_ucb")
    assert MISTAKES[agents] in str(refused.value)


UNIT = "since agents.population.time_unit says what a unit of simulated time stands for; give both the same"
PACKETS = "{kind: packets, file: times"
UNITS = {
    f"{{bandwidth: {PACKETS}}}}}": f"network.bandwidth.time_unit: seconds is not allowed: must be minutes, {UNIT}",
    f"{{bandwidth: {PACKETS}, time_unit: minutes}}}}": "",
    f"{{server: {{uplink: {PACKETS}, time_unit: hours}}}}}}": "network.server.uplink.time_unit: hours is not allowed",
    f"{{links: [{{bandwidth: {PACKETS}, time_unit: days}}}}]}}": "network.links[0].bandwidth.time_unit: days is not",
}


@pytest.mark.parametrize("network", UNITS)
def test_one_unit_of_time_for_devices_and_recorded_links(network: str, tmp_path: Path) -> None:
    """Also where one of the two units is that by default."""
    (tmp_path / "times").write_text("1\n2\n")
    agents = "{count: 2, population: {kind: preset, name: phones, time_unit: minutes}}"
    if UNITS[network]:
        with pytest.raises(ScenarioError) as refused:
            _result(tmp_path, agents, network, "fed_lin_ucb")
        assert UNITS[network] in str(refused.value)
    else:
        assert _result(tmp_path, agents, network, "fed_lin_ucb").turns == 40
    twice = f"{{bandwidth: {PACKETS}}}, links: [{{bandwidth: {PACKETS}, time_unit: days}}}}]}}"
    with pytest.raises(ScenarioError, match="must be seconds, since network.bandwidth.time_unit says"):
        _result(tmp_path, "{count: 2}", twice, "fed_lin_ucb")


BATTERIES = "step,left,joules\n1,30,\n2,100,700\n0.5,,900\n1,0,50\n"
POWERED = (
    "population: {kind: file, file: batteries.csv, order: in_order, units: {battery: percent}, "
    "columns: {compute: step, battery: left, capacity: joules}}"
)


def test_batteries_are_those_of_the_row(tmp_path: Path) -> None:
    """Level and capacity of each, from the scenario where a cell is empty; and so are the results."""
    (tmp_path / "batteries.csv").write_text(BATTERIES)
    energy = "energy: {capacity: 500, level: 0.6, per_turn: 10, recharge: {kind: rate, power: 1}}"
    text = SCENARIO.format(agents=f"{{count: 4, {POWERED}, {energy}}}", network="{}", algorithm="fed_lin_ucb")
    made = settled(plan(loads(text, base=tmp_path), "random"), Streams(3, 0)).agents
    assert made.energy is not None
    batteries = Batteries(made.energy, 4, Streams(3, 0), Clock())
    assert [batteries.of(agent).first for agent in range(4)] == pytest.approx([150, 700, 540, 0])
    found = _result(tmp_path, f"{{count: 4, {POWERED}, {energy}}}", "{}", "fed_lin_ucb")
    assert found.by_agent[3]["ran_out"] == 0.0
    assert found.by_agent[1]["ran_out"] is None
    plain = _result(
        tmp_path,
        f"{{count: 4, {POWERED.replace('{kind', '{only: [compute], kind', 1)}, {energy}}}",
        "{}",
        "fed_lin_ucb",
    )
    assert plain.by_agent[3]["ran_out"] is None


def test_batteries_that_cannot_be_are_refused_by_row(tmp_path: Path) -> None:
    """And batteries of devices where agents have none."""
    (tmp_path / "batteries.csv").write_text(BATTERIES.replace("100,700", "140,0"))
    energy = "energy: {capacity: 500}"
    with pytest.raises(ScenarioError) as refused:
        _result(tmp_path, f"{{count: 4, {POWERED}, {energy}}}", "{}", "fed_lin_ucb")
    assert "row 2: left is 140: must be >= 0 and at most 1 of the capacity" in str(refused.value)
    (tmp_path / "batteries.csv").write_text(BATTERIES.replace("900", "-900"))
    with pytest.raises(ScenarioError, match="row 3: joules is -900: must be > 0 and at most 1,000,000,000,000 joules"):
        _result(tmp_path, f"{{count: 4, {POWERED}, {energy}}}", "{}", "fed_lin_ucb")
    (tmp_path / "batteries.csv").write_text(BATTERIES)
    with pytest.raises(
        ScenarioError, match="devices say their battery and capacity, but agents have no batteries; give"
    ):
        _result(tmp_path, f"{{count: 4, {POWERED}}}", "{}", "fed_lin_ucb")


def test_scenarios_without_batteries_of_devices_are_what_they_were(tmp_path: Path) -> None:
    """Keys that are not given are not in the resolved scenario, from which addresses of results follow."""
    (tmp_path / "batteries.csv").write_text(BATTERIES)
    (tmp_path / "devices.csv").write_text(TABLE)
    (tmp_path / "windows.csv").write_text(WINDOWS)
    for devices, said in ((POPULATION, False), (POWERED + ", energy: {capacity: 5}", True)):
        text = SCENARIO.format(agents=f"{{count: 3, {devices}}}", network="{}", algorithm="fed_lin_ucb")
        population: Any = loads(text, base=tmp_path).resolved()["agents"]
        keys = {*population["population"]["columns"], *population["population"]["units"]}
        assert ("battery" in keys, "capacity" in keys) == (said, said)
