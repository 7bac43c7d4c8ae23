"""A scenario file as a sweep: validated at every point of its grid, and what there is to run."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.runs import results
from coband.simulator.experiments.runs.address import Files, configuration_digest
from coband.simulator.experiments.runs.footing import judged
from coband.simulator.experiments.runs.job import Level
from coband.simulator.experiments.runs.planner import (
    FRESH,
    TUNING,
    Choice,
    Parameter,
    Planner,
    Tally,
    Variant,
    tuned,
)
from coband.simulator.experiments.runs.results import Best, Entry, Failure, Results, Spread
from coband.simulator.experiments.runs.study import Study, check_known, counted
from coband.simulator.experiments.scenario.document import Tuning
from coband.simulator.experiments.scenario.files import ScenarioText, read_scenario
from coband.simulator.experiments.scenario.loading import mistakes_in, read_document, validated
from coband.simulator.experiments.scenario.overrides import steps_of
from coband.simulator.experiments.scenario.scenario import Scenario
from coband.simulator.experiments.scenario.yaml_nodes import Node, descend, resolve
from coband.simulator.experiments.statistics import estimates as statistics
from coband.simulator.experiments.sweep.grid import Coordinates, Grid, Key, Value, split
from coband.simulator.metrics import Metric
from coband.simulator.scenario_errors import InputProblem, ScenarioError, did_you_mean, quoted

if TYPE_CHECKING:
    from coband.simulator.experiments.store.manifest import Manifest

_PLAIN = re.compile(r"[\w./-]+")
MOST_POINTS = 20_000
MOST_PROBLEMS = 50


@dataclass(frozen=True)
class Sweep(Study):
    """A scenario at every point of its grid: variants entry by entry within each point, what is alike once.

    Attributes:
        points: how many points the grid has.
        tuning: how the best parameters are chosen; None to run all of them.
        gridded: whether the scenario has a grid, all of whose keys may be fixed.
    """

    points: int = 1
    tuning: Tuning | None = None
    gridded: bool = True

    bad_input_ends: ClassVar[bool] = False

    @property
    def first_replications(self) -> int:
        if self.tuning is None:
            return self.replications
        return self.tuning.replications

    def factors(self) -> tuple[str, str]:
        """What runs to begin with, and what follows; variants are fewer than points × algorithms if some are alike."""
        size = counted(len(self.entries), "algorithm")
        if self.points > 1:
            size = f"{counted(len(self.variants), 'variant')} of {size} at {self.points:,} points"
        if self.tuning is None:
            return f"{size} × {self.replications_in_words()}", ""
        tuned = f"{size} × {counted(self.first_replications, 'replication')}"
        return tuned, f" for tuning, then the best × {self.replications_in_words()}"

    def selected(self, only: Sequence[str]) -> Sweep:
        """The variants of some labels or algorithms; all of them if none is named.

        Raises:
            SelectionError: an unknown name; the text lists the nearest ones.
        """
        for name in only:
            check_known(name, [word for one in self.variants for word in (one.entry, one.algorithm)])
        kept = [one for one in self.variants if not only or one.entry in only or one.algorithm in only]
        return replace(self, variants=tuple(replace(one, number=number) for number, one in enumerate(kept)))

    def facts(self) -> Manifest:
        return {"points": self.points, "variants": len(self.variants)}

    def planner(self, tally: Tally) -> Planner:
        if self.tuning is None:
            return super().planner(tally)
        return tuned(self.variants, self.tuning, tally, self.numbers, self.until)

    def summary(self, tally: Tally, failures: Sequence[Failure]) -> Results:
        """The object that ``coband sweep --json`` prints and results.json holds.

        It is that of a run, with variants for labels; each has its ``parameters`` and ``phase`` beside. With tuning,
        ``best`` has a line for each algorithm in each context.
        """
        report = results.report(self.name, entries(self, tally), failures)
        if self.tuning is not None:
            order = list(dict.fromkeys(variant.context for variant in self.variants))
            choices = sorted(tally.choices, key=lambda choice: order.index(choice.context))
            report["best"] = [_best(self, self.tuning.on, tally, choice) for choice in choices]
        return report


def entries(study: Study, tally: Tally) -> list[Entry]:
    """The results of all variants, with what tells them apart: those that are reported, then those that choose."""
    return [
        {**tally.summary(one, phase), "entry": one.entry, "phase": phase, "parameters": parameters(one)}
        for phase in (FRESH, TUNING)
        for one in study.variants
        if tally.records(one.number, phase)
    ]


def parameters(variant: Variant) -> dict[str, str]:
    """Name -> label of the value."""
    return {parameter.name: parameter.text for parameter in variant.displayed}


def _best(study: Study, key: str, tally: Tally, choice: Choice) -> Best:
    """One line of the table of best parameters; the values are null where no candidate finished."""
    found = choice.variant is not None
    variant = study.variants[choice.candidates[0] if choice.variant is None else choice.variant]
    tuned, fresh = (
        estimated(results.numbers(key, tally.records(variant.number, phase)), variant.scenario.metrics.get(key))
        for phase in (TUNING, FRESH)
    )
    return {
        "entry": choice.context[0],
        "on": key,
        "candidates": len(choice.candidates),
        "context": {p.name: p.text for p in variant.displayed if not p.tuned},
        "label": variant.label if found else None,
        "chosen": {p.name: p.text for p in variant.displayed if p.tuned} if found else None,
        "tuning": tuned if found else None,
        "fresh": fresh if found else None,
        "pulls": estimated(results.numbers("turns", tally.records(variant.number, FRESH)), None) if found else None,
        "judged": judged(
            key, tally.sides(choice.candidates, TUNING).values(), partial(tally.stops_itself, variant.number)
        ),
    }


def estimated(values: Sequence[float], metric: Metric | None) -> Spread:
    """Number of values, their mean and its interval: Student's, of proportions Wilson's."""
    if not values:
        return {"n": 0, "mean": None, "ci95": None}
    bounds = results.interval(metric, values)
    return {"n": len(values), "mean": statistics.mean(values), "ci95": None if bounds is None else list(bounds)}


def load_study(
    path: str | Path | ScenarioText,
    overrides: Sequence[str] = (),
    *,
    trace: Level = "off",
    registry: Registry | None = None,
) -> Sweep:
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
    found = _Points(rest, grid, registry, base, problems)
    tuned = _tuned_axes(root, grid, found.last.tuning)
    files = Files(base, path if isinstance(path, Path) else None)
    scenario = next(iter(found.scenarios.values()))
    variants = _variants(grid, found.scenarios, tuned, files, trace)
    numbers = tuple(range(scenario.replications))
    gridded = any(descend(root, key) is not None for key in ("grid", "zip"))
    return Sweep(
        name=scenario.name,
        text=text,
        variants=tuple(variants),
        numbers=numbers,
        until=found.last.until,
        missing=files.missing,
        unknown=tuple(files.code.unknown),
        points=len(grid),
        tuning=found.last.tuning,
        gridded=gridded,
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
    return root, rest, grid, problems + mistakes_in(root, registry, ("grid", "zip")) + more


class _Points:
    """The scenarios at all points; all problems of all points at once."""

    def __init__(self, rest: Node, grid: Grid, registry: Registry, base: Path, problems: list[InputProblem]) -> None:
        self.scenarios: dict[Coordinates, Scenario] = {}
        found = dict.fromkeys(problems)
        for point in grid.points():
            root, more = grid.apply(rest, point, registry.takes)
            try:
                self.last = validated(root, base, registry, more)
                self.scenarios[point] = self.last.scenario
            except ScenarioError as error:
                found.update(dict.fromkeys(error.problems))
        if found:
            raise ScenarioError(_shown(list(found)))


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
                _parameter(key, key.values[point[axis]], axis in tuned, key in grid.axes[axis].displayed)
                for axis in axes
                for key in grid.axes[axis].keys
            )
            settings = tuple(f"{key.path}={_argument(value, scenario.base)}" for key, value in grid.chosen(point))
            digest = digests[entry.label][point]
            variants.append(Variant(len(variants), entry.label, alone, parameters, settings, digest))
    return variants


def _parameter(key: Key, value: Value, tuned: bool, displayed: bool) -> Parameter:
    return Parameter(key.path, key.name, value.label, value.number, tuned, displayed)


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
