"""What a simulated trace of known distributions says about them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml

from coband.simulator.analysis.fit.estimation import Estimates, estimates, lines
from coband.simulator.analysis.fit.samples import Samples, samples
from coband.simulator.analysis.traces.reading import TraceReader
from coband.simulator.experiments.runs.driver import drive
from coband.simulator.experiments.runs.study import study_of
from coband.simulator.experiments.scenario.loading import loads
from coband.simulator.experiments.store import directory
from coband.simulator.experiments.store.store import open_run

TEXT = """
name: known
seed: 3
replications: 1
agents:
  count: 8
  compute: {kind: shifted_exponential, shift: 0.2, rate: 2.0}
  stragglers: {fraction: 0.25, slowdown: 6}
schedule: {kind: rounds, turns: 60}
network: {latency: {kind: lognormal, median: 0.3, sigma: 0.4}, loss: 0.05}
problem: {kind: contextual, arms: {kind: ball, dimension: 3, count: 5}, reward: {kind: cosine}, noise: 0.1}
algorithms:
  - {algorithm: async_kernel_ucb, label: Async, alpha: 0.1, q: 0.2, threshold: 0.1}
"""


def measured(folder: Path, *changes: str) -> Samples:
    study = study_of(loads(TEXT, overrides=changes))
    drive(study, directory.create(study.name, folder / "run"))
    with open_run(folder / "run") as stored:
        return samples(TraceReader(stored.jobs[0]))


def within(found: Estimates, name: str, **truth: float) -> None:
    fitted = found.compute if name == "compute" else found.latency["all"]
    assert fitted is not None
    for key, value in truth.items():
        low, high = fitted.intervals[key]
        assert low <= value <= high


def test_compute_latency_loss_and_stragglers_are_recovered(tmp_path: Path) -> None:
    found = estimates(measured(tmp_path))
    assert found.compute is not None
    assert (found.compute.kind, found.latency["all"].kind) == ("shifted_exponential", "lognormal")
    within(found, "compute", shift=0.2, rate=2.0)
    within(found, "latency", median=0.3, sigma=0.4)
    assert found.loss is not None
    assert found.loss.interval[0] <= 0.05 <= found.loss.interval[1]
    assert found.stragglers is not None
    assert found.stragglers.fraction == 0.25
    assert found.stragglers.interval[0] <= 6 <= found.stragglers.interval[1]
    assert found.bandwidth is None


def test_turns_that_absences_interrupt_take_no_longer(tmp_path: Path) -> None:
    found = estimates(measured(tmp_path, "agents.availability={kind: markov_on_off, mean_up: 5, mean_down: 3}"))
    assert found.compute is not None
    assert found.compute.kind == "shifted_exponential"
    within(found, "compute", shift=0.2, rate=2.0)


def test_bandwidth_is_told_from_latency(tmp_path: Path) -> None:
    changes = ("network.bandwidth=300", "network.loss=0", "network.latency={kind: gamma, shape: 3, scale: 0.1}")
    found = estimates(measured(tmp_path, *changes))
    assert found.bandwidth is not None
    assert found.bandwidth.interval[0] <= 300 <= found.bandwidth.interval[1]
    assert found.latency["all"].kind == "gamma"
    within(found, "latency", shape=3.0, scale=0.1)


def test_directions_that_differ_have_a_latency_each(tmp_path: Path) -> None:
    links = "network.links=[{direction: up, latency: {kind: uniform, low: 0.1, high: 0.2}}]"
    found = estimates(measured(tmp_path, links, "network.latency={kind: exponential, rate: 3}", "network.loss=0"))
    assert found.latency["up"].kind == "uniform"
    assert found.latency["down"].kind == "exponential"
    written = yaml.safe_load("\n".join(lines(found)))
    assert [rule["direction"] for rule in written["network"]["links"]] == ["up", "down"]


def test_the_lines_are_part_of_a_scenario(tmp_path: Path) -> None:
    written = yaml.safe_load("\n".join(lines(estimates(measured(tmp_path)))))
    document = yaml.safe_load(TEXT)
    document["agents"] = {"count": 8} | written["agents"]
    document["network"] = written["network"]
    again = loads(yaml.safe_dump(document))
    assert again.network.loss == pytest.approx(0.05, abs=0.03)
    assert again.agents.stragglers is not None


def test_without_delays_all_is_zero(tmp_path: Path) -> None:
    changes = ("agents.compute=0", "agents.stragglers=null", "network.latency=0", "network.loss=0")
    found = estimates(measured(tmp_path, *changes))
    assert found.compute is not None
    assert found.compute.parameters == {"value": 0.0}
    assert found.latency["all"].parameters == {"value": 0.0}
    assert found.listed()["compute"]["aic"] is None


def test_too_little_gives_no_lines() -> None:
    assert list(lines(estimates(Samples()))) == []


def test_ways_of_other_latencies_and_sizes_make_no_bandwidth() -> None:
    rng, found = np.random.default_rng(0), Samples()
    for _ in range(300):
        found.delays["up"].append((float(rng.exponential(1.0)), int(rng.choice([10, 20, 30]))))
        found.delays["down"].append((float(rng.exponential(5.0)), int(rng.choice([1000, 2000, 3000]))))
    made = estimates(found)
    assert made.bandwidth is None
    assert made.latency["down"].intervals["rate"][0] < 0.2 < made.latency["down"].intervals["rate"][1]
