"""The measures by which a report compares algorithms: metrics that declare whether lower or higher is better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from coband.simulator.analysis.report.data import RunComparison
from coband.simulator.metrics import Better, Metric

ORDER = ("regret", "scalars", "uplink_scalars", "messages", "simulated_time", "mean_age")
"""Order of coband's own metrics; those of the problem and of the algorithms come first."""


@dataclass(frozen=True)
class Measure:
    """One number of the results by which algorithms are ranked.

    Attributes:
        key: name of the number in the results.
        title: name in headings, such as "regret".
        verb: phrase for the best algorithm, such as "has the lowest regret".
        proportion: whether the number is 0 or 1 in every replication.
    """

    key: str
    title: str
    verb: str
    better: Better = "lower"
    proportion: bool = False

    @classmethod
    def of(cls, metric: Metric) -> Self:
        return cls(metric.name, metric.heading, metric.praise, metric.better or "lower", metric.proportion)

    @property
    def end(self) -> str:
        """ "lowest" or "highest", whichever is best."""
        return "highest" if self.better == "higher" else "lowest"


def measures(comparison: RunComparison) -> list[Measure]:
    """The measures of a comparison: numbers that all contenders have and that are not equal everywhere.

    The aim of the problem comes first, then the metrics of problem and algorithms, then coband's own. Regret is omitted
    if the problem has another aim.
    """
    metrics, aim = comparison.metrics, comparison.aim
    ranked = [metric for name, metric in metrics.items() if metric.better and name not in (aim, "regret")]
    ranked.sort(key=lambda metric: ORDER.index(metric.name) if metric.name in ORDER else -1)
    rest = [Measure.of(metric) for metric in ranked]
    return [Measure.of(metrics[aim]), *(measure for measure in rest if _differs(comparison, measure))]


def _differs(comparison: RunComparison, measure: Measure) -> bool:
    values = [one.values(measure.key) for one in comparison.contenders]
    if any(len(found) < len(one.records) for found, one in zip(values, comparison.contenders, strict=True)):
        return False
    return len({value for found in values for value in found.values()}) > 1
