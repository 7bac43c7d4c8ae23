"""Which jobs there are to run: the replications of every variant, and more of them while an interval is too wide."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from coband.simulator.experiments.runs import results
from coband.simulator.experiments.runs.footing import Label, stops_itself
from coband.simulator.experiments.runs.results import Entry, Record
from coband.simulator.experiments.scenario.document import Until
from coband.simulator.experiments.scenario.scenario import Scenario, ScenarioEntry
from coband.simulator.experiments.statistics.evidence import confidence_sequence, share_sequence

if TYPE_CHECKING:
    from coband.simulator.experiments.store.store import Series

FRESH = "fresh"
"""The phase of replications that are reported."""


@dataclass(frozen=True)
class Parameter:
    """The value of one key of a grid for one variant.

    Attributes:
        key: as written, such as ``algorithms.Async.alpha``.
        name: a short form that tells it apart from the other keys.
        text: the label of the value.
        number: the value, where it is a number.
        tuned: whether tuning chooses it.
        displayed: whether results name it; keys that go in step and call their values alike need one name.
    """

    key: str
    name: str
    text: str
    number: float | None
    tuned: bool = False
    displayed: bool = True

    def __str__(self) -> str:
        return f"{self.name}={self.text}"


@dataclass(frozen=True)
class Variant:
    """One entry of ``algorithms``; in a sweep, with the parameters that matter for it.

    Attributes:
        number: its place in the study, from 0.
        scenario: what it is part of; in a sweep, the point's scenario with this entry alone.
        parameters: in the order of the axes; those that change nothing for this entry are left out.
        settings: those of the grid, for ``--set``; all keys, since the file needs them all to be one scenario.
        digest: of everything that determines results, but for the replication; empty where nobody asks for it.
    """

    number: int
    entry: str
    scenario: Scenario
    parameters: tuple[Parameter, ...] = ()
    settings: tuple[str, ...] = ()
    digest: str = ""

    @property
    def configured(self) -> ScenarioEntry:
        """Its entry of the scenario."""
        return next(entry for entry in self.scenario.algorithms if entry.label == self.entry)

    @property
    def algorithm(self) -> str:
        return self.configured.algorithm.name

    @property
    def label(self) -> str:
        """How results call it, such as ``Async [gap=0.1, alpha=4]``."""
        return f"{self.entry} [{', '.join(map(str, self.displayed))}]" if self.parameters else self.entry

    @property
    def displayed(self) -> list[Parameter]:
        """The parameters that results name."""
        return [parameter for parameter in self.parameters if parameter.displayed]

    @property
    def context(self) -> tuple[str, ...]:
        """What it shares with the candidates that tuning compares it with."""
        return (self.entry, *(str(parameter) for parameter in self.displayed if not parameter.tuned))

    def title(self, phase: str) -> str:
        """How results call it in a phase."""
        return self.label if phase == FRESH else f"{self.label} ({phase})"


GROWTH = 2.0
"""At most so many times as many replications in one step: a first guess of the spread is rough."""


def more(until: Until, values: Sequence[float], done: int, *, proportion: bool = False) -> int:
    """How many replications to add, 0 when the mean is known or the most have been made.

    With half-width h after n replications and the target w, about n (h / w)^2 are needed. The interval is that of a
    confidence sequence, which may be looked at after each step: it covers with 95 % wherever one stops.

    Args:
        values: of the replications that finished.
        done: how many have ended, failures included.
        proportion: whether they are all 0 or 1.
    """
    room = until.max_replications - done
    if room <= 0 or not values:
        return 0
    widths = half_widths(until, values, proportion=proportion)
    if widths is None:
        return 1
    half_width, target = widths
    if half_width <= target:
        return 0
    needed = math.inf if target == 0 else len(values) * (half_width / target) ** 2
    wanted = math.ceil(min(needed, GROWTH * len(values)))
    return min(room, max(1, wanted - len(values)))


def half_widths(until: Until, values: Sequence[float], *, proportion: bool = False) -> tuple[float, float] | None:
    """Half the width of the interval of the mean, and the one that is wanted; None where there is no interval yet."""
    interval = share_sequence(round(sum(values)), len(values)) if proportion else confidence_sequence(values)
    if interval is None:
        return None
    half_width, mean = 0.5 * (interval[1] - interval[0]), 0.5 * (interval[0] + interval[1])
    return half_width, until.half_width if until.half_width is not None else abs(mean) * (until.relative or 0.0)


def still_wide(until: Until, values: Sequence[float], *, proportion: bool = False) -> str:
    """What to say of a mean that is not known well enough after the most replications; empty where it is."""
    if len(values) < until.max_replications:  # jobs broke off, perhaps all
        return ""
    widths = half_widths(until, values, proportion=proportion)
    if widths is None or widths[0] <= widths[1]:
        return ""
    return (
        f"{until.on} is known to ± {widths[0]:.3g} after {len(values)} replications, the most that until: allows; "
        f"it asks for ± {widths[1]:.3g}"
    )


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
    """Decides what runs; the same decisions whatever the order in which jobs end.

    Attributes:
        series: gives the curves of a finished task; None where nobody keeps them.
    """

    def __init__(self, study: Planned) -> None:
        self._study = study
        self._open: dict[tuple[int, str], int] = defaultdict(int)
        self._records: dict[tuple[int, str], list[Record]] = defaultdict(list)
        self._made: dict[int, int] = {}
        self._summaries: dict[tuple[int, str], Entry] = {}
        self.series: Callable[[Task], Series] | None = None

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
        further = more(until, values, made, proportion=self._is_share(variant))
        self._made[variant] += further
        return self._add(Task(variant, phase, made + index) for index in range(further))

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

    def sides(self, variants: Iterable[int], phase: str) -> dict[int, Label]:
        """Variants as those who choose among them compare them; a curve is read where it is needed."""
        return {number: self._side(number, phase) for number in variants}

    def stops_itself(self) -> bool:
        """Whether algorithms decide themselves when to stop."""
        return stops_itself(self._study.variants[0].scenario.problem)

    def _side(self, variant: int, phase: str) -> Label:
        records, series = self.records(variant, phase), self.series
        tasks = [Task(variant, phase, int(one["replication"])) for one in records]
        return Label(records, lambda: () if series is None else map(series, tasks))

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
            if why := still_wide(until, values, proportion=self._is_share(variant.number)):
                found.append(f"{variant.title(FRESH)}: {why}")
        return found

    def expected(self) -> dict[str, int]:
        """Entry -> how many jobs it will have at least, those not decided yet included."""
        total: dict[str, int] = dict.fromkeys(self._study.entries, 0)
        for variant in self._study.variants:
            total[variant.entry] += self._made.get(variant.number, 0)
        return total
