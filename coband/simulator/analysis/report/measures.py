"""The measures by which a report compares algorithms: metrics that declare whether lower or higher is better."""

from __future__ import annotations

from dataclasses import replace

from coband.simulator.analysis.report.data import RunComparison
from coband.simulator.metrics import Metric

ORDER = ("regret", "scalars", "uplink_scalars", "messages", "simulated_time", "mean_age")
"""Order of coband's own metrics; those of the problem and of the algorithms come first."""


def measures(comparison: RunComparison) -> list[Metric]:
    """The measures of a comparison: numbers that all contenders have and that are not equal everywhere.

    The aim of the problem comes first, then the metrics of problem and algorithms, then coband's own. Regret is omitted
    if the problem has another aim.
    """
    metrics, aim = comparison.metrics, comparison.aim
    ranked = [metric for name, metric in metrics.items() if metric.better and name not in (aim, "regret")]
    ranked.sort(key=lambda metric: ORDER.index(metric.name) if metric.name in ORDER else -1)
    first = replace(metrics[aim], better=metrics[aim].better or "lower")
    return [first, *(metric for metric in ranked if _differs(comparison, metric))]


def _differs(comparison: RunComparison, measure: Metric) -> bool:
    values = [one.values(measure.name) for one in comparison.contenders]
    if any(len(found) < len(one.records) for found, one in zip(values, comparison.contenders, strict=True)):
        return False
    return len({value for found in values for value in found.values()}) > 1
