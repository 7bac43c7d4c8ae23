"""What a sweep with tuning has to run: candidates on replications of their own, then the best on fresh ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from coband.simulator.experiments.runs.footing import choosable
from coband.simulator.experiments.runs.planner import Planner, Task
from coband.simulator.experiments.runs.study import Study
from coband.simulator.experiments.scenario.document import Tuning
from coband.simulator.experiments.statistics import estimates as statistics

TUNING = "tuning"
"""The phase of replications that choose."""
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


def choose(tuning: Tuning, context: tuple[str, ...], found: Mapping[int, Sequence[float]]) -> Choice:
    """The variant with the best mean; of equal ones, the first.

    Args:
        context: what the candidates share.
        found: number of a variant -> what its replications for tuning gave (`runs.footing.choosable`). One with fewer
            than wanted is not a candidate, as it would be compared on other worlds.
    """
    sign = 1.0 if tuning.best == "lowest" else -1.0
    means = {
        variant: sign * statistics.mean(numbers)
        for variant, numbers in found.items()
        if len(numbers) == tuning.replications
    }
    return Choice(context, min(means, key=lambda variant: means[variant], default=None), tuple(found))


class TuningPlanner(Planner):
    """Decides what runs; the same decisions whatever the order in which jobs end.

    Attributes:
        rule: how to choose.
        choices: what tuning has found so far.
    """

    def __init__(self, study: Study, rule: Tuning) -> None:
        super().__init__(study)
        self.rule = rule
        self.choices: list[Choice] = []
        self._groups: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for variant in study.variants:
            self._groups[variant.context].append(variant.number)

    def begin(self) -> list[Task]:
        """All candidates, replication by replication."""
        return self._add(
            Task(variant.number, TUNING, FIRST_REPLICATION + replication)
            for replication in range(self.rule.replications)
            for variant in self._study.variants
        )

    def _next(self, variant: int, phase: str) -> list[Task]:
        """Choose among the candidates as soon as all of them have ended."""
        if phase != TUNING:
            return super()._next(variant, phase)
        context = self._study.variants[variant].context
        group = self._groups[context]
        if any(self._open[number, TUNING] for number in group):
            return []
        values = choosable(self.rule.on, self.sides(group, TUNING), self.stops_itself)
        choice = choose(self.rule, context, {number: list(values.get(number, {}).values()) for number in group})
        self.choices.append(choice)
        return [] if choice.variant is None else self._first([choice.variant])

    @property
    def chosen(self) -> list[int]:
        return [choice.variant for choice in self.choices if choice.variant is not None]

    def expected(self) -> dict[str, int]:
        total = super().expected()
        for context, group in self._groups.items():
            total[context[0]] += self.rule.replications * len(group)
        for context in set(self._groups) - {choice.context for choice in self.choices}:
            total[context[0]] += self._study.replications
        return total
