"""Algorithms' parameters, taken out of validated entries: the same as if their own models had read them."""

import json

from pydantic import field_validator

from coband.simulator.core.config import Config
from coband.simulator.experiments.scenario.loading import load, part_of


class Foreign(Config):
    """A model of another package, which decides how it is read."""

    number: int = 1

    @field_validator("number")
    @classmethod
    def _doubled(cls, number: int) -> int:
        return 2 * number


class Entry(Config):
    number: int
    label: str = "x"


def test_another_package_s_model_reads_its_part_itself() -> None:
    assert part_of(Entry(number=3), Foreign, {"number": 3}).number == 6


def test_a_scenario_s_configs_equal_those_that_the_algorithms_read() -> None:
    for entry in load("quickstart").algorithms:
        again = entry.algorithm.config.model_validate_json(entry.config.model_dump_json(by_alias=True))
        assert again.__dict__ == entry.config.__dict__
        assert type(again) is type(entry.config)


def test_a_resolved_scenario_is_plain_json() -> None:
    resolved = load("quickstart").resolved()
    assert json.loads(json.dumps(resolved)) == resolved
