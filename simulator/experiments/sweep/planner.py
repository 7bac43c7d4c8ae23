"""What a sweep with tuning has to run: candidates on replications of their own, then the best on fresh ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from coband.simulator.experiments.runs import results
from coband.simulator.experiments.runs.planner import Planner, Task
from coband.simulator.experiments.runs.results import Record
from coband.simulator.experiments.runs.study import Study
from coband.simulator.experiments.scenario.document import Tuning
from coband.simulator.experiments.statistics import estimates as statistics

FIRST_REPLICATION = 1_000_000
"""Number of the first replication for tuning; those that are reported have smaller numbers, so no seed is met twice."""

TUNING = "tuning"
"""The phase of replications that choose."""


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
    scores: dict[int, float] = {}
    for variant, records in found.items():
        values = results.numbers(tuning.on, records)
        if len(values) == tuning.replications:
            scores[variant] = sign * statistics.mean(values)
    best = min(scores, key=lambda variant: scores[variant]) if scores else None
    return Choice(context, best, tuple(found))


class TuningPlanner(Planner):
    """Decides what runs; the same decisions whatever the order in which jobs end."""

    def __init__(self, study: Study, rule: Tuning) -> None:
        super().__init__(study)
        self.rule = rule
        self.choices: list[Choice] = []
        self._groups: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for variant in study.variants:
            self._groups[variant.context].append(variant.number)

    def begin(self) -> list[Task]:
        """All candidates, replication by replication."""
        numbers = range(FIRST_REPLICATION, FIRST_REPLICATION + self.rule.replications)
        return self._add(
            Task(variant.number, TUNING, replication) for replication in numbers for variant in self._study.variants
        )

    def _next(self, variant: int, phase: str) -> list[Task]:
        """Choose among the candidates as soon as all of them have ended."""
        if phase != TUNING:
            return super()._next(variant, phase)
        context = self._study.variants[variant].context
        group = self._groups[context]
        if any(self._open[number, TUNING] for number in group):
            return []
        choice = choose(self.rule, context, {number: self.records(number, TUNING) for number in group})
        self.choices.append(choice)
        return [] if choice.variant is None else self._first([choice.variant])

    @property
    def chosen(self) -> list[int]:
        """Numbers of the variants that tuning has chosen so far."""
        return [choice.variant for choice in self.choices if choice.variant is not None]

    def expected(self) -> dict[str, int]:
        """Entry -> how many jobs it will have at least, those not decided yet included."""
        total = super().expected()
        for variant in self._study.variants:
            total[variant.entry] += self.rule.replications
        for context in set(self._groups) - {choice.context for choice in self.choices}:
            total[context[0]] += self._study.replications
        return total
