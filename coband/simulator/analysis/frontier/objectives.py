"""The numbers that a frontier trades against each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from coband.simulator.experiments.runs.footing import Side, choosable
from coband.simulator.experiments.scenario.yaml_nodes import Mark
from coband.simulator.experiments.statistics.dominance import Values
from coband.simulator.metrics import Metric
from coband.simulator.scenario_errors import did_you_mean, quoted

DEFAULT_COST = "scalars"
ON_DEMAND = ("bits",)
"""Costs of which less is better, though nobody is ranked by them."""
LEAST, MOST = 2, 4


def objectives(
    names: Sequence[str], aim: str, metrics: Mapping[str, Metric], limited: Sequence[str] = ()
) -> tuple[Metric, ...]:
    """The metrics with these names.

    Args:
        names: of metrics that say which end is better; empty for the problem's aim and scalars.
        metrics: what results have, by name.
        limited: names of those that have a limit, and so are objectives too.

    Raises:
        ScenarioError: a name is unknown or given twice, nobody is better for it, or there are too few or too many.
    """
    wanted = list(names) or [aim, DEFAULT_COST]
    wanted += [name for name in limited if name not in wanted]
    allowed = [name for name, metric in metrics.items() if metric.better is not None or name in ON_DEMAND]
    mark = Mark("--objectives")
    for name in wanted:
        if name not in allowed:
            near = "; regret ranks labels as reward does;" if name == "reward" else did_you_mean(name, allowed)
            message = f"{quoted(name)} is not a number that is better when it is low or high{near or ';'} "
            raise mark.error(f"{message}there is {', '.join(allowed)}")
    if len(set(wanted)) < len(wanted) or not LEAST <= len(wanted) <= MOST:
        given = ", ".join(wanted)
        raise mark.error(f"needs {LEAST} to {MOST} different numbers, such as regret,scalars; given: {given}")
    return tuple(metrics[name] for name in wanted)


def signs(chosen: Sequence[Metric]) -> list[float]:
    """What each number is multiplied by so that low is better."""
    return [-1.0 if metric.better == "higher" else 1.0 for metric in chosen]


def values(chosen: Sequence[Metric], sides: Mapping[int, Side], stops: Callable[[], bool]) -> dict[int, Values]:
    """Number of a point -> replication -> the objectives, low being better, of the replications that have them all.

    Points are compared as `runs.footing` says; one that has waited has no replications.
    """
    columns = [choosable(metric.name, sides, stops) for metric in chosen]
    found: dict[int, Values] = {}
    for number in sides:
        own = [column.get(number, {}) for column in columns]
        common = [one for one in own[0] if all(one in other for other in own)]
        found[number] = {r: [a * b[r] for a, b in zip(signs(chosen), own, strict=True)] for r in common}
    return found
