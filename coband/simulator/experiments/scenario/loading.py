"""Reading scenario files: text, overrides, validation; every mistake is reported with its place in the file."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coband.simulator.core.nodes.graphs import GraphError
from coband.simulator.core.nodes.node import UnsupportedScenario
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.scenario.document import Tuning, Until
from coband.simulator.experiments.scenario.files import ScenarioText, read_scenario, with_absolute_paths
from coband.simulator.experiments.scenario.input_problems import InputProblem, ScenarioError
from coband.simulator.experiments.scenario.nodes import (
    MappingNode,
    Mark,
    Node,
    ScalarNode,
    descend,
    given,
    place_of,
    plain,
    tree,
)
from coband.simulator.experiments.scenario.overrides import override
from coband.simulator.experiments.scenario.scenario import Scenario
from coband.simulator.experiments.scenario.validation import Validation
from coband.simulator.experiments.scenario.yaml_nodes import read
from coband.simulator.experiments.sweep.grid import Grid, split
from coband.simulator.problems.data_error import DataError
from coband.simulator.problems.world import InstanceError

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
