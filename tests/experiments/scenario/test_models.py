"""Models written and taken apart without pydantic's serialisers: the same as with them."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel, field_serializer

from coband.simulator.core.config import Config
from coband.simulator.experiments.scenario.loading import load
from coband.simulator.experiments.scenario.models import in_json_types, part_of
from coband.simulator.experiments.scenario.shipped import paths
from coband.simulator.experiments.sweep.study import load_study
from coband.simulator.problems.arms import PoolArms
from tests.every import every

SCENARIOS = [name for name, path in paths().items() if "data:" not in path.read_text(encoding="utf-8")]


def parts(name: str) -> list[BaseModel]:
    scenario = load_study(paths()[name], []).variants[0].scenario
    sections: list[Any] = [scenario.agents, scenario.server, scenario.schedule, scenario.network, scenario.problem]
    return [*sections, *scenario.expect, *(entry.config for entry in scenario.algorithms)]


@every("name", SCENARIOS[:: max(1, len(SCENARIOS) // 12)])
def test_json_types_are_those_of_pydantic(name: str) -> None:
    assert [part for part in parts(name) if not _written_alike(part)] == []


def test_names_are_those_of_fields_where_nobody_wants_aliases() -> None:
    pool = PoolArms.model_validate({"kind": "pool", "dimension": 2, "size": 3, "from": "box"})
    assert (in_json_types(pool)["from"], in_json_types(pool, by_alias=False)["shape"]) == ("box", "box")
    assert _written_alike(pool)


def _written_alike(part: BaseModel) -> bool:
    """Whether it gives the same JSON as pydantic, with aliases and with names of fields."""
    return all(
        json.dumps(in_json_types(part, by_alias=by_alias))
        == json.dumps(part.model_dump(mode="json", by_alias=by_alias))
        for by_alias in (True, False)
    )


class Foreign(Config):
    """A model of another package, which decides how it is written."""

    number: int = 1

    @field_serializer("number")
    def _in_words(self, number: int) -> str:
        return f"number {number}"


class Entry(Foreign):
    label: str = "x"


def test_another_package_s_model_is_written_by_pydantic() -> None:
    assert in_json_types(Foreign()) == {"number": "number 1"}
    assert part_of(Entry(number=3), Foreign, {"number": 3}) == Foreign(number=3)


def test_a_scenario_s_configs_equal_those_that_the_algorithms_read() -> None:
    for entry in load("quickstart").algorithms:
        again = entry.algorithm.config.model_validate_json(json.dumps(in_json_types(entry.config)))
        assert again.__dict__ == entry.config.__dict__
        assert type(again) is type(entry.config)
