"""The measures by which a report compares algorithms."""

from __future__ import annotations

from dataclasses import dataclass

from coband.simulator.experiments.report.data import RunComparison


@dataclass(frozen=True)
class Measure:
    """One number of the results; lower is better.

    Attributes:
        key: name of the number in the results.
        title: name in headings, such as "regret".
        verb: phrase for the best algorithm, such as "has the lowest regret".
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


def measures(comparison: RunComparison) -> list[Measure]:
    """The measures of a comparison: numbers that all contenders have and that are not equal everywhere."""
    aims = (ERROR, SAMPLES) if comparison.pure_exploration else (REGRET,)
    return [aims[0], *(measure for measure in (*aims[1:], *COSTS) if _differs(comparison, measure))]


def _differs(comparison: RunComparison, measure: Measure) -> bool:
    values = [one.values(measure.key) for one in comparison.contenders]
    if any(len(found) < len(one.records) for found, one in zip(values, comparison.contenders, strict=True)):
        return False
    return len({value for found in values for value in found.values()}) > 1
