"""Reads and validates scenario files, section by section: every mistake is reported with its place in the file."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from coband.simulator.core.nodes.graphs import GraphError
from coband.simulator.core.nodes.node import UnsupportedScenario
from coband.simulator.experiments.registry.registry import RESERVED, Registry, only
from coband.simulator.experiments.scenario.document import AlgorithmEntry, Document, Tuning, Until
from coband.simulator.experiments.scenario.files import ScenarioText, read_scenario, with_absolute_paths
from coband.simulator.experiments.scenario.overrides import override
from coband.simulator.experiments.scenario.rules import broken_rules
from coband.simulator.experiments.scenario.scenario import Scenario, ScenarioEntry
from coband.simulator.experiments.scenario.yaml_nodes import KEYS_ARE_TEXT, Node, descend, given, key_mark, plain, read
from coband.simulator.experiments.sweep.grid import Grid, split
from coband.simulator.plugins.kinds import adapter, validated_strictly
from coband.simulator.problems.problem import DataError
from coband.simulator.problems.world import InstanceError
from coband.simulator.scenario_errors import InputProblem, KeyPath, ScenarioError

if TYPE_CHECKING:
    from coband.simulator.experiments.scenario.explain import Explainer

CURRENT = 1
"""The newest form of scenario files that this coband reads; `docs/stability.md` says when it grows."""
BAD_INPUT: tuple[type[Exception], ...] = (ScenarioError, DataError, GraphError, InstanceError, UnsupportedScenario)
"""Errors in the user's input; their text says how to correct it."""


@lru_cache(maxsize=64)
def _reader(key: str) -> TypeAdapter[Any]:
    """What validates one section, so that a mistake in one section does not hide those of others."""
    info = Document.model_fields[key]
    if isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel):
        info.annotation.model_rebuild()  # once, as the scenario is also written with it
    section: Any = Annotated[info.annotation, info]
    return TypeAdapter(section)


class _Sections:
    """The sections of a document, validated one by one.

    Args:
        known: what was wrong when the document was read.

    Attributes:
        valid: those that are valid when considered alone.
        problems: the mistakes in the others.
    """

    def __init__(self, root: Node, registry: Registry, known: Sequence[InputProblem]) -> None:
        self._unread = {one.key for one in known if one.message.endswith(KEYS_ARE_TEXT)} - {""}
        self._root, self._registry, self._data = root, registry, plain(root)
        self.valid: dict[str, Any] = {}
        self.problems: list[InputProblem] = []

    @cached_property
    def _explainer(self) -> Explainer:
        """What explains mistakes; documents without mistakes do without."""
        from coband.simulator.experiments.scenario.explain import DocumentWording, Explainer

        entries, problem = (self._data.get(key) for key in ("algorithms", "problem"))
        names = frozenset(_named(one, "algorithm") for one in entries) if isinstance(entries, list) else frozenset()
        wording = DocumentWording(only(self._registry, names, _named(problem, "kind")))
        return Explainer(self._root, wording, self._registry.broken)

    @property
    def further(self) -> list[InputProblem]:
        """The mistakes, but for those in mappings that were not read wholly, which may follow from that."""
        return [one for one in self.problems if one.key not in self._unread]

    def read_all(self) -> None:
        """Validate the document."""
        known = Document.model_fields
        unknown = [(key,) for key in self._data if key not in known]
        meant = {one for path in unknown for one in self._explainer.meant(path)}
        self.problems += [self._explainer.unknown_key(path) for path in unknown]
        for key, info in known.items():
            if key in self._data:
                self.read(key)
            elif info.is_required():
                self.problems += [self._explainer.missing((), key)] if (key,) not in meant else []
            else:
                self.valid[key] = info.get_default(call_default_factory=True)

    def read(self, key: str) -> None:
        """Validate a section that there is."""
        before, data = len(self.problems), self._data[key]
        value = self._validated(_reader(key), data, (key,))
        kind, problems = _named(data, "kind"), self._registry.problems
        if key == "problem" and value is not None:
            if kind in problems:
                value = self._validated(adapter(problems[kind].config), data, ("problem",))
            else:
                self.problems.append(self._explainer.unknown_name(("problem",), "kind", list(problems)))
        elif key == "algorithms" and isinstance(data, list):
            value = tuple(self._entry(number, one) for number, one in enumerate(data) if isinstance(one, dict))
        if len(self.problems) == before:
            self.valid[key] = value

    def _validated(self, reader: TypeAdapter[Any], data: Any, path: KeyPath) -> Any:
        """Validate strictly: numbers, text and booleans are not converted into each other; None, with a problem, where
        something is wrong."""
        try:
            return validated_strictly(reader, json.dumps(data))
        except ValidationError as error:
            self.problems += self._explainer.explain(error.errors(include_url=False), path)
        except OSError as error:
            self.problems.append(key_mark(self._root, path).problem(path, f"{error.filename}: {error.strerror}"))
        return None

    def _entry(self, number: int, data: dict[str, Any]) -> ScenarioEntry | None:
        path, name = ("algorithms", number), _named(data, "algorithm")
        if name not in self._registry.algorithms:
            self.problems.append(self._explainer.unknown_name(path, "algorithm", list(self._registry.algorithms)))
            return None
        algorithm = self._registry.algorithms[name]
        parameters = {key: value for key, value in data.items() if key not in RESERVED}
        if algorithm.config.model_config.get("extra") != "forbid":
            names = {field.alias or name for name, field in algorithm.config.model_fields.items()}
            unknown = [key for key in parameters if key not in names]
            self.problems += [self._explainer.unknown_key((*path, key)) for key in unknown]
        about = {key: value for key, value in data.items() if key in RESERVED}
        entry = self._validated(adapter(AlgorithmEntry), about, path)
        config = self._validated(adapter(algorithm.config), parameters, path)
        return entry and ScenarioEntry(algorithm, entry.label or name, config, entry.ties)


def _named(part: Any, key: str) -> str:
    """The kind or algorithm that a part of a document names; also a word that stands for it."""
    return str(part.get(key) if isinstance(part, dict) else part)


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


def mistakes_in_grid(root: Node, registry: Registry, known: Sequence[InputProblem]) -> list[InputProblem]:
    """The mistakes in ``grid`` and ``zip`` that are not known, where there are any."""
    sections = _Sections(root, registry, known)
    for key in ("grid", "zip"):
        if descend(root, key) is not None:
            sections.read(key)
    return sections.further


def validated(root: Node, base: Path, registry: Registry, problems: Sequence[InputProblem] = ()) -> Point:
    """Validate a document.

    Args:
        base: the directory of relative file names.
        problems: what is known to be wrong with it.

    Raises:
        ScenarioError: the document is invalid; the error lists every mistake.
    """
    named = with_absolute_paths(root, base)
    sections = _Sections(named, registry, problems)
    sections.read_all()
    found = [*problems, *sections.further, *broken_rules(named, sections.valid, registry)]
    if found:
        raise ScenarioError(found)
    further = {key: sections.valid.pop(key) for key in ("grid", "zip", "tuning", "until")}
    return Point(Scenario(**sections.valid, base=base), further["until"], further["tuning"], root)


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
    _, grid, _ = split(root, overrides, registry.takes)
    if grid.axes:
        raise ScenarioError([*problems, _is_a_sweep(root, grid, str(path))])
    return validated(root, base, registry, problems)


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


def read_document(
    text: str, file: str, overrides: Sequence[str], registry: Registry
) -> tuple[Node, list[InputProblem]]:
    """Read a document and apply overrides, without validating it; return it with the mistakes found so far.

    Raises:
        ScenarioError: the text is not a mapping in valid YAML, or says a ``schema_version`` that is not read here.
    """
    root, problems = read(text, file)
    if not isinstance(root.value, dict):
        what = "the file is empty" if plain(root) is None else f"{given(root)} is not a scenario"
        message = f"{what}; a scenario is a mapping of keys (name, agents, ...)"
        raise ScenarioError([*problems, root.mark.problem((), message)])
    for setting in overrides:
        try:
            root, more = override(root, setting, registry.takes)
            problems += more
        except ScenarioError as error:
            problems += error.problems
    version = descend(root, "schema_version")
    if version is not None and (type(version.value) is not int or version.value != CURRENT):
        # before all else: other mistakes would mislead
        message = f"{given(version)} is not allowed: this coband reads {CURRENT}; a larger number asks for a newer one"
        raise version.mark.error(message, ("schema_version",))
    return root, problems


def _is_a_sweep(root: Node, grid: Grid, file: str) -> InputProblem:
    chosen = [f"{key.path}={value.text}" for key, value in grid.chosen(next(grid.points()))]
    if (tuning := descend(root, "tuning")) is not None and tuning.value is not None:
        chosen.append("tuning=null")
    sweep, one = f"`coband sweep {shlex.quote(file)}`", " ".join(f"--set {shlex.quote(one)}" for one in chosen)
    if file.startswith("<"):  # text, or a mapping
        sweep, one = "coband.sweep", f"set={chosen}"
    points = f"{len(grid)} point{'s' * (len(grid) != 1)}"
    message = f"this scenario has {points}: run them with {sweep}, or one of them with {one}"
    return grid.axes[0].keys[0].mark.problem(("grid",), message)
