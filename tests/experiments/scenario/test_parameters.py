"""Algorithms' parameters are read by their own models, also by those of other packages."""

from dataclasses import replace

import pytest
from pydantic import BaseModel, field_validator

from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.scenario.loading import load, loads
from coband.simulator.scenario_errors import ScenarioError
from tests.experiments.registry.plugins import ASYNC, PROBLEMS, SCENARIO


class Foreign(BaseModel):
    """A model of another package, which would pass over keys that it does not know."""

    alpha: float = 1.0
    _doubled = field_validator("alpha")(lambda alpha: 2 * alpha)


REGISTRY = Registry({"async_kernel_ucb": replace(ASYNC, config=Foreign)}, PROBLEMS)


def test_another_package_s_model_reads_its_part_itself() -> None:
    text = SCENARIO.replace("kernel: {kind: gaussian, gamma: 0.1}, ", "")
    assert [entry.config.alpha for entry in loads(text, registry=REGISTRY).algorithms] == [0.2, 8.0]  # type: ignore[attr-defined]


def test_keys_are_refused_that_another_package_s_model_does_not_know() -> None:
    with pytest.raises(
        ScenarioError, match=r"algorithms\[0\]\.kernel: unknown key; .*allowed: algorithm, label, ties, alpha"
    ):
        loads(SCENARIO, registry=REGISTRY)


def test_a_scenario_s_configs_equal_those_that_the_algorithms_read() -> None:
    for entry in load("quickstart").algorithms:
        again = entry.algorithm.config.model_validate_json(entry.config.model_dump_json(by_alias=True))
        assert (type(again), again.__dict__) == (type(entry.config), entry.config.__dict__)
