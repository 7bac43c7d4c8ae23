"""What ``coband describe`` says about communication is what runs send."""

import re

import pytest

from coband.simulator.conformance import kit
from coband.simulator.conformance.runs import algorithm, registry
from coband.simulator.core.algorithm import SILENT
from coband.simulator.core.formulas import names_in
from coband.simulator.experiments.registry.catalogue import describe
from coband.simulator.reference.sheets import RATE, Text, sheet
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
def test_the_rate_has_a_source(name: str) -> None:
    """A sentence with paper and theorem, or nothing; ``coband describe`` says it."""
    (item,) = (item for item in describe(name, registry()) if item["kind"] == "algorithm")
    said = [section.blocks for section in sheet(item).sections if section.title == RATE]
    rate = algorithm(name).rate
    assert said == ([(Text((rate,)),)] if rate else [])
    assert not rate or re.search(r"(et al\.|and \w+) \d{4}", rate)


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
