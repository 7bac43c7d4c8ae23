"""Scenarios in Python: from files, text, mappings or by name, changed key by key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, TypeGuard

from pydantic import BaseModel

from coband.simulator.api.errors import translated
from coband.simulator.experiments.registry.registry import ALGORITHMS, Registry, ensure, ensured_algorithm
from coband.simulator.experiments.runs.preflight import preflight
from coband.simulator.experiments.scenario import files
from coband.simulator.experiments.scenario.files import ScenarioText, read_scenario
from coband.simulator.experiments.scenario.loading import read_document
from coband.simulator.experiments.scenario.overrides import in_one_line, to_yaml
from coband.simulator.experiments.scenario.yaml_nodes import SURROGATE, Node, plain
from coband.simulator.experiments.store.files import replace_text, writing_to
from coband.simulator.experiments.sweep.grid import split
from coband.simulator.experiments.sweep.study import load_study
from coband.simulator.plugins.entry_points import PluginError
from coband.simulator.plugins.functions import name_in_scenarios
from coband.simulator.scenario_errors import InputProblem, ScenarioError

Settings = Mapping[str, Any] | Iterable[str] | str
"""Changes of a scenario: ``{"agents.count": 20}``, or ``"agents.count=20"`` as on the command line, one or several."""
FROM_DICT = "<dict>"
FROM_TEXT = "<string>"
MOST_EDGES = 20_000
"""Edges of a graph that is written into a scenario."""
MOST = 10**4000
"""Whole numbers that can be written are smaller; validation says how large they may be."""


@dataclass(frozen=True)
class Scenario:
    """A scenario: what to run. It never changes; `with_` makes another one.

    Attributes:
        source: where it is read from: a file, the name of a scenario that comes with coband, or text.
        settings: ``key.path=value``, applied in this order.
    """

    source: Path | ScenarioText
    settings: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, given: Scenario | Mapping[str, Any] | str | PathLike[str], *, base: str | PathLike[str] | None = None
    ) -> Scenario:
        """Whatever describes a scenario.

        Args:
            given: a scenario; a mapping; the path of a file, or the name of a scenario that comes with coband; or YAML
                text, which has several lines or begins with a brace.
            base: for text and mappings, the directory of relative file names in them; None for the working directory.

        Raises:
            ScenarioError: there is no such file, or it cannot be read as YAML.
        """
        if isinstance(given, Scenario):
            return given
        if isinstance(given, Mapping):
            return cls.from_dict(given, base=base)
        if not isinstance(given, (str, PathLike)):
            raise TypeError(
                f"a scenario is a file, a name, YAML text, a mapping or a Scenario, not {type(given).__name__}"
            )
        text = is_text(given)
        return cls(ScenarioText(str(given), FROM_TEXT, _folder(base)) if text else Path(given))._readable()

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], *, base: str | PathLike[str] | None = None) -> Scenario:
        """A scenario from a mapping with the keys of a scenario file; numpy's numbers and arrays may be in it.

        ``problem`` may be a `Problem`, such as `Problem.from_arrays` makes.

        Args:
            document: section -> its content.
            base: the directory of relative file names in it; None for the working directory.

        Raises:
            ScenarioError: a value is of no type that a scenario can have.
        """
        if not isinstance(document, Mapping):
            raise _mistake(
                "", f"a mapping is needed, not {type(document).__name__}; Scenario.of takes files, names and text"
            )
        try:
            text = to_yaml({str(key): simple(value, str(key)) for key, value in document.items()})
        except RecursionError:
            raise _mistake("", "lists and mappings are too deep in each other, or within themselves") from None
        return cls(ScenarioText(text, FROM_DICT, _folder(base)))._readable()

    def with_(self, settings: Settings | None = None, /, **sections: Any) -> Scenario:
        """The scenario with other values.

        ``scenario.with_({"agents.count": 20, "algorithms.*.alpha": 0.1}, replications=4)`` changes three values. Key
        paths are those of ``--set`` on the command line. A mapping replaces a whole section, and so does
        ``problem=Problem.from_arrays(...)``. Mistakes show all at once, when the scenario is validated or run.

        Args:
            settings: key path -> value, or texts ``key.path=value``.
            sections: values of single keys at the top level.

        Raises:
            ScenarioError: a value is of no type that a scenario can have.
        """
        changes = (*settings_of(settings), *settings_of(sections))
        return replace(self, settings=(*self.settings, *changes))._readable() if changes else self

    def to_yaml(self, path: str | PathLike[str] | None = None) -> str:
        """The text of a scenario file: as it was given, or with the values that were set, and without comments then.

        Args:
            path: a file to write it to, too; it is replaced. Arrays that are too large for a text go beside it.

        Raises:
            RunError: the file cannot be written.
        """
        text = to_yaml(self.to_dict()) if self.settings else self._read[0]
        if path is not None:
            with self.errors(), writing_to(Path(path), "Give another path."):
                files.write(files.problems_in(self.to_dict(), self._read[1]), Path(path).parent)
                replace_text(Path(path), text)
        return text

    def to_dict(self) -> dict[str, Any]:
        """The scenario as plain values, with the values that were set; defaults are not filled in."""
        document: dict[str, Any] = plain(self._root)
        return document

    def validate(self) -> Scenario:
        """Look for all mistakes, as ``coband validate`` does: draw the first world and make the nodes.

        Returns:
            The scenario itself.

        Raises:
            ScenarioError: with everything that is wrong.
        """
        with self.errors():
            study = load_study(self.source, self.settings)
            problems = preflight(self.source, self.settings, study).problems
            if problems:
                raise ScenarioError(problems)
        return self

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.to_dict().get("name", ""))

    @property
    def labels(self) -> list[str]:
        """Labels of its algorithms."""
        entries = self.to_dict().get("algorithms")
        found = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
        return [str(entry.get("label") or entry.get("algorithm")) for entry in found]

    @cached_property
    def is_sweep(self) -> bool:
        """Whether it has a grid, so that `coband.sweep` runs it."""
        return bool(split(self._root, self.settings, Registry.installed().takes)[1].axes)

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Give errors of the program in the terms of Python; those about a mapping have no lines."""
        try:
            with translated():
                yield
        except ScenarioError as error:
            if str(self.source) != FROM_DICT:
                raise
            found = [
                replace(one, file="scenario", line=None, column=None) if one.file == FROM_DICT else one
                for one in error.problems
            ]
            raise ScenarioError(found) from None

    @cached_property
    def _read(self) -> tuple[str, Path]:
        """Its text, and the directory of relative file names in it."""
        return read_scenario(self.source)

    @cached_property
    def _root(self) -> Node:
        """The document, with settings applied; mistakes in it are left to validation."""
        return read_document(self._read[0], str(self.source), self.settings, Registry.installed())[0]

    def _readable(self) -> Scenario:
        with self.errors():
            assert self._root is not None
        return self

    def __repr__(self) -> str:
        changes = f", {len(self.settings)} settings" if self.settings else ""
        return f"Scenario({self.name!r}, {', '.join(self.labels)}{changes})"


def settings_of(given: Settings | None) -> tuple[str, ...]:
    """Changes as ``key.path=value``.

    Raises:
        ScenarioError: a value is of no type that a scenario can have, or there are no changes.
    """
    if given is None:
        return ()
    if isinstance(given, str):
        return (given,)
    if isinstance(given, Mapping):
        return tuple(f"{key}={in_one_line(simple(value, key))}" for key, value in given.items())
    found = list(given) if isinstance(given, Iterable) else [given]
    if not all(isinstance(one, str) for one in found):
        raise _mistake("", f"changes are a mapping or texts key.path=value, not {given!r}")
    return tuple(found)


def is_text(source: object) -> TypeGuard[str]:
    """Whether this is the text of a scenario, and not the name of a file."""
    return isinstance(source, str) and (not source.strip() or "\n" in source or source.lstrip().startswith("{"))


def simple(value: Any, key: str) -> Any:
    """A value in the types of YAML: numbers, texts, lists and mappings.

    An object of a kind, an algorithm or a function that is not installed is registered, so that its name can stand for
    it; a networkx graph is a list of links.

    Raises:
        ScenarioError: it is of another type.
    """
    if hasattr(value, "tolist"):  # numpy's arrays and numbers
        return simple(value.tolist(), key)
    if isinstance(value, str) and SURROGATE.search(value):
        raise _mistake(key, f"{value!a} has half a surrogate pair, which is not text")
    if isinstance(value, int) and abs(value) >= MOST:
        raise _mistake(key, "a number of more than 4,000 digits cannot be a value of a scenario")
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if ALGORITHMS.accepts(value):
        with refused(key):
            algorithm = ensured_algorithm(value)
        return algorithm.name if key.endswith(".algorithm") else {"algorithm": algorithm.name}
    with refused(key):
        ensure(type(value))
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: simple(getattr(value, one.name), f"{key}.{one.name}") for one in fields(value) if one.init}
    if isinstance(value, BaseModel):
        for name, item in value:
            if isinstance(item, BaseModel):
                simple(item, f"{key}.{name}")  # for what has to be registered
        dumped = value.model_dump(mode="json", by_alias=True)
        given = {type(value).model_fields[name].alias or name for name in value.model_fields_set}
        return {name: item for name, item in dumped.items() if item is not None or name in given}
    if isinstance(value, Mapping):
        return {str(name): simple(item, f"{key}.{name}") for name, item in value.items()}
    if isinstance(value, PathLike):
        return str(Path(value))
    if hasattr(value, "adjacency") and hasattr(value, "is_directed"):
        return _links_of(value, key)
    if callable(value) and not isinstance(value, type):
        return {"kind": "python" if key.endswith("reward") else "sampler", "function": name_in_scenarios(value)}
    if isinstance(value, Iterable) and not isinstance(value, (bytes, Set)):  # a set has no order
        return [simple(item, f"{key}[{number}]") for number, item in enumerate(value)]
    what = f"the class {value.__name__}" if isinstance(value, type) else f"an object of type {type(value).__name__}"
    what = f"{what} cannot be a value of a scenario"
    raise _mistake(key, f"{what}; give numbers, texts, lists or mappings, an object of a kind, a graph or a function")


def _links_of(graph: Any, key: str) -> dict[str, Any]:
    """A networkx graph as a topology; its nodes are the agents, in their order."""
    if graph.is_directed():
        raise _mistake(key, "links have no direction; give graph.to_undirected()")
    if graph.number_of_edges() > MOST_EDGES:
        advice = "write it with networkx.write_edgelist and give {kind: edge_list, file: ...}"
        raise _mistake(
            key, f"a graph of more than {MOST_EDGES:,} links is too large for the text of a scenario; {advice}"
        )
    number = {node: agent for agent, node in enumerate(graph)}
    edges = [[number[one], number[other]] for one, other in graph.edges()]
    return {"kind": "given", "nodes": len(number), "edges": edges}


@contextmanager
def refused(key: str) -> Iterator[None]:
    """Say where an object was given that its list does not take."""
    try:
        yield
    except PluginError as error:
        raise _mistake(key, str(error)) from None


def _mistake(key: str, message: str) -> ScenarioError:
    return ScenarioError([InputProblem("scenario", None, None, key, message)])


def _folder(base: str | PathLike[str] | None) -> Path:
    return Path.cwd() if base is None else Path(base).absolute()
