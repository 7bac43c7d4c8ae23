"""The ``grid`` and ``zip`` of a scenario file: axes, their values and labels, each with its place in the file."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from coband.simulator.experiments.scenario.document import one_line
from coband.simulator.experiments.scenario.overrides import Takes, in_one_line, places, set_value, steps_of
from coband.simulator.experiments.scenario.yaml_nodes import Mark, Node, descend, plain
from coband.simulator.scenario_errors import InputProblem, KeyPath, ScenarioError, quoted, shortened

LONGEST_LABEL = 40
FIXED = (
    *("schema_version", "name", "description", "replications", "expect", "trace"),
    *("grid", "zip", "tuning", "until"),
)
"""Keys that are the same at all points."""


@dataclass(frozen=True)
class Value:
    """One value of a key, and how results call it."""

    label: str
    node: Node

    @property
    def number(self) -> float | None:
        """The value as a number; None for anything else."""
        value = self.node.scalar
        return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None

    @property
    def text(self) -> str:
        """The value as ``--set`` reads it."""
        return in_one_line(plain(self.node))


@dataclass(frozen=True)
class Key:
    """One key of the grid with its values.

    Attributes:
        path: as written, such as ``algorithms.Async.alpha``.
        name: a short form that tells it apart from the other keys.
        mark: where it is written.
    """

    path: str
    name: str
    mark: Mark
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Axis:
    """One direction of the grid: a key, or several that go in step."""

    keys: tuple[Key, ...]

    @property
    def displayed(self) -> tuple[Key, ...]:
        """The keys that results name: the first alone where all call their values alike."""
        labels = {tuple(value.label for value in key.values) for key in self.keys}
        return self.keys[:1] if len(labels) == 1 else self.keys

    @property
    def of_algorithms(self) -> bool:
        """Whether it changes algorithms and not the world."""
        return all(steps_of(key.path)[0] == "algorithms" for key in self.keys)

    def __len__(self) -> int:
        return min(len(key.values) for key in self.keys)


Coordinates = tuple[int, ...]
_Setter = tuple[Mark, str, set[KeyPath]]
"""Something that sets a value: where it is written, the key path, and the places to which that leads."""


class Grid:
    """All points: every value of every axis with every other."""

    def __init__(self, axes: Sequence[Axis]) -> None:
        self.axes = tuple(axes)

    def __len__(self) -> int:
        return math.prod(map(len, self.axes))

    def points(self) -> Iterator[Coordinates]:
        """The numbers of the values on each axis, the last axis fastest."""
        return product(*(range(len(axis)) for axis in self.axes))

    def chosen(self, point: Coordinates) -> Iterator[tuple[Key, Value]]:
        """Every key with its value at a point."""
        for axis, index in zip(self.axes, point, strict=True):
            for key in axis.keys:
                yield key, key.values[index]

    def apply(self, root: Node, point: Coordinates, takes: Takes) -> tuple[Node, list[InputProblem]]:
        """The document with the values of a point, and a problem for each key that leads nowhere."""
        problems: list[InputProblem] = []
        for key, value in self.chosen(point):
            try:
                root = set_value(root, steps_of(key.path), value.node, key.mark, takes)
            except ScenarioError as error:
                problems += error.problems
        return root, problems


def split(root: Node, settings: Sequence[str], takes: Takes) -> tuple[Node, Grid, list[InputProblem]]:
    """The document without ``grid`` and ``zip``, its grid, and what is wrong with it.

    Args:
        root: the document; where the sections are not of the right shape, they are passed over: validation finds them.
        settings: those of ``--set``: a key that they set, by whatever name, has that value at all points.
        takes: whether an algorithm has a parameter.
    """
    given = {setting: ".".join(steps_of(setting.partition("=")[0])) for setting in settings}
    where = {path: places(root, steps_of(path), takes) for path in given.values()}
    everywhere = set[KeyPath]().union(*where.values())

    def varies(path: str) -> bool:
        found = places(root, steps_of(path), takes)
        return path not in where and not (found and found <= everywhere)

    groups = [kept for keys in _groups(root) if (kept := [key for key in keys if varies(key.path)])]
    short = iter(with_short_names([key for keys in groups for key in keys]))
    axes = [Axis(tuple(next(short) for _ in keys)) for keys in groups]
    problems = [problem for axis in axes for problem in _problems(axis)] + list(_twice(axes))
    ordered = [(Mark(f"--set {shortened(setting)}"), path, where[path]) for setting, path in given.items()]
    ordered += [(key.mark, key.path, places(root, steps_of(key.path), takes)) for axis in axes for key in axis.keys]
    problems += _overwritten(ordered, len(given))
    rest = Node(root.mark, {key: entry for key, entry in root.entries.items() if key not in ("grid", "zip")})
    return rest, Grid(axes), problems


def _groups(root: Node) -> Iterator[list[Key]]:
    for key in _keys(descend(root, "grid")):
        yield [key]
    zipped = descend(root, "zip")
    for section in (zipped and zipped.items) or (zipped,):
        yield list(_keys(section))


def _keys(section: Node | None) -> Iterator[Key]:
    for path, node in section.entries.items() if section else ():
        name = ".".join(steps_of(path))
        if values := tuple(values_of(node)):
            yield Key(name, name, node.key or node.mark, values)


def values_of(node: Node) -> Iterator[Value]:
    """The values of a list, or of a mapping from labels to values."""
    yield from (Value(label, value) for label, value in node.entries.items())
    yield from (Value(_spelled(item), item) for item in node.items)


def _spelled(node: Node) -> str:
    """A value as its own label."""
    if isinstance(node.value, dict):
        return f"{{{', '.join(f'{key}: {_spelled(value)}' for key, value in node.value.items())}}}"
    if isinstance(node.value, tuple):
        return f"[{', '.join(map(_spelled, node.value))}]"
    return node.text or "null"


def with_short_names(keys: Sequence[Key]) -> Iterator[Key]:
    """The keys with short names: the last steps of the path, as many as tell it apart from the others."""
    parts = [_telling(key) for key in keys]
    for key, steps in zip(keys, parts, strict=True):
        others = [other for other in parts if other != steps]
        lengths = range(1, len(steps))
        short = next((n for n in lengths if not any(other[-n:] == steps[-n:] for other in others)), len(steps))
        yield Key(key.path, ".".join(steps[-short:]), key.mark, key.values)


def _telling(key: Key) -> list[str]:
    """The steps of a path without the name of the algorithm, which results name anyway."""
    steps = steps_of(key.path)
    return steps[2:] if steps[0] == "algorithms" and len(steps) > 2 else steps


def _problems(axis: Axis) -> Iterator[InputProblem]:
    for key in axis.keys:
        steps = steps_of(key.path)
        if not all(steps):
            yield key.mark.problem((), f"{quoted(key.path)} is not a key path; write key.path, such as agents.count")
        elif steps[0] in FIXED:
            yield key.mark.problem((), f"{quoted(steps[0])} is the same at all points and cannot vary")
        if len(key.values) != len(axis.keys[0].values):
            first = f"{quoted(axis.keys[0].path)} has {len(axis.keys[0].values)}"
            message = f"has {len(key.values)} values, and {first}: keys under zip need equally many"
            yield key.mark.problem((key.path,), message)
        yield from _labels(key, alone=len(axis.keys) == 1)


def _labels(key: Key, alone: bool) -> Iterator[InputProblem]:
    """Labels that are too long, or given twice where the key is an axis of its own."""
    seen: set[str] = set()
    for value in key.values:
        try:
            one_line(value.label)
        except ValueError as error:
            yield value.node.mark.problem((key.path,), str(error))
        if len(value.label) > LONGEST_LABEL:
            message = f"needs a label of at most {LONGEST_LABEL} characters: write {{label: value, ...}} for the list"
            yield value.node.mark.problem((key.path,), message)
        elif alone and value.label in seen:
            yield value.node.mark.problem((key.path,), f"{quoted(value.label)} is given twice")
        seen.add(value.label)


def _twice(axes: Iterable[Axis]) -> Iterator[InputProblem]:
    seen: set[str] = set()
    for key in (key for axis in axes for key in axis.keys):
        if key.path in seen:
            yield key.mark.problem((), f"{quoted(key.path)} varies twice; give it once, under grid or under zip")
        seen.add(key.path)


def _overwritten(ordered: Sequence[_Setter], settings: int) -> Iterator[InputProblem]:
    """Settings, which come first, and keys of which later keys with other names leave nothing."""
    for number, (mark, path, found) in enumerate(ordered):
        later = ordered[max(number + 1, settings) :]
        over = {place: name for _, name, more in later if name != path for place in more}
        hidden = [[over[place[:n]] for n in range(len(place) + 1) if place[:n] in over] for place in found]
        if hidden and all(hidden):
            which = quoted(hidden[0][0])
            message = f"{quoted(path)} changes nothing: {which} varies and sets the same after it; give one of the two"
            yield mark.problem((), message)
