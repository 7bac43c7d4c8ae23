"""Scenario files: reading, validating and filling in defaults; every error gives its position in the file."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from coband.simulator.core.algorithm import Algorithm
from coband.simulator.core.clock.schedule import AnySchedule
from coband.simulator.core.hosts.speed import AgentsConfig, ServerConfig
from coband.simulator.core.network.graphs import GraphError
from coband.simulator.core.network.network import NetworkConfig
from coband.simulator.core.node import UnsupportedScenario
from coband.simulator.core.plan import Ties
from coband.simulator.experiments.registry.registry import RESERVED, Registry, only
from coband.simulator.experiments.scenario.cross_checks import cross_check
from coband.simulator.experiments.scenario.document import (
    FIXED,
    SWEEP_SECTIONS,
    Expectation,
    Tuning,
    Until,
    document_model,
    json_schema,
)
from coband.simulator.experiments.scenario.explain import Explainer, given
from coband.simulator.experiments.scenario.files import ScenarioText, read_scenario, with_absolute_paths
from coband.simulator.experiments.scenario.input_problems import InputProblem, ScenarioError
from coband.simulator.experiments.scenario.nodes import MappingNode, Node, child, plain
from coband.simulator.experiments.scenario.overrides import override
from coband.simulator.experiments.scenario.schema_version import check_version
from coband.simulator.experiments.scenario.wording import Wording
from coband.simulator.experiments.scenario.yaml_nodes import read
from coband.simulator.experiments.scenario.yaml_text import to_yaml
from coband.simulator.experiments.sweep.grid import Grid, split
from coband.simulator.metrics import Metric
from coband.simulator.problems.datasets import DataError
from coband.simulator.problems.world import InstanceError, Problem

__all__ = [
    "BAD_INPUT",
    "InputProblem",
    "Point",
    "Scenario",
    "ScenarioEntry",
    "ScenarioError",
    "Validation",
    "load",
    "load_point",
    "loads",
    "read_document",
]

BAD_INPUT: tuple[type[Exception], ...] = (ScenarioError, DataError, GraphError, InstanceError, UnsupportedScenario)
"""Errors in the user's input; their text says how to correct it."""


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

    def resolved(self) -> dict[str, Any]:
        """The scenario with all defaults, in JSON types; loading it gives an equal scenario."""
        document: dict[str, Any] = {}
        for key in _SECTIONS:
            value = getattr(self, key)
            document[key] = _dumped(value) if isinstance(value, BaseModel) else value
        document["algorithms"] = [
            {
                "algorithm": entry.algorithm.name,
                "label": entry.label,
                "ties": entry.ties,
                **_dumped(entry.config),
            }
            for entry in self.algorithms
        ]
        document["expect"] = [_dumped(expectation) for expectation in self.expect]
        return document

    @cached_property
    def metrics(self) -> Mapping[str, Metric]:
        """The metrics of the results, by name."""
        names = [entry.algorithm.name for entry in self.algorithms]
        problem: Any = self.problem
        return Registry.installed().metrics_of(problem.kind, names)

    def to_yaml(self) -> str:
        """The text of a scenario file with all defaults filled in."""
        return to_yaml(self.resolved())


_SECTIONS = tuple(name for name in Scenario.__dataclass_fields__ if name != "base")


def _dumped(part: BaseModel) -> dict[str, Any]:
    return part.model_dump(mode="json", by_alias=True)


@dataclass(frozen=True)
class Point:
    """A scenario with the sections of its file that a `Scenario` does not have.

    Attributes:
        scenario: the scenario.
        until: the stopping rule of replications; None: their number is fixed.
        tuning: how a sweep chooses the best parameters; None: it does not.
        root: the document.
    """

    scenario: Scenario
    until: Until | None
    tuning: Tuning | None
    root: Node

    def refusal(self, key: str, message: str) -> ScenarioError:
        """The error that a section of the file cannot be used here."""
        found = child(self.root, key)
        return ScenarioError([(self.root.mark if found is None else found[0]).problem((key,), message)])


def load(path: str | Path, overrides: Sequence[str] = (), *, registry: Registry | None = None) -> Scenario:
    """Read a scenario file.

    Args:
        path: the file, or the name of a scenario that comes with coband.
        overrides: ``key.path=value``, as given to ``--set``.
        registry: the algorithms and problems that the scenario can name; None: the installed ones.

    Raises:
        ScenarioError: the scenario is invalid; the error lists every mistake.
    """
    return load_point(path, overrides, registry=registry).scenario


def load_point(
    path: str | Path | ScenarioText, overrides: Sequence[str] = (), *, registry: Registry | None = None
) -> Point:
    """`load`, with what the file says beside; ``path`` may also be the text itself.

    Raises:
        ScenarioError: with everything that is wrong.
    """
    text, base = read_scenario(path)
    return _point(text, str(path), overrides, base, registry)


def loads(
    text: str,
    file: str = "<string>",
    overrides: Sequence[str] = (),
    *,
    base: Path | None = None,
    registry: Registry | None = None,
) -> Scenario:
    """Read a scenario from text; ``base`` is the directory of relative data paths, None for the working directory.

    Raises:
        ScenarioError: the scenario is invalid; the error lists every mistake.
    """
    return _point(text, file, overrides, Path.cwd() if base is None else base, registry).scenario


def _point(text: str, file: str, overrides: Sequence[str], base: Path, registry: Registry | None) -> Point:
    registry = registry or Registry.installed()
    root, problems = read_document(text, file, overrides, registry)
    _, grid, _ = split(root, overrides)
    if grid.axes:
        raise ScenarioError([*problems, _is_a_sweep(root, grid, file)])
    validation = Validation(with_absolute_paths(root, base), registry, problems)
    scenario = validation.scenario(base)
    return Point(scenario, validation.sweep_sections["until"], validation.sweep_sections["tuning"], root)


def read_document(
    text: str, file: str, overrides: Sequence[str], registry: Registry
) -> tuple[MappingNode, list[InputProblem]]:
    """Read a document and apply overrides, without validating it; return it with the mistakes found so far.

    Raises:
        ScenarioError: the text is not a mapping in valid YAML, or says a ``schema_version`` that is not read here.
    """
    root, problems = read(text, file)
    if not isinstance(root, MappingNode):
        what = "the file is empty" if plain(root) is None else f"{given(root)} is not a scenario"
        message = f"{what}; a scenario is a mapping of keys (name, agents, ...)"
        raise ScenarioError([*problems, root.mark.problem((), message)])
    tree: Node = root
    for setting in overrides:
        try:
            tree, more = override(tree, setting, registry.takes)
            problems += more
        except ScenarioError as error:
            problems += error.problems
    assert isinstance(tree, MappingNode)
    check_version(tree)
    return tree, problems


def _is_a_sweep(root: Node, grid: Grid, file: str) -> InputProblem:
    first = next(grid.points())
    one = " ".join(f"--set {shlex.quote(f'{key.path}={value.text}')}" for key, value in grid.chosen(first))
    tuning = child(root, "tuning")
    if tuning is not None and plain(tuning[1]) is not None:
        one += " --set tuning=null"
    points = f"{len(grid)} point{'s' * (len(grid) != 1)}"
    message = f"this scenario has {points}: run them with `coband sweep {file}`, or one of them with {one}"
    return grid.axes[0].keys[0].mark.problem(("grid",), message)


@lru_cache(maxsize=256)
def _adapter(registry: Registry | None, key: str) -> TypeAdapter[Any]:
    """The validator of one section, so that a mistake in one section does not hide the mistakes of others.

    Args:
        registry: what the section can name; None if it is one of `FIXED`.
        key: of the section.
    """
    info = FIXED[key] if registry is None else document_model(registry).model_fields[key]
    section: Any = Annotated[info.annotation, info]
    return TypeAdapter(section)


def _validated(registry: Registry, key: str, data: Any) -> Any:
    """Validate one section strictly: numbers, text and booleans are not converted into each other.

    Raises:
        ValidationError: the section is invalid.
    """
    adapter, text = _adapter(None if key in FIXED else registry, key), json.dumps(data)
    try:
        return adapter.validate_json(text, strict=True)
    except ValidationError as error:
        if not all(map(_is_false_alarm, error.errors(include_url=False))):
            raise
    return adapter.validate_json(text)


class Validation:
    """The validation of one document.

    Attributes:
        sweep_sections: after `scenario`, the validated sections that only sweeps use.
    """

    def __init__(self, root: Node, registry: Registry, problems: list[InputProblem]) -> None:
        self._root, self._registry, self._problems = root, registry, problems
        self.sweep_sections: dict[str, Any] = {}

    @cached_property
    def _explainer(self) -> Explainer:
        return Explainer(self._root, Wording(json_schema(self._registry)), self._registry.broken)

    def scenario(self, base: Path) -> Scenario:
        """Validate the document.

        Raises:
            ScenarioError: the document is invalid; the error lists every mistake.
        """
        valid = self._valid_sections()
        self._problems += cross_check(self._root, valid, self._registry)
        if self._problems:
            raise ScenarioError(self._problems)
        self.sweep_sections = {key: valid.pop(key) for key in SWEEP_SECTIONS}
        entries = tuple(map(self._entry, valid.pop("algorithms"), plain(self._root)["algorithms"]))
        return Scenario(**valid, algorithms=entries, base=base)

    def shapes(self, keys: Sequence[str]) -> list[InputProblem]:
        """Validate single sections, if they exist, and return the mistakes found so far."""
        data = plain(self._root)
        for key in keys:
            if key in data:
                self._section(key, data[key], {})
        return self._problems

    def _valid_sections(self) -> dict[str, Any]:
        found = self._without_mistakes()
        if found is not None:
            return found
        data, valid = plain(self._root), dict[str, Any]()
        known = document_model(self._registry).model_fields
        self._problems += [self._explainer.unknown_key((key,)) for key in data if key not in known]
        for key, info in known.items():
            if key in data:
                self._section(key, data[key], valid)
            elif info.is_required():
                self._problems.append(self._explainer.missing((), key))
            else:
                valid[key] = info.get_default(call_default_factory=True)
        return valid

    def _without_mistakes(self) -> dict[str, Any] | None:
        """The sections of a document in which each is valid; None of another one.

        Only the models of the algorithms and of the problem that the document names are built. To explain mistakes,
        all are needed.
        """
        data = plain(self._root)
        try:
            names = frozenset(str(entry["algorithm"]) for entry in data["algorithms"])
            registry = only(self._registry, names, str(data["problem"]["kind"]))
            known = document_model(registry).model_fields
            if not known.keys() >= data.keys():
                return None
            given = {key: _validated(registry, key, value) for key, value in data.items()}
            missing = {key: info.get_default(call_default_factory=True) for key, info in known.items()}
        except (KeyError, TypeError, ValidationError, OSError):
            return None
        return {**missing, **given} if all(key in given or not known[key].is_required() for key in known) else None

    def _section(self, key: str, data: Any, valid: dict[str, Any]) -> None:
        """Validate one section, and explain its mistakes."""
        try:
            valid[key] = _validated(self._registry, key, data)
        except ValidationError as error:
            mistakes = error.errors(include_url=False)
            real = [item for item in mistakes if not _is_false_alarm(item)]
            self._problems += self._explainer.explain(real or mistakes, (key,))
        except OSError as error:
            found = child(self._root, key)
            mark = self._root.mark if found is None else found[0]
            self._problems.append(mark.problem((key,), f"{error.filename}: {error.strerror}"))

    def _entry(self, entry: Any, data: dict[str, Any]) -> ScenarioEntry:
        algorithm = self._registry.algorithms[entry.algorithm]
        parameters = json.dumps({key: value for key, value in data.items() if key not in RESERVED})
        config = algorithm.config.model_validate_json(parameters)
        return ScenarioEntry(algorithm, entry.label or algorithm.name, config, entry.ties)


def _is_false_alarm(error: ErrorDetails) -> bool:
    """Whether the error only says that a JSON list is not a tuple, that a mapping is not a dataclass, or that a list
    is too short because an entry of it has such an error.

    Strict validation of JSON accepts them, except after a validator that runs in mode "before".
    """
    if error["type"] == "too_short" and isinstance(error["input"], list):
        return len(error["input"]) >= int(error["ctx"]["min_length"])
    given_list = isinstance(error["input"], list) and error["type"] in ("tuple_type", "set_type", "frozen_set_type")
    return given_list or (isinstance(error["input"], dict) and error["type"] == "dataclass_exact_type")
