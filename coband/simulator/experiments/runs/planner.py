"""Which jobs there are to run: the replications of every variant, and more of them where a mean is not known yet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from coband.simulator.experiments.runs import results, stopping
from coband.simulator.experiments.runs.results import Entry, Record
from coband.simulator.experiments.runs.variant import FRESH, Variant
from coband.simulator.experiments.scenario.document import Until


@dataclass(frozen=True)
class Task:
    """One variant on one replication."""

    variant: int
    phase: str
    replication: int


class Planned(Protocol):
    """What a planner needs of a study (`experiments.runs.study.Study`)."""

    @property
    def variants(self) -> Sequence[Variant]: ...
    @property
    def numbers(self) -> Sequence[int]: ...
    @property
    def replications(self) -> int: ...
    @property
    def entries(self) -> Sequence[str]: ...
    @property
    def until(self) -> Until | None: ...


class Planner:
    """Decides what runs; the same decisions whatever the order in which jobs end."""

    def __init__(self, study: Planned) -> None:
        self._study = study
        self._open: dict[tuple[int, str], int] = defaultdict(int)
        self._records: dict[tuple[int, str], list[Record]] = defaultdict(list)
        self._made: dict[int, int] = {}
        self._summaries: dict[tuple[int, str], Entry] = {}

    def begin(self) -> list[Task]:
        """The first tasks, replication by replication, so that all variants advance together."""
        return self._first([variant.number for variant in self._study.variants])

    def _first(self, variants: Iterable[int]) -> list[Task]:
        """The replications that variants begin with."""
        chosen, numbers = list(variants), self._study.numbers
        self._made.update(dict.fromkeys(chosen, len(numbers)))
        return self._add(Task(variant, FRESH, number) for number in numbers for variant in chosen)

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
            self._summaries.pop(key, None)
        return [] if self._open[key] else self._next(*key)

    def _next(self, variant: int, phase: str) -> list[Task]:
        """What follows when all tasks of a variant in a phase have ended."""
        until = self._study.until
        if until is None:
            return []
        made = self._made[variant]
        values = results.numbers(until.on, self.records(variant, phase))
        more = stopping.more(until, values, made, proportion=self._is_share(variant))
        self._made[variant] += more
        return self._add(Task(variant, phase, made + index) for index in range(more))

    def _is_share(self, variant: int) -> bool:
        """Whether what has to be known is 0 or 1 in every replication."""
        assert self._study.until is not None
        metric = self._study.variants[variant].scenario.metrics.get(self._study.until.on)
        return metric is not None and metric.proportion

    def is_open(self, variant: int, phase: str) -> bool:
        """Whether a variant has tasks in a phase that have not ended."""
        return self._open[variant, phase] > 0

    @property
    def chosen(self) -> list[int]:
        """Numbers of the variants that tuning has chosen so far."""
        return []

    def records(self, variant: int, phase: str) -> list[Record]:
        """The records of a variant so far, in order of replication."""
        return sorted(self._records[variant, phase], key=lambda record: int(record["replication"] or 0))

    def summary(self, variant: Variant, phase: str) -> Entry:
        """The records of a variant so far, their means and intervals."""
        key = variant.number, phase
        if key not in self._summaries:
            records, metrics = self.records(*key), variant.scenario.metrics
            self._summaries[key] = results.summarise(variant.title(phase), variant.algorithm, records, metrics)
        return self._summaries[key]

    def remarks(self) -> list[str]:
        """Which means are not known as well as was asked, though no replication follows."""
        until, found = self._study.until, list[str]()
        if until is None:
            return found
        for variant in self._study.variants:
            values = results.numbers(until.on, self.records(variant.number, FRESH))
            if why := stopping.still_wide(until, values, proportion=self._is_share(variant.number)):
                found.append(f"{variant.title(FRESH)}: {why}")
        return found

    def expected(self) -> dict[str, int]:
        """Entry -> how many jobs it will have at least, those not decided yet included."""
        total: dict[str, int] = dict.fromkeys(self._study.entries, 0)
        for variant in self._study.variants:
            total[variant.entry] += self._made.get(variant.number, 0)
        return total
