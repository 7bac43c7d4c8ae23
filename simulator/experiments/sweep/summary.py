"""What a sweep reports: means and intervals of every variant, and the best parameters of every algorithm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from coband.simulator.experiments.runs import results
from coband.simulator.experiments.runs.results import Failure
from coband.simulator.experiments.statistics import estimates as statistics
from coband.simulator.experiments.sweep import tuning
from coband.simulator.experiments.sweep.planner import FRESH, TUNING, Planner, title
from coband.simulator.experiments.sweep.study import Study, Variant
from coband.simulator.experiments.sweep.tuning import Choice


def summary(study: Study, agenda: Planner, failures: Sequence[Failure]) -> dict[str, Any]:
    """The object that ``coband sweep --json`` prints and results.json holds.

    It is that of a run, with variants for labels; each has its ``parameters`` and ``phase`` beside. With tuning,
    ``best`` has a line for each algorithm in each context.
    """
    phases = (FRESH,) if study.tuning is None else (FRESH, TUNING)
    entries = [
        entry for phase in phases for variant in study.variants if (entry := _entry(variant, phase, agenda)) is not None
    ]
    report = results.report(study.name, entries, failures)
    if study.tuning is not None:
        order = {context: number for number, context in enumerate(dict.fromkeys(v.context for v in study.variants))}
        choices = sorted(agenda.choices, key=lambda choice: order[choice.context])
        report["best"] = [_best(study, agenda, choice) for choice in choices]
    return report


def parameters(variant: Variant) -> dict[str, Any]:
    """Name -> label of the value."""
    return {parameter.key.name: parameter.value.label for parameter in variant.displayed}


def _entry(variant: Variant, phase: str, agenda: Planner) -> dict[str, Any] | None:
    records = agenda.records(variant.number, phase)
    if not records:
        return None
    found = results.summarise(title(variant, phase), variant.algorithm, records, variant.scenario.metrics)
    return {**found, "entry": variant.entry, "phase": phase, "parameters": parameters(variant)}


def _best(study: Study, agenda: Planner, choice: Choice) -> dict[str, Any]:
    """One line of the table of best parameters; the values are null where no candidate finished."""
    assert study.tuning is not None
    key = study.tuning.on
    line: dict[str, Any] = {"entry": choice.context[0], "on": key, "candidates": len(choice.candidates)}
    variant = study.variants[choice.candidates[0] if choice.variant is None else choice.variant]
    line["context"] = {p.key.name: p.value.label for p in variant.displayed if not p.tuned}
    if choice.variant is None:
        return {**line, "label": None, "chosen": None, "tuning": None, "fresh": None}
    line["label"] = variant.label
    line["chosen"] = {p.key.name: p.value.label for p in variant.displayed if p.tuned}
    for phase in (TUNING, FRESH):
        line[phase] = _estimate(tuning.numbers(key, agenda.records(variant.number, phase)))
    return line


def _estimate(values: Sequence[float]) -> dict[str, Any]:
    if not values:
        return {"n": 0, "mean": None, "ci95": None}
    found = statistics.estimate(values)
    return {"n": found.count, "mean": found.mean, "ci95": None if found.interval is None else list(found.interval)}
