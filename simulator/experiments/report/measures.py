"""The numbers on which algorithms are compared: metrics that say which end is the better one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from coband.simulator.experiments.report.data import Comparison
from coband.simulator.metrics import Better, Metric

ORDER = ("regret", "scalars", "uplink_scalars", "messages", "simulated_time")
"""coband's own metrics come in this order, after those of the problem and of the algorithms."""


@dataclass(frozen=True)
class Measure:
    """One number of the results by which algorithms are ranked.

    Attributes:
        key: its name in the results.
        title: in a heading, such as "regret".
        verb: what is said of the best one, such as "has the lowest regret".
        better: which end wins.
        proportion: whether it is 0 or 1 in every replication.
    """

    key: str
    title: str
    verb: str
    better: Better = "lower"
    proportion: bool = False

    @classmethod
    def of(cls, metric: Metric) -> Self:
        """The measure that a metric declares."""
        return cls(metric.name, metric.heading, metric.praise, metric.better or "lower", metric.proportion)

    @property
    def end(self) -> str:
        """Which end wins, as an adjective."""
        return "highest" if self.better == "higher" else "lowest"


def measures(comparison: Comparison) -> list[Measure]:
    """What the contenders can be compared on: numbers that all of them have and that are not the same everywhere.

    What the problem aims at comes first; then what problem and algorithms declare, then what coband counts. Regret is
    left out where the problem aims at something else.
    """
    metrics, aim = comparison.metrics, comparison.aim
    ranked = [metric for name, metric in metrics.items() if metric.better and name not in (aim, "regret")]
    ranked.sort(key=lambda metric: ORDER.index(metric.name) if metric.name in ORDER else -1)
    rest = [Measure.of(metric) for metric in ranked]
    return [Measure.of(metrics[aim]), *(measure for measure in rest if _differs(comparison, measure))]


def _differs(comparison: Comparison, measure: Measure) -> bool:
    values = [one.values(measure.key) for one in comparison.contenders]
    if any(len(found) < len(one.records) for found, one in zip(values, comparison.contenders, strict=True)):
        return False
    return len({value for found in values for value in found.values()}) > 1
