"""What ``coband describe`` says about communication is what runs send."""

from __future__ import annotations

import pytest

from coband.simulator.conformance import kit
from coband.simulator.conformance.runs import algorithm, batches, registry
from coband.simulator.experiments.registry.catalogue import describe

NAMES = sorted(registry().algorithms)
TALKING = [name for name in NAMES if registry().algorithms[name].messages]


@pytest.mark.parametrize("name", NAMES)
def test_every_algorithm_is_described_in_full(name: str) -> None:
    entry = algorithm(name)
    (item,) = (item for item in describe(name, registry()) if item["kind"] == "algorithm")
    assert item["counts"]
    assert bool(item["messages"]) == (item["counts"] != ["0 scalars"])
    assert {parameter["name"] for parameter in item["parameters"]} == set(entry.config.model_fields)
    assert all("default" in parameter or parameter["required"] for parameter in item["parameters"])


@pytest.mark.parametrize("name", sorted(registry().problems))
def test_every_problem_is_described_in_full(name: str) -> None:
    (item,) = (item for item in describe(name, registry()) if item["kind"] == "problem")
    assert item["summary"]
    assert item["reference"]
    assert {parameter["name"] for parameter in item["parameters"]} == set(
        registry().problems[name].config.model_fields
    ) - {"kind"}


@pytest.mark.parametrize("name", TALKING)
def test_runs_send_what_is_described(name: str) -> None:
    schedule = "phases" if batches(name) else "one_at_a_time"
    result = kit.simulate(name, {}, schedule, "constant", "fast", seed=1)
    described = {(kind, direction) for kind, direction, _ in algorithm(name).messages}
    assert set(result.result.ledger.by_kind) <= described
