"""What a sweep has to run: tuning, then fresh replications, then more of them where a mean is not known yet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from coband.simulator.experiments.runs.results import Record
from coband.simulator.experiments.sweep import stopping, tuning
from coband.simulator.experiments.sweep.study import Study, Variant
from coband.simulator.experiments.sweep.tuning import FIRST_REPLICATION, Choice

TUNING, FRESH = "tuning", "fresh"


@dataclass(frozen=True)
class Task:
    """One variant on one replication."""

    variant: int
    phase: str
    replication: int


class Planner:
    """Decides what runs; the same decisions whatever the order in which jobs end.

    Attributes:
        choices: what tuning has found so far.
    """

    def __init__(self, study: Study) -> None:
        self._study = study
        self._open: dict[tuple[int, str], int] = defaultdict(int)
        self._records: dict[tuple[int, str], list[Record]] = defaultdict(list)
        self._made: dict[int, int] = {}
        self.choices: list[Choice] = []
        self._groups: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for variant in study.variants:
            self._groups[variant.context].append(variant.number)

    def begin(self) -> list[Task]:
        """The first tasks, replication by replication, so that all variants advance together."""
        if self._study.tuning is None:
            return self._fresh([variant.number for variant in self._study.variants], self._study.replications)
        numbers = range(FIRST_REPLICATION, FIRST_REPLICATION + self._study.tuning.replications)
        return self._add(
            Task(variant.number, TUNING, replication) for replication in numbers for variant in self._study.variants
        )

    def _fresh(self, variants: Iterable[int], count: int) -> list[Task]:
        chosen = list(variants)
        starts = {variant: self._made.get(variant, 0) for variant in chosen}
        self._made.update((variant, start + count) for variant, start in starts.items())
        return self._add(Task(v, FRESH, starts[v] + index) for index in range(count) for v in chosen)

    def _add(self, tasks: Iterable[Task]) -> list[Task]:
        added = list(tasks)
        for task in added:
            self._open[task.variant, task.phase] += 1
        return added

    def ended(self, task: Task, record: Record | None) -> list[Task]:
        """Note that a task has ended, with a record or without; returns what is to be run in consequence."""
        key = task.variant, task.phase
        self._open[key] -= 1
        if record is not None:
            self._records[key].append(record)
        if self._open[key]:
            return []
        return self._after_fresh(task.variant) if task.phase == FRESH else self._after_tuning(task.variant)

    def _after_fresh(self, variant: int) -> list[Task]:
        until = self._study.until
        if until is None:
            return []
        values = tuning.numbers(until.on, self.records(variant, FRESH))
        return self._fresh([variant], stopping.more(until, values, self._made[variant]))

    def _after_tuning(self, variant: int) -> list[Task]:
        """Choose among the candidates as soon as all of them have ended."""
        rule, context = self._study.tuning, self._study.variants[variant].context
        group = self._groups[context]
        if rule is None or any(self._open[number, TUNING] for number in group):
            return []
        choice = tuning.choose(rule, context, {number: self.records(number, TUNING) for number in group})
        self.choices.append(choice)
        return [] if choice.variant is None else self._fresh([choice.variant], self._study.replications)

    @property
    def chosen(self) -> list[int]:
        """Numbers of the variants that tuning has chosen so far."""
        return [choice.variant for choice in self.choices if choice.variant is not None]

    def records(self, variant: int, phase: str) -> list[Record]:
        """The records of a variant so far, in order of replication."""
        return sorted(self._records[variant, phase], key=lambda record: int(record["replication"] or 0))

    def expected(self) -> dict[str, int]:
        """Entry -> how many jobs it will have at least, those not decided yet included."""
        total: dict[str, int] = dict.fromkeys(self._study.entries, 0)
        waiting = set(self._groups) - {choice.context for choice in self.choices}
        for variant in self._study.variants:
            total[variant.entry] += self._made.get(variant.number, 0)
            if self._study.tuning is not None:
                total[variant.entry] += self._study.tuning.replications
        for context in waiting if self._study.tuning is not None else ():
            total[context[0]] += self._study.replications
        return total


def title(variant: Variant, phase: str) -> str:
    """How the store calls a variant in a phase."""
    return f"{variant.label} (tuning)" if phase == TUNING else variant.label
