"""A validated scenario."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel

from coband.simulator.core.algorithm import Algorithm
from coband.simulator.core.clock.schedule import AnySchedule, Phases
from coband.simulator.core.hosts.speed import AgentsConfig, ServerConfig
from coband.simulator.core.network.network import NetworkConfig
from coband.simulator.core.plan import Ties
from coband.simulator.core.randomness.distributions import is_zero
from coband.simulator.core.wire.adversaries import Adversary
from coband.simulator.core.wire.config import MessagesConfig
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.scenario.document import Expectation
from coband.simulator.experiments.scenario.overrides import to_yaml
from coband.simulator.metrics import Metric
from coband.simulator.problems.world import Problem

NOTHING = MessagesConfig()


@dataclass(frozen=True)
class ScenarioEntry:
    """One entry of ``algorithms``; ``config`` is an instance of ``algorithm.config``."""

    algorithm: Algorithm
    label: str
    config: BaseModel
    ties: Ties = "random"


@dataclass(frozen=True)
class Scenario:
    """A validated scenario; ``base``, the directory of relative data paths, does not take part in comparisons."""

    schema_version: Literal[1]
    name: str
    description: str | None
    seed: int
    replications: int
    agents: AgentsConfig
    server: ServerConfig
    schedule: AnySchedule
    network: NetworkConfig
    problem: Problem
    algorithms: tuple[ScenarioEntry, ...]
    expect: tuple[Expectation, ...]
    trace: Literal["off", "protocol", "full"]
    checks: Literal["cheap", "full"]
    share: bool
    base: Path = field(compare=False)
    messages: MessagesConfig = NOTHING
    adversaries: tuple[Adversary, ...] = ()

    def resolved(self) -> dict[str, object]:
        """The scenario with all defaults, in JSON types; loading it gives an equal scenario."""
        document = {key: _plain(getattr(self, key)) for key in _SECTIONS if _LATER.get(key) != getattr(self, key)}
        if self.server.aggregate.sums:
            document["server"] = self.server.model_dump(mode="json", by_alias=True, exclude={"aggregate"})
        document["algorithms"] = [
            {
                "algorithm": entry.algorithm.name,
                "label": entry.label,
                "ties": entry.ties,
                **entry.config.model_dump(mode="json", by_alias=True),
            }
            for entry in self.algorithms
        ]
        document["expect"] = [expectation.model_dump(mode="json", by_alias=True) for expectation in self.expect]
        return document

    @property
    def idle(self) -> str:
        """What it says that has no effect, in words."""
        agents = self.agents
        still = agents.population is None and is_zero(agents.compute) and is_zero(agents.handling)
        if agents.stragglers is None or not still or isinstance(self.schedule, Phases):  # in phases, pulls take time
            return ""
        return "agents.stragglers: nobody is slow, as agents.compute and agents.handling are 0; give agents.compute"

    @cached_property
    def metrics(self) -> Mapping[str, Metric]:
        """The metrics of the results, by name."""
        names = [entry.algorithm.name for entry in self.algorithms]
        problem: Any = self.problem
        return Registry.installed().metrics_of(problem.kind, names)

    def to_yaml(self) -> str:
        """The text of a scenario file with all defaults filled in."""
        return to_yaml(self.resolved())


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return value.model_dump(mode="json", by_alias=True) if isinstance(value, BaseModel) else value


_SECTIONS = tuple(name for name in Scenario.__dataclass_fields__ if name != "base")
_LATER = {"messages": NOTHING, "adversaries": ()}
"""Sections that are left out where they say nothing, so that scenarios without them stay what they were."""
