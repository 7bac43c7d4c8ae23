"""Every key of a scenario is part of the address of its jobs, or there is a reason."""

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.runs.address import ON_THE_WIRE, WORLD
from coband.simulator.experiments.scenario.document import AlgorithmEntry, Document, json_schema
from coband.simulator.experiments.scenario.files import LOADER, ScenarioText, paths
from coband.simulator.experiments.sweep.study import load_study
from coband.simulator.scenario_errors import ScenarioError

NO_PART = {
    "schema_version": "it has one value",
    "name": "of the run's folder",
    "description": "a text for people",
    "replications": "how many jobs there are; the number of each is part of its own address",
    "trace": "results are the same with it",
    "expect": "compared with finished results",
    "grid": "which points there are; each has an address of its own",
    "zip": "which points there are; each has an address of its own",
    "tuning": "which points are chosen from finished results",
    "until": "when enough replications are finished",
    "algorithms.label": "a name of a row; results are the same",
}
"""Keys that say nothing about the result of a job; what is below them does not either."""


def test_every_key_is_part_of_the_address_or_there_is_a_reason() -> None:
    """The sections that count are dumped as a whole, and no model leaves out a key when it is dumped."""
    known = {*Document.model_fields, *(f"algorithms.{key}" for key in AlgorithmEntry.model_fields)}
    assert known - {*WORLD, *ON_THE_WIRE} - NO_PART.keys() == {
        *("seed", "algorithms", "algorithms.algorithm", "algorithms.ties")
    }
    assert json_schema(Registry.installed())  # for which all models are imported
    models = [one for one in below(BaseModel) if one.__module__.startswith("coband.")]
    assert len(models) > 150
    assert [name for one in models for name, field in one.model_fields.items() if field.exclude] == []
    decorators = [one.__pydantic_decorators__ for one in models]
    assert [one for one in decorators if one.field_serializers or one.model_serializers] == []


def below(base: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """All classes derived from a class."""
    for one in base.__subclasses__():
        yield one
        yield from below(one)


def addresses(found: dict[str, Any]) -> frozenset[str] | None:
    try:
        study = load_study(ScenarioText(yaml.safe_dump(found, sort_keys=False), "x", Path("/")))
    except ScenarioError:
        return None
    return frozenset(variant.digest for variant in study.variants)


def changed(part: Any) -> Iterator[Any]:
    """A document with one number or switch changed, for each."""
    if isinstance(part, dict):
        for key, value in part.items():
            yield from ({**deepcopy(part), key: other} for other in changed(value))
    elif isinstance(part, list):
        for place, value in enumerate(part):
            yield from ([*part[:place], other, *part[place + 1 :]] for other in changed(value))
    elif isinstance(part, bool):
        yield not part
    elif isinstance(part, int | float):
        yield part * 2 or 1


@pytest.mark.parametrize("name", ["quickstart", "adversity/liars_graph_quick", "cope_kb/fixed_budget_different"])
def test_another_number_is_another_address(name: str) -> None:
    document = yaml.load(paths()[name].read_text(encoding="utf-8"), LOADER)
    document = {key: value for key, value in document.items() if key not in NO_PART or key == "name"}
    before, tried = addresses(document), 0
    assert before is not None
    for other in changed(document):
        after = addresses(other)
        tried += after is not None
        assert after != before
    assert tried > 5
