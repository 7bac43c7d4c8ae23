"""A scenario file as a sweep: validated at every point of its grid, and what there is to run."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.runs.address import Files, configuration_digest
from coband.simulator.experiments.runs.planner import Parameter, Variant
from coband.simulator.experiments.runs.study import Study
from coband.simulator.experiments.scenario.document import Tuning
from coband.simulator.experiments.scenario.files import ScenarioText, read_scenario
from coband.simulator.experiments.scenario.loading import Point, mistakes_in_grid, read_document, validated
from coband.simulator.experiments.scenario.overrides import steps_of
from coband.simulator.experiments.scenario.scenario import Scenario
from coband.simulator.experiments.scenario.yaml_nodes import Node, descend, resolve
from coband.simulator.experiments.sweep.grid import Coordinates, Grid, Value, split
from coband.simulator.scenario_errors import InputProblem, ScenarioError, did_you_mean, quoted

if TYPE_CHECKING:
    from coband.simulator.experiments.runs.job import Level

_PLAIN = re.compile(r"[\w./-]+")
MOST_POINTS = 20_000
MOST_PROBLEMS = 50


def load_study(
    path: str | Path | ScenarioText,
    overrides: Sequence[str] = (),
    *,
    trace: Level = "off",
    registry: Registry | None = None,
) -> Study:
    """Read a scenario file as a sweep; without a grid it has one point.

    Args:
        path: the file, or the name of a scenario that comes with coband, or the text itself.
        overrides: ``key.path=value``, as given to ``--set``; one of a key of the grid fixes that key.
        trace: how much of their traces jobs keep, whatever the file says.
        registry: what the scenario can name; None for what is installed.

    Raises:
        ScenarioError: with everything that is wrong at any point.
    """
    text, base = read_scenario(path)
    registry = registry or Registry.installed()
    root, rest, grid, problems = divided(text, str(path), overrides, registry)
    if len(grid) > MOST_POINTS:
        message = f"{len(grid):,} points are too many: at most {MOST_POINTS:,}; make several sweeps of it"
        raise ScenarioError([*problems, grid.axes[0].keys[0].mark.problem(("grid",), message)])
    points = _at_all(rest, grid, registry, base, problems)
    *_, last = points.values()
    tuned = _tuned_axes(root, grid, last.tuning)
    files = Files(base, path if isinstance(path, Path) else None)
    scenarios = {place: point.scenario for place, point in points.items()}
    variants = _variants(grid, scenarios, tuned, files, trace)
    first = next(iter(scenarios.values()))
    return Study(
        name=first.name,
        text=text,
        variants=tuple(variants),
        numbers=tuple(range(first.replications)),
        until=last.until,
        missing=files.missing,
        unknown=tuple(files.code.unknown),
        points=len(grid),
        tuning=last.tuning,
        gridded=any(descend(root, key) is not None for key in ("grid", "zip")),
    )


def divided(
    text: str, file: str, overrides: Sequence[str], registry: Registry
) -> tuple[Node, Node, Grid, list[InputProblem]]:
    """A document, the same without its grid, the grid, and what is wrong so far.

    Raises:
        ScenarioError: it cannot be read.
    """
    root, problems = read_document(text, file, overrides, registry)
    rest, grid, more = split(root, overrides, registry.takes)
    return root, rest, grid, problems + mistakes_in_grid(root, registry, problems) + more


def _at_all(
    rest: Node, grid: Grid, registry: Registry, base: Path, problems: list[InputProblem]
) -> dict[Coordinates, Point]:
    """The scenarios at all points; all problems of all points at once."""
    points, found = dict[Coordinates, Point](), dict.fromkeys(problems)
    for place in grid.points():
        root, more = grid.apply(rest, place, registry.takes)
        try:
            points[place] = validated(root, base, registry, [*problems, *more])
        except ScenarioError as error:
            found.update(dict.fromkeys(error.problems))
    if found:
        raise ScenarioError(_shown(list(found)))
    return points


def _shown(problems: list[InputProblem]) -> list[InputProblem]:
    if len(problems) <= MOST_PROBLEMS:
        return problems
    ordered = ScenarioError(problems).problems
    last = ordered[MOST_PROBLEMS - 1]
    rest = replace(last, key="", message=f"{len(problems) - MOST_PROBLEMS} more problems are not shown")
    return [*ordered[:MOST_PROBLEMS], rest]


def _tuned_axes(root: Node, grid: Grid, tuning: Tuning | None) -> set[int]:
    """The axes along which tuning chooses.

    Raises:
        ScenarioError: ``over`` names a key that does not vary, or nothing varies that could be chosen.
    """
    if tuning is None:
        return set()
    section = descend(root, "tuning")
    assert section is not None
    if tuning.over is None:
        chosen = {number for number, axis in enumerate(grid.axes) if axis.of_algorithms}
        if not chosen:
            message = "nothing to choose: no key of the grid begins with algorithms.; name keys with over: [...]"
            raise section.mark.error(message, ("tuning",))
        return chosen
    known = {key.path: number for number, axis in enumerate(grid.axes) for key in axis.keys}
    named = [".".join(steps_of(path)) for path in tuning.over]
    problems = []
    for index, path in enumerate(named):
        if path not in known:
            item = descend(section, "over", index) or section
            near = did_you_mean(path, list(known))
            message = f"{quoted(path)} is not a key of the grid{near or ';'} keys: {', '.join(known)}"
            problems.append(item.mark.problem(("tuning", "over", index), message))
    if problems:
        raise ScenarioError(problems)
    return {known[path] for path in named}


def _variants(
    grid: Grid, scenarios: dict[Coordinates, Scenario], tuned: set[int], files: Files, trace: Level
) -> list[Variant]:
    """What there is to run: for each entry the points that differ for it."""
    digests: dict[str, dict[Coordinates, str]] = defaultdict(dict)
    for point, scenario in scenarios.items():
        for label, digest in configuration_digest(scenario, files).items():
            digests[label][point] = digest
    relevant = {label: _relevant(grid, found) for label, found in digests.items()}
    variants: list[Variant] = []
    seen: set[tuple[str, Coordinates]] = set()
    for point, scenario in scenarios.items():
        for entry in scenario.algorithms:
            axes = relevant[entry.label]
            cell = entry.label, tuple(point[axis] for axis in axes)
            if cell in seen:
                continue
            seen.add(cell)
            alone = replace(scenario, algorithms=(entry,), expect=(), trace=trace)
            parameters = tuple(
                Parameter(key.path, key.name, one.label, one.number, axis in tuned, key in grid.axes[axis].displayed)
                for axis in axes
                for key in grid.axes[axis].keys
                for one in (key.values[point[axis]],)
            )
            settings = tuple(f"{key.path}={_argument(value, scenario.base)}" for key, value in grid.chosen(point))
            digest = digests[entry.label][point]
            variants.append(Variant(len(variants), entry.label, alone, parameters, settings, digest))
    return variants


def _relevant(grid: Grid, digests: dict[Coordinates, str]) -> list[int]:
    """The axes along which an entry's digest changes anywhere."""
    found = []
    for axis in range(len(grid.axes)):
        lines: dict[Coordinates, set[str]] = defaultdict(set)
        for point, digest in digests.items():
            lines[point[:axis] + point[axis + 1 :]].add(digest)
        if any(len(line) > 1 for line in lines.values()):
            found.append(axis)
    return found


def _argument(value: Value, base: Path) -> str:
    """A value for ``--set``, which reads names of files from the working directory."""
    given = value.node.scalar
    if not isinstance(given, str):
        return value.text
    if (base / given).exists():
        return str(base / given)
    return given if _PLAIN.fullmatch(given) and resolve(given) == given else value.text
