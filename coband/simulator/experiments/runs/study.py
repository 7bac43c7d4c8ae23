"""What there is to run: the algorithms of a scenario on its replications, or those of a sweep at its points."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from coband.simulator.core.nodes.node import UnsupportedScenario
from coband.simulator.experiments.runs import results
from coband.simulator.experiments.runs.address import Files, configuration_digest
from coband.simulator.experiments.runs.footing import judged
from coband.simulator.experiments.runs.planner import (
    FRESH,
    TUNING,
    Choice,
    Planner,
    Tally,
    Task,
    Variant,
    replicated,
    together,
    tuned,
)
from coband.simulator.experiments.runs.results import Entry, Failure, Results
from coband.simulator.experiments.scenario.document import Tuning, Until
from coband.simulator.experiments.scenario.files import ScenarioText
from coband.simulator.experiments.scenario.loading import load_point
from coband.simulator.experiments.scenario.overrides import to_yaml
from coband.simulator.experiments.scenario.scenario import Scenario
from coband.simulator.experiments.scenario.yaml_nodes import key_mark
from coband.simulator.experiments.statistics import estimates as statistics
from coband.simulator.metrics import Metric
from coband.simulator.scenario_errors import RequestError

if TYPE_CHECKING:
    from coband.simulator.experiments.store.manifest import Manifest
    from coband.simulator.problems.problem import DataError


def counted(number: int, noun: str) -> str:
    """A number of things, such as ``1 turn`` or ``1,000 turns``."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


class SelectionError(RequestError):
    """Nothing to run was selected; the text lists what there is."""


@dataclass(frozen=True)
class Study:
    """What there is to run.

    Attributes:
        text: the scenario file.
        variants: in the order of the file.
        numbers: of the replications, from 0; more follow them where ``until`` asks for more.
        until: when the mean of a variant is known well enough; None for the given replications alone.
        missing: a data set that is not there, if that is known; such a study cannot run.
        unknown: why finished jobs are never used again, a sentence for each reason.
        points: how many points the grid of a sweep has; None for a run.
        tuning: how the best parameters are chosen; None to run all of them.
        gridded: whether the scenario has a grid, all of whose keys may be fixed.
    """

    name: str
    text: str
    variants: Sequence[Variant]
    numbers: tuple[int, ...]
    until: Until | None = None
    missing: DataError | None = None
    unknown: tuple[str, ...] = ()
    points: int | None = None
    tuning: Tuning | None = None
    gridded: bool = True

    @property
    def bad_input_ends(self) -> bool:
        """Whether bad input, found by a job, is that of all jobs; at a point of a grid it is that of the point."""
        return self.points is None

    @property
    def entries(self) -> list[str]:
        """Labels of the algorithms, in the order of the file."""
        return list(dict.fromkeys(variant.entry for variant in self.variants))

    @property
    def lacking(self) -> DataError | UnsupportedScenario | None:
        """What has to be here before anything of it can run: data, or a package; None if all is."""
        absent = (f"{one.entry}: {why}" for one in self.variants if (why := one.scenario.messages.absent))
        return self.missing or next(map(UnsupportedScenario, absent), None)

    @property
    def replications(self) -> int:
        """How many there are to begin with."""
        return len(self.numbers)

    @property
    def possible_replications(self) -> Sequence[int]:
        """Their numbers, with those that ``until`` may add."""
        return self.numbers if self.until is None else range(self.until.max_replications)

    @property
    def jobs(self) -> int:
        """How many jobs there are to begin with."""
        return len(self.variants) * self.replications

    def factors(self) -> tuple[str, str]:
        """What runs to begin with, such as ``5 algorithms × 6 replications``, and what follows.

        Variants are fewer than points × algorithms if some are alike.
        """
        size = counted(len(self.entries), "algorithm")
        if (self.points or 1) > 1:
            size = f"{counted(len(self.variants), 'variant')} of {size} at {self.points:,} points"
        most = "" if self.until is None else f" to {self.until.max_replications:,}"
        each = f"{self.replications:,}{most} replication{'s' * (bool(most) or self.replications != 1)}"
        if self.tuning is None:
            return f"{size} × {each}", ""
        return f"{size} × {counted(self.tuning.replications, 'replication')}", f" for tuning, then the best × {each}"

    def facts(self) -> Manifest:
        """What the manifest says of it in addition."""
        return {} if self.points is None else {"points": self.points, "variants": len(self.variants)}

    def selected(self, only: Sequence[str]) -> Self:
        """The variants of some labels or algorithms; all of them if none is named.

        Raises:
            SelectionError: an unknown name; the text lists the nearest ones.
        """
        known = list(dict.fromkeys(word for one in self.variants for word in (one.entry, one.algorithm)))
        for name in only:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=3)
                advice = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known)}."
                raise SelectionError(f"no algorithm or label {name!r} in this scenario; {advice}")
        kept = [one for one in self.variants if not only or one.entry in only or one.algorithm in only]
        return replace(self, variants=tuple(replace(one, number=number) for number, one in enumerate(kept)))

    def planner(self, tally: Tally) -> Planner:
        """Decides what runs.

        Args:
            tally: what has run so far; whoever drives the planner keeps it.
        """
        if self.tuning is not None:
            return tuned(self.variants, self.tuning, tally, self.numbers, self.until)
        return together(replicated(variant, self.numbers, self.until) for variant in self.variants)

    def summary(self, tally: Tally, failures: Sequence[Failure]) -> Results:
        """The object that ``--json`` prints and results.json holds.

        In a sweep the entries are variants, each with its ``parameters`` and ``phase``. With tuning, ``best`` has a
        line for each algorithm in each context.
        """
        if self.points is None:
            return results.report(self.name, [tally.summary(one, FRESH) for one in self.variants], failures)
        report = results.report(self.name, entries(self, tally), failures)
        if self.tuning is not None:
            order = list(dict.fromkeys(variant.context for variant in self.variants))
            choices = sorted(tally.choices, key=lambda choice: order.index(choice.context))
            report["best"] = [_best(self, self.tuning.on, tally, choice) for choice in choices]
        return report

    def title(self, task: Task) -> str:
        """How results call the variant of a task."""
        return self.variants[task.variant].title(task.phase)


def entries(study: Study, tally: Tally) -> list[Entry]:
    """The results of all variants, with what tells them apart: those that are reported, then those that choose."""
    return [
        {**tally.summary(one, phase), "entry": one.entry, "phase": phase, "parameters": one.shown}
        for phase in (FRESH, TUNING)
        for one in study.variants
        if tally.records(one.number, phase)
    ]


def _best(study: Study, key: str, tally: Tally, choice: Choice) -> dict[str, Any]:
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


def estimated(values: Sequence[float], metric: Metric | None) -> dict[str, Any]:
    """Number of values ``n``, their ``mean`` and its interval ``ci95``: Student's, of proportions Wilson's."""
    if not values:
        return {"n": 0, "mean": None, "ci95": None}
    bounds = results.interval(metric, values)
    return {"n": len(values), "mean": statistics.mean(values), "ci95": None if bounds is None else list(bounds)}


def study_of(
    scenario: Scenario,
    only: Sequence[str] = (),
    replications: Sequence[int] = (),
    until: Until | None = None,
    file: Path | None = None,
) -> Study:
    """A validated scenario as a study of one point.

    Args:
        only: labels or names of algorithms; empty for all.
        replications: their numbers, from 0, and no others; empty for as many as the scenario and ``until`` say.
        until: when the mean of a variant is known well enough.
        file: that it was read from, if it is one.

    Raises:
        SelectionError: an unknown name; the text lists the nearest ones.
    """
    text = scenario.to_yaml()
    if until is not None:
        text += to_yaml({"until": until.model_dump(mode="json")})
    digests = configuration_digest(scenario, Files(scenario.base, file)).items()
    return Study(
        scenario.name,
        text,
        tuple(Variant(number, label, scenario, digest=digest) for number, (label, digest) in enumerate(digests)),
        tuple(sorted(set(replications)) or range(scenario.replications)),
        None if replications else until,
    ).selected(only)


def load_run(
    path: str | Path | ScenarioText,
    overrides: Sequence[str] = (),
    only: Sequence[str] = (),
    replications: Sequence[int] = (),
) -> Study:
    """Read a scenario file as a study of one point.

    Args:
        path: the file, or the name of a scenario that comes with coband, or the text itself.
        overrides: ``key.path=value``, as given to ``--set``.
        only: labels or names of algorithms; empty for all.
        replications: their numbers, and no others; empty for as many as the file says.

    Raises:
        ScenarioError: with everything that is wrong; a scenario with several points, or with ``tuning`` but for single
            replications, is a sweep.
        SelectionError: an unknown name, with the nearest ones; a replication that the file does not have.
    """
    point = load_point(path, overrides)
    if point.tuning is not None and not replications:
        text = (
            f"the best parameters are chosen among the points of a grid by `coband sweep {path}`; this is one of them"
        )
        raise key_mark(point.root, ("tuning",)).error(f"{text}: to run it alone, add --set tuning=null", ("tuning",))
    most = point.scenario.replications if point.until is None else point.until.max_replications
    low, high = min(replications, default=0), max(replications, default=0)
    if low < 0 or (high >= most and point.tuning is None):  # tuning numbers those of its own from afar
        advice = "." if low < 0 else f"; with --replications {high + 1} it has this one too."
        has = f"the scenario has {counted(most, 'replication')}, counted from 0"
        raise SelectionError(f"there is no replication {low if low < 0 else high}: {has}{advice}")
    return study_of(point.scenario, only, replications, point.until, path if isinstance(path, Path) else None)
