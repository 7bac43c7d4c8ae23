"""What a search may try: the parameters of each algorithm of a scenario; its points as validated scenarios."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from pathlib import Path

from coband.simulator.analysis.frontier.ranges import Between, Listed, Range, parse
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.runs.address import Files, configuration_digest
from coband.simulator.experiments.runs.planner import Parameter, Variant
from coband.simulator.experiments.scenario.loading import validated
from coband.simulator.experiments.scenario.overrides import items_named, set_value, steps_of
from coband.simulator.experiments.scenario.scenario import Scenario
from coband.simulator.experiments.scenario.yaml_nodes import Mark, Node, descend, text_at
from coband.simulator.experiments.sweep.grid import Grid, Key, Value, with_short_names
from coband.simulator.scenario_errors import ScenarioError, did_you_mean, quoted


@dataclass(frozen=True)
class Dimension:
    """One parameter of one entry of ``algorithms``.

    Attributes:
        path: for ``--set``, such as ``algorithms.Async.threshold``.
        steps: of the path, with the entry's number in the place of its label.
    """

    path: str
    name: str
    steps: tuple[str, ...]
    range: Range
    mark: Mark


Point = tuple[Value, ...]
"""The value of each dimension of a space."""
Labels = tuple[str, ...]


def labels(point: Point) -> Labels:
    """How results call the values of a point, which tells it apart from the others."""
    return tuple(value.label for value in point)


@dataclass(frozen=True)
class Space:
    """The parameters of one entry that are searched.

    Attributes:
        number: of the entry, from 0.
        dimensions: none for an entry that is tried as it is.
    """

    number: int
    label: str
    dimensions: tuple[Dimension, ...] = ()

    @property
    def size(self) -> int | None:
        """How many points it has; None for too many to try them all."""
        counts = [one.range.count for one in self.dimensions]
        return None if None in counts else prod(count for count in counts if count is not None)

    def points(self) -> Iterator[Point]:
        """All points of a space that has a size, the last dimension fastest."""
        return product(*(one.range.values for one in self.dimensions))


def spaces(root: Node, grid: Grid, vary: Sequence[str], only: Sequence[str], registry: Registry) -> list[Space]:
    """The spaces of the entries of a scenario.

    A parameter is searched if the file's grid or ``vary`` says so; of several about one parameter the last
    counts. Where neither says anything, the ranges count that algorithms declare.

    Args:
        root: the document without its grid.
        grid: its grid; every key must be a parameter of algorithms.
        vary: ``KEY=RANGE``, as given to ``--vary``.
        only: labels or names of algorithms; empty for all.

    Raises:
        ScenarioError: a key leads nowhere or is none of an algorithm, a range is wrong, or nothing varies.
    """
    entries = descend(root, "algorithms")
    if entries is None or not entries.items:
        return []
    names = _labels(entries)
    chosen = _selected(entries, names, only)
    ranges: dict[int, dict[tuple[str, ...], tuple[Range, Mark]]] = {number: {} for number in chosen}
    given = [*_of_grid(grid), *map(_of_option, vary)] or list(_declared(entries, registry))
    for path, found, mark in given:
        steps = steps_of(path)
        if steps[0] != "algorithms" or len(steps) < 3 or not all(steps):
            raise mark.error(_NOT_OF_ALGORITHMS, (path,))
        numbers = items_named(entries, steps[1], steps[2:], mark, ("algorithms",), registry.takes)
        for number in numbers & set(chosen):
            ranges[number][tuple(steps[2:])] = (found, mark)
    if not any(ranges.values()):
        raise root.mark.error(_NOTHING_VARIES)
    return [_space(number, names[number], ranges[number]) for number in chosen]


_NOT_OF_ALGORITHMS = (
    "a frontier compares parameters of algorithms in one world, such as algorithms.Async.threshold; fix this key with "
    "--set KEY=VALUE"
)
_NOTHING_VARIES = (
    "nothing to search: none of the algorithms declares a range; say what may vary with --vary "
    "algorithms.LABEL.PARAMETER=LOW..HIGH, or with a grid: of such keys in the file"
)


def _labels(entries: Node) -> list[str]:
    return [text_at(item, "label") or text_at(item, "algorithm") or "" for item in entries.items]


def _selected(entries: Node, labels: Sequence[str], only: Sequence[str]) -> list[int]:
    """Numbers of the entries that are asked for.

    Raises:
        ScenarioError: there is no such entry.
    """
    names = [text_at(item, "algorithm") or "" for item in entries.items]
    for wanted in only:
        if wanted not in (*labels, *names):
            known = list(dict.fromkeys([*labels, *names]))
            near = did_you_mean(wanted, known) or f"; there is {', '.join(known)}"
            raise Mark("--only").error(f"no algorithm or label {quoted(wanted)}{near}")
    pairs = enumerate(zip(labels, names, strict=True))
    return [number for number, pair in pairs if not only or not {*pair}.isdisjoint(only)]


_Given = tuple[str, Range, Mark]


def _of_grid(grid: Grid) -> Iterator[_Given]:
    for axis in grid.axes:
        first = axis.keys[0]
        if len(axis.keys) > 1:
            message = "keys that change together are not searched; fix them with --set, or give --vary"
            raise first.mark.error(message, ("zip", first.path))
        yield first.path, Listed(first.values), first.mark


def _of_option(text: str) -> _Given:
    key, sign, found = text.partition("=")
    mark = Mark(f"--vary {text}")
    if not sign or not key.strip() or not found.strip():
        raise mark.error("must be KEY=LOW..HIGH or KEY=VALUE,VALUE, such as algorithms.Async.threshold=0.01..100")
    return key.strip(), parse(found, mark, key.strip()), mark


def _declared(entries: Node, registry: Registry) -> Iterator[_Given]:
    for number, item in enumerate(entries.items):
        algorithm = registry.algorithms.get(text_at(item, "algorithm") or "")
        for parameter, text in ({} if algorithm is None else algorithm.search).items():
            path = f"algorithms.{number}.{parameter}"
            yield path, parse(text, Mark(f"{path}={text}"), path), item.mark


def _space(number: int, label: str, ranges: Mapping[tuple[str, ...], tuple[Range, Mark]]) -> Space:
    spelled = label if "." not in label and not label.isdecimal() else str(number)
    paths = {steps: ".".join(("algorithms", spelled, *steps)) for steps in ranges}
    names = with_short_names([Key(path, path, ranges[steps][1], ()) for steps, path in paths.items()])
    dimensions = [
        Dimension(paths[steps], key.name, ("algorithms", str(number), *steps), *ranges[steps])
        for steps, key in zip(ranges, names, strict=True)
    ]
    return Space(number, label, tuple(dimensions))


class Candidates:
    """Variants of a scenario, one for each point that is tried.

    Args:
        root: the document, with one value for each key of its grid.
        settings: for ``--set``, before those of a point: the values of the grid's keys.
        file: that the document comes from, if it is one.

    Attributes:
        made: the variants so far, in the order of their numbers.
        files: digests of the files that scenarios name.
    """

    def __init__(
        self, root: Node, base: Path, registry: Registry, settings: Sequence[str], file: Path | None = None
    ) -> None:
        self._root, self._base, self._registry, self._settings = root, base, registry, tuple(settings)
        self.made: list[Variant] = []
        self.files = Files(base, file)

    def scenario(self, space: Space, point: Point) -> Scenario:
        """The scenario at a point.

        Raises:
            ScenarioError: it is not valid.
        """
        root = self._root
        for one, value in zip(space.dimensions, point, strict=True):
            root = set_value(root, list(one.steps), value.node, one.mark, self._registry.takes)
        return validated(root, self._base, self._registry).scenario

    def new(self, space: Space, point: Point) -> Variant | None:
        """The next variant; None where the values do not go together."""
        try:
            scenario = self.scenario(space, point)
        except ScenarioError:
            return None
        entry = scenario.algorithms[space.number]
        parameters = tuple(
            Parameter(one.path, one.name, value.label, value.number, tuned=True)
            for one, value in zip(space.dimensions, point, strict=True)
        )
        own = tuple(f"{one.path}={value.text}" for one, value in zip(space.dimensions, point, strict=True))
        alone = replace(scenario, algorithms=(entry,), expect=(), trace="off")
        digest = configuration_digest(alone, self.files)[entry.label]
        variant = Variant(len(self.made), entry.label, alone, parameters, (*self._settings, *own), digest)
        self.made.append(variant)
        return variant

    def checked(self, space: Space) -> Space:
        """The space, with fractions where a parameter takes them.

        Raises:
            ScenarioError: an end of a range, or a value of a list, is not allowed.
        """
        dimensions = []
        for one in space.dimensions:
            alone, found = replace(space, dimensions=(one,)), one.range
            for value in found.ends:
                self.scenario(alone, (value,))
            if isinstance(found, Between) and found.whole and self._takes_fractions(alone, found):
                one = replace(one, range=replace(found, whole=False))
            dimensions.append(one)
        return replace(space, dimensions=tuple(dimensions))

    def _takes_fractions(self, alone: Space, found: Between) -> bool:
        half = found.low + 0.5
        try:
            self.scenario(alone, (Value(str(half), Node(found.mark, half, str(half))),))
        except ScenarioError:
            return False
        return True
