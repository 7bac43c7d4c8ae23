"""The numbers that a frontier trades against each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coband.simulator.experiments.runs.results import Record
from coband.simulator.experiments.scenario.input_problems import did_you_mean, quoted
from coband.simulator.experiments.scenario.yaml_nodes import Mark
from coband.simulator.experiments.statistics.dominance import Values
from coband.simulator.metrics import Metric

DEFAULT_COST = "scalars"
ON_DEMAND = ("bits",)
"""Costs of which less is better, though nobody is ranked by them."""
LEAST, MOST = 2, 4


def objectives(names: Sequence[str], aim: str, metrics: Mapping[str, Metric]) -> tuple[Metric, ...]:
    """The metrics with these names.

    Args:
        names: of metrics that say which end is better; empty for the problem's aim and scalars.
        metrics: what results have, by name.

    Raises:
        ScenarioError: a name is unknown or given twice, nobody is better for it, or there are too few or too many.
    """
    wanted = list(names) or [aim, DEFAULT_COST]
    allowed = [name for name, metric in metrics.items() if metric.better is not None or name in ON_DEMAND]
    mark = Mark("--objectives")
    for name in wanted:
        if name not in allowed:
            near = did_you_mean(name, allowed)
            message = f"{quoted(name)} is no number that is better when it is low or high{near or ';'} "
            raise mark.error(f"{message}there is {', '.join(allowed)}")
    if len(set(wanted)) < len(wanted) or not LEAST <= len(wanted) <= MOST:
        given = ", ".join(wanted)
        raise mark.error(f"needs {LEAST} to {MOST} different numbers, such as regret,scalars; given: {given}")
    return tuple(metrics[name] for name in wanted)


def signs(chosen: Sequence[Metric]) -> list[float]:
    """What each number is multiplied by so that low is better."""
    return [-1.0 if metric.better == "higher" else 1.0 for metric in chosen]


def values(chosen: Sequence[Metric], records: Sequence[Record]) -> Values:
    """Replication -> the objectives, low being better, of the replications that have them all."""
    found = {}
    for record in records:
        numbers = [record.get(metric.name) for metric in chosen]
        given = [float(number) for number in numbers if isinstance(number, (int, float))]
        if len(given) == len(numbers):
            found[int(record["replication"] or 0)] = [a * b for a, b in zip(signs(chosen), given, strict=True)]
    return found
