"""The numbers on which algorithms are compared."""

from __future__ import annotations

from dataclasses import dataclass

from coband.simulator.experiments.report.data import Comparison


@dataclass(frozen=True)
class Measure:
    """One number of the results; less of it is better.

    Attributes:
        key: its name in the results.
        title: in a heading, such as "regret".
        verb: what is said of the best one, such as "has the lowest regret".
    """

    key: str
    title: str
    verb: str


REGRET = Measure("regret", "regret", "has the lowest regret")
ERROR = Measure("error", "errors", "errs least often")
SAMPLES = Measure("samples_per_agent", "samples per agent", "needs the fewest samples")
COSTS = (
    Measure("scalars", "scalars sent", "sends the fewest scalars"),
    Measure("uplink_scalars", "scalars up", "uploads the fewest scalars"),
    Measure("messages", "messages", "sends the fewest messages"),
    Measure("simulated_time", "simulated time", "is done first"),
)


def measures(comparison: Comparison) -> list[Measure]:
    """What the contenders can be compared on: numbers that all of them have and that are not the same everywhere."""
    aims = (ERROR, SAMPLES) if comparison.pure_exploration else (REGRET,)
    return [aims[0], *(measure for measure in (*aims[1:], *COSTS) if _differs(comparison, measure))]


def _differs(comparison: Comparison, measure: Measure) -> bool:
    values = [one.values(measure.key) for one in comparison.contenders]
    if any(len(found) < len(one.records) for found, one in zip(values, comparison.contenders, strict=True)):
        return False
    return len({value for found in values for value in found.values()}) > 1
