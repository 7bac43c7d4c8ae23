"""Best parameters, as papers report them: chosen on some seeds, reported on others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from coband.simulator.experiments.runs import results
from coband.simulator.experiments.runs.results import Record
from coband.simulator.experiments.scenario.document import Tuning
from coband.simulator.experiments.statistics import estimates as statistics

FIRST_REPLICATION = 1_000_000
"""Number of the first replication for tuning; those that are reported have smaller numbers, so no seed is met twice."""


@dataclass(frozen=True)
class Choice:
    """What tuning found for one algorithm in one context.

    Attributes:
        variant: number of the best variant; None when no candidate finished all its replications.
        candidates: numbers of all.
    """

    context: tuple[str, ...]
    variant: int | None
    candidates: tuple[int, ...]


def choose(tuning: Tuning, context: tuple[str, ...], found: Mapping[int, Sequence[Record]]) -> Choice:
    """The variant with the best mean; of equal ones, the first.

    Args:
        context: what the candidates share.
        found: number of a variant -> records of its replications for tuning. One with fewer than wanted is no
            candidate, as it would be compared on other worlds.
    """
    sign = 1.0 if tuning.best == "lowest" else -1.0
    values = {variant: results.numbers(tuning.on, records) for variant, records in found.items()}
    means = {
        variant: sign * statistics.mean(numbers)
        for variant, numbers in values.items()
        if len(numbers) == tuning.replications
    }
    return Choice(context, min(means, key=lambda variant: means[variant], default=None), tuple(found))
