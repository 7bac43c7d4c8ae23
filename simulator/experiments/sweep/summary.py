"""What a sweep reports: means and intervals of every variant, and the best parameters of every algorithm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from coband.simulator.experiments.runs import results
from coband.simulator.experiments.runs.planner import Planner
from coband.simulator.experiments.runs.results import Failure
from coband.simulator.experiments.runs.study import Study
from coband.simulator.experiments.runs.variant import FRESH, Variant
from coband.simulator.experiments.statistics import estimates as statistics
from coband.simulator.experiments.sweep.planner import TUNING, TuningPlanner
from coband.simulator.experiments.sweep.tuning import Choice


def summary(study: Study, planner: Planner, failures: Sequence[Failure]) -> dict[str, Any]:
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


def parameters(variant: Variant) -> dict[str, Any]:
    """Name -> label of the value."""
    return {parameter.name: parameter.text for parameter in variant.displayed}


def entry(variant: Variant, phase: str, planner: Planner) -> dict[str, Any]:
    """The results of a variant in a phase, with what tells it apart."""
    found = planner.summary(variant, phase)
    return {**found, "entry": variant.entry, "phase": phase, "parameters": parameters(variant)}


def _best(study: Study, planner: TuningPlanner, choice: Choice) -> dict[str, Any]:
    """One line of the table of best parameters; the values are null where no candidate finished."""
    key = planner.rule.on
    line: dict[str, Any] = {"entry": choice.context[0], "on": key, "candidates": len(choice.candidates)}
    variant = study.variants[choice.candidates[0] if choice.variant is None else choice.variant]
    line["context"] = {p.name: p.text for p in variant.displayed if not p.tuned}
    if choice.variant is None:
        return {**line, "label": None, "chosen": None, "tuning": None, "fresh": None}
    line["label"] = variant.label
    line["chosen"] = {p.name: p.text for p in variant.displayed if p.tuned}
    for phase in (TUNING, FRESH):
        line[phase] = estimated(results.numbers(key, planner.records(variant.number, phase)))
    return line


def estimated(values: Sequence[float]) -> dict[str, Any]:
    """Number of values, their mean and its interval."""
    if not values:
        return {"n": 0, "mean": None, "ci95": None}
    found = statistics.estimate(values)
    return {"n": found.count, "mean": found.mean, "ci95": None if found.interval is None else list(found.interval)}
