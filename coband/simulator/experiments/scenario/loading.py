"""Reads and validates scenario files, section by section: every mistake is reported with its place in the file."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from coband.simulator.core.nodes.graphs import GraphError
from coband.simulator.core.nodes.node import UnsupportedScenario
from coband.simulator.experiments.registry.registry import RESERVED, Registry, only
from coband.simulator.experiments.scenario.document import (
    FIXED,
    SWEEP_SECTIONS,
    Tuning,
    Until,
    document_model,
    json_schema,
)
from coband.simulator.experiments.scenario.files import ScenarioText, read_scenario, with_absolute_paths
from coband.simulator.experiments.scenario.overrides import override
from coband.simulator.experiments.scenario.rules import broken_rules
from coband.simulator.experiments.scenario.scenario import Scenario, ScenarioEntry
from coband.simulator.experiments.scenario.yaml_nodes import (
    MappingNode,
    Mark,
    Node,
    ScalarNode,
    descend,
    given,
    place_of,
    plain,
    read,
    tree,
)
from coband.simulator.experiments.sweep.grid import Grid, split
from coband.simulator.plugins.kinds import is_false_alarm, validated_strictly
from coband.simulator.problems.problem import DataError
from coband.simulator.problems.world import InstanceError
from coband.simulator.scenario_errors import InputProblem, ScenarioError

if TYPE_CHECKING:
    from coband.simulator.experiments.scenario.explain import Explainer


Model = TypeVar("Model", bound=BaseModel)


@lru_cache(maxsize=256)
def _adapter(registry: Registry | None, key: str) -> TypeAdapter[Any]:
    """The validator of one section, so that a mistake in one section does not hide the mistakes of others.

    Args:
        registry: what the section can name; None if it is one of `FIXED`.
    """
    info = FIXED[key] if registry is None else document_model(registry).model_fields[key]
    section: Any = Annotated[info.annotation, info]
    if isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel):
        info.annotation.model_rebuild()  # once, as the scenario is also written with it
    return TypeAdapter(section)


def _section(registry: Registry, key: str, data: Any) -> Any:
    """Validate one section strictly: numbers, text and booleans are not converted into each other.

    Raises:
        ValidationError: the section is invalid.
    """
    return validated_strictly(_adapter(None if key in FIXED else registry, key), json.dumps(data))


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
        from coband.simulator.experiments.scenario.explain import Explainer  # valid documents do without
        from coband.simulator.experiments.scenario.wording import Wording

        return Explainer(self._root, Wording(json_schema(self._registry)), self._registry.broken)

    def scenario(self, base: Path) -> Scenario:
        """Validate the document.

        Raises:
            ScenarioError: the document is invalid; the error lists every mistake.
        """
        valid = self._valid_sections()
        self._problems += broken_rules(self._root, valid, self._registry)
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
            given = {key: _section(registry, key, value) for key, value in data.items()}
            missing = {key: info.get_default(call_default_factory=True) for key, info in known.items()}
        except (KeyError, TypeError, ValidationError, OSError):
            return None
        return {**missing, **given} if all(key in given or not known[key].is_required() for key in known) else None

    def _section(self, key: str, data: Any, valid: dict[str, Any]) -> None:
        try:
            valid[key] = _section(self._registry, key, data)
        except ValidationError as error:
            mistakes = error.errors(include_url=False)
            real = [item for item in mistakes if not is_false_alarm(item)]
            self._problems += self._explainer.explain(real or mistakes, (key,))
        except OSError as error:
            mark = place_of(self._root, key)
            self._problems.append(mark.problem((key,), f"{error.filename}: {error.strerror}"))

    def _entry(self, entry: Any, data: dict[str, Any]) -> ScenarioEntry:
        algorithm = self._registry.algorithms[entry.algorithm]
        parameters = {key: value for key, value in data.items() if key not in RESERVED}
        config = part_of(entry, algorithm.config, parameters)
        return ScenarioEntry(algorithm, entry.label or algorithm.name, config, entry.ties)


def part_of(entry: BaseModel, model: type[Model], data: Mapping[str, Any]) -> Model:
    """The parameters in a validated entry of a scenario, as an instance of the algorithm's own model.

    No validator is built for coband's own models, whose fields the entry has validated already.

    Args:
        entry: an instance of a model that is derived from the algorithm's, and has more fields.
        model: the algorithm's.
        data: what the scenario says of the fields of ``model``; another package's model reads it itself.
    """
    if not model.__module__.startswith("coband."):
        return model.model_validate_json(json.dumps(data))
    values = {name: getattr(entry, name) for name in model.model_fields}
    return model.model_construct(entry.model_fields_set & values.keys(), **values)


KEY = "schema_version"
CURRENT = 1
"""The newest form of scenario files that this coband reads; `docs/stability.md` says when it grows."""
BAD_INPUT: tuple[type[Exception], ...] = (ScenarioError, DataError, GraphError, InstanceError, UnsupportedScenario)
"""Errors in the user's input; their text says how to correct it."""


@dataclass(frozen=True)
class Point:
    """A scenario with the sections of its file that a `Scenario` does not have.

    Attributes:
        until: the stopping rule of replications; None: their number is fixed.
        tuning: how a sweep chooses the best parameters; None: it does not.
    """

    scenario: Scenario
    until: Until | None
    tuning: Tuning | None
    root: Node

    def refusal(self, key: str, message: str) -> ScenarioError:
        """The error that a section of the file cannot be used here."""
        return place_of(self.root, key).error(message, (key,))


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
    registry = registry or Registry.installed()
    text, base = read_scenario(path)
    root, problems = read_document(text, str(path), overrides, registry)
    return _validated(root, problems, str(path), overrides, base, registry)


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
    source = ScenarioText(text, file, Path.cwd() if base is None else base)
    return load_point(source, overrides, registry=registry).scenario


def from_document(document: Mapping[str, Any], name: str, base: Path, *, registry: Registry | None = None) -> Scenario:
    """A scenario from what its file would say, in JSON types; ``name`` stands for the file in errors.

    Raises:
        ScenarioError: the scenario is invalid; the error lists every mistake.
    """
    root = tree(document, Mark(name, 1, 1))  # a place in a file, so that relative names are relative to ``base``
    assert isinstance(root, MappingNode)
    return _validated(root, [], name, (), base, registry or Registry.installed()).scenario


def _validated(
    root: MappingNode, problems: list[InputProblem], file: str, overrides: Sequence[str], base: Path, registry: Registry
) -> Point:
    _, grid, _ = split(root, overrides, registry.takes)
    if grid.axes:
        raise ScenarioError([*problems, _is_a_sweep(root, grid, file, overrides)])
    validation = Validation(with_absolute_paths(root, base), registry, problems)
    scenario = validation.scenario(base)
    found = validation.sweep_sections
    return Point(scenario, found["until"], found["tuning"], root)


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


def _is_a_sweep(root: Node, grid: Grid, file: str, overrides: Sequence[str]) -> InputProblem:
    first = next(grid.points())
    chosen = [f"{key.path}={value.text}" for key, value in grid.chosen(first)]
    tuning = descend(root, "tuning")
    if tuning is not None and plain(tuning) is not None:
        chosen.append("tuning=null")
    python = file.startswith("<")  # text, or a mapping
    given = shlex.join([file, *(word for setting in overrides for word in ("--set", setting))])
    sweep = "coband.sweep" if python else f"`coband sweep {given}`"
    one = f"set={chosen}" if python else " ".join(f"--set {shlex.quote(setting)}" for setting in chosen)
    points = f"{len(grid)} point{'s' * (len(grid) != 1)}"
    message = f"this scenario has {points}: run them with {sweep}, or one of them with {one}"
    return grid.axes[0].keys[0].mark.problem(("grid",), message)


def check_version(root: MappingNode) -> None:
    """Refuse a document of a newer form, whose other mistakes would mislead, and a version that is none.

    Raises:
        ScenarioError: with this one problem.
    """
    node = descend(root, KEY)
    if node is None:
        return
    version = node.value if isinstance(node, ScalarNode) else None
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        message = f"{given(node)} is not allowed: must be a whole number; this coband reads {CURRENT}"
    elif version > CURRENT:
        message = f"this file says {KEY} {version}; this coband reads {CURRENT}; take a newer one"
    else:
        return
    raise node.mark.error(message, (KEY,))
