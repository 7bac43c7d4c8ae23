"""What ``coband describe`` says about communication is what runs send."""

from __future__ import annotations

import pytest

from coband.simulator.conformance import kit
from coband.simulator.conformance.runs import algorithm, registry
from coband.simulator.core.algorithm import SILENT
from coband.simulator.core.formulas import names_in
from coband.simulator.experiments.registry.catalogue import describe
from coband.simulator.reference.sheets import Text, sheet
from tests.every import every

NAMES = sorted(registry().algorithms)
TALKING = [name for name in NAMES if registry().algorithms[name].messages]


@every("name", NAMES)
def test_every_algorithm_is_described_in_full(name: str) -> None:
    entry = algorithm(name)
    (item,) = (item for item in describe(name, registry()) if item["kind"] == "algorithm")
    assert item["counts"]
    assert bool(item["messages"]) == (entry.counts != SILENT)
    formulas = [formula for message in item["messages"] for formula in (message["scalars"], message["when"])]
    formulas += [formula for count in item["counts"] for formula in (count["formula"], count["when"])]
    named = {name for formula in formulas if formula for name in names_in(formula)}
    assert named <= set(item["where"]) | set(entry.config.model_fields) | {"schedule"}
    assert all(item["where"].values())
    assert [metric["name"] for metric in item["metrics"]] == [metric.name for metric in entry.metrics]
    assert {parameter["name"] for parameter in item["parameters"]} == set(entry.config.model_fields)
    assert all("default" in parameter or parameter["required"] for parameter in item["parameters"])


@every("name", NAMES)
def test_a_reason_is_given_where_no_theorem_is_declared(name: str) -> None:
    (item,) = (item for item in describe(name, registry()) if item["kind"] == "algorithm")
    (blocks,) = [section.blocks for section in sheet(item).sections if section.title == "Theorems"] or [()]
    said = [line for block in blocks if isinstance(block, Text) for line in block.lines]
    if algorithm(name).unbounded:
        assert not algorithm(name).bounds
        assert said == [f"none is declared: {algorithm(name).unbounded}"]
    else:
        assert bool(said) == bool(algorithm(name).bounds)


@pytest.mark.parametrize("name", sorted(registry().problems))
def test_every_problem_is_described_in_full(name: str) -> None:
    (item,) = (item for item in describe(name, registry()) if item["kind"] == "problem")
    assert item["summary"]
    assert item["reference"]
    assert {parameter["name"] for parameter in item["parameters"]} == set(
        registry().problems[name].config.model_fields
    ) - {"kind"}


@every("name", TALKING)
def test_runs_send_what_is_described(name: str) -> None:
    schedule = next(iter(kit.schedules_of(name)))
    result = kit.simulate(name, {}, schedule, "constant", "fast", seed=1, checks="cheap")
    described = {(size.message.kind, size.direction) for size in algorithm(name).messages}
    assert set(result.result.ledger.by_kind) <= described
