"""What a sweep reports: means and intervals of every variant, and the best parameters of every algorithm."""

from __future__ import annotations

from collections.abc import Sequence

from coband.simulator.experiments.runs import results
from coband.simulator.experiments.runs.planner import Planner
from coband.simulator.experiments.runs.results import Best, Entry, Failure, Results, Spread
from coband.simulator.experiments.runs.study import Study
from coband.simulator.experiments.runs.variant import FRESH, Variant
from coband.simulator.experiments.statistics import estimates as statistics
from coband.simulator.experiments.sweep.planner import TUNING, Choice, TuningPlanner
from coband.simulator.metrics import Metric


def summary(study: Study, planner: Planner, failures: Sequence[Failure]) -> Results:
    """The object that ``coband sweep --json`` prints and results.json holds.

    It is that of a run, with variants for labels; each has its ``parameters`` and ``phase`` beside. With tuning,
    ``best`` has a line for each algorithm in each context.
    """
    phases = (FRESH, TUNING) if isinstance(planner, TuningPlanner) else (FRESH,)
    entries = [
        entry(variant, phase, planner)
        for phase in phases
        for variant in study.variants
        if planner.records(variant.number, phase)
    ]
    report = results.report(study.name, entries, failures)
    if isinstance(planner, TuningPlanner):
        order = {context: number for number, context in enumerate(dict.fromkeys(v.context for v in study.variants))}
        choices = sorted(planner.choices, key=lambda choice: order[choice.context])
        report["best"] = [_best(study, planner, choice) for choice in choices]
    return report


def parameters(variant: Variant) -> dict[str, str]:
    """Name -> label of the value."""
    return {parameter.name: parameter.text for parameter in variant.displayed}


def entry(variant: Variant, phase: str, planner: Planner) -> Entry:
    """The results of a variant in a phase, with what tells it apart."""
    found = planner.summary(variant, phase)
    return {**found, "entry": variant.entry, "phase": phase, "parameters": parameters(variant)}


def _best(study: Study, planner: TuningPlanner, choice: Choice) -> Best:
    """One line of the table of best parameters; the values are null where no candidate finished."""
    key = planner.rule.on
    found = choice.variant is not None
    variant = study.variants[choice.candidates[0] if choice.variant is None else choice.variant]
    tuned, fresh = (
        estimated(results.numbers(key, planner.records(variant.number, phase)), variant.scenario.metrics.get(key))
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
    }


def estimated(values: Sequence[float], metric: Metric | None) -> Spread:
    """Number of values, their mean and its interval: Student's, of proportions Wilson's."""
    if not values:
        return {"n": 0, "mean": None, "ci95": None}
    bounds = results.interval(metric, values)
    return {"n": len(values), "mean": statistics.mean(values), "ci95": None if bounds is None else list(bounds)}
