"""What ``coband describe`` says about communication is what runs send."""

import re

import pytest

from coband.extensions.conformance import kit
from coband.extensions.conformance.runs import algorithm, registry
from coband.simulator.core.algorithm import SILENT
from coband.simulator.core.formulas import names_in
from coband.simulator.reference.items import algorithm_item, look_up
from coband.simulator.reference.text import TITLES, lines
from tests.every import every

NAMES = sorted(registry().algorithms)
TALKING = [name for name in NAMES if registry().algorithms[name].messages]


@every("name", NAMES)
def test_every_algorithm_is_described_in_full(name: str) -> None:
    entry = algorithm(name)
    item = algorithm_item(entry)
    assert item["counts"]
    assert bool(item["messages"]) == (entry.counts != SILENT)
    formulas = [formula for message in item["messages"] for formula in (message["scalars"], message["when"])]
    formulas += [formula for count in item["counts"] for formula in (count["formula"], count["when"])]
    named = {name for formula in formulas if formula for name in names_in(formula)}
    assert named <= set(item["where"]) | set(entry.config.model_fields) | {"schedule"}
    assert all(item["where"].values())
    assert [metric["name"] for metric in item["metrics"]] == [metric.name for metric in entry.metrics]
    assert {one["name"] for one in item["parameters"] if "." not in one["name"]} == set(entry.config.model_fields)
    assert all("default" in parameter or parameter["required"] for parameter in item["parameters"])


@every("name", NAMES)
def test_the_rate_has_a_source(name: str) -> None:
    """A sentence with paper and theorem, or nothing; ``coband describe`` says it."""
    rate, said = algorithm(name).rate, " ".join(" ".join(lines(algorithm_item(algorithm(name)))).split())
    assert (f"{TITLES['rate']}: {rate} " in said) == bool(rate)
    assert not rate or re.search(r"(et al\.|and \w+) \d{4}", rate)


@pytest.mark.parametrize("name", sorted(registry().problems))
def test_every_problem_is_described_in_full(name: str) -> None:
    (item,) = look_up(f"problem.{name}", registry())
    assert item["text"]
    assert item["reference"]
    assert {one["name"] for one in item["parameters"] if "." not in one["name"]} == set(
        registry().problems[name].config.model_fields
    ) - {"kind"}


@every("name", TALKING)
def test_runs_send_what_is_described(name: str) -> None:
    schedule = next(iter(kit.schedules_of(name)))
    result = kit.simulate(name, {}, schedule, "constant", "fast", seed=1, checks="cheap")
    described = {(size.message.kind, size.direction) for size in algorithm(name).messages}
    assert set(result.result.ledger.by_kind) <= described
