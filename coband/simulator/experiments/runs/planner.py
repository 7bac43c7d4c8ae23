"""What runs next: planners of replications, of more of them while an interval is too wide, and of tuning."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from coband.simulator.experiments.runs import results
from coband.simulator.experiments.runs.footing import Label, choosable, stops_itself
from coband.simulator.experiments.runs.results import Entry, Record
from coband.simulator.experiments.scenario.document import Tuning, Until
from coband.simulator.experiments.scenario.scenario import Scenario
from coband.simulator.experiments.statistics import estimates as statistics
from coband.simulator.experiments.statistics.evidence import confidence_sequence, share_sequence

if TYPE_CHECKING:
    from coband.simulator.experiments.store.store import Series

FRESH, TUNING = "fresh", "tuning"
"""The phases of replications that are reported, and of those that choose."""
FIRST_REPLICATION = 1_000_000
"""Number of the first replication for tuning; those that are reported have smaller numbers, so no seed is met twice."""


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
        digest: of everything that determines results, but for the replication.
    """

    number: int
    entry: str
    scenario: Scenario
    parameters: tuple[Parameter, ...] = ()
    settings: tuple[str, ...] = ()
    digest: str = ""

    @property
    def algorithm(self) -> str:
        """The algorithm's name."""
        return next(one.algorithm.name for one in self.scenario.algorithms if one.label == self.entry)

    @property
    def label(self) -> str:
        """How results call it, such as ``Async [gap=0.1, alpha=4]``."""
        return f"{self.entry} [{', '.join(map(str, self.displayed))}]" if self.parameters else self.entry

    @property
    def displayed(self) -> list[Parameter]:
        """The parameters that results name."""
        return [parameter for parameter in self.parameters if parameter.displayed]

    @property
    def shown(self) -> dict[str, str]:
        """Name -> label of the value of each of these."""
        return {parameter.name: parameter.text for parameter in self.displayed}

    @property
    def context(self) -> tuple[str, ...]:
        """What it shares with the candidates that tuning compares it with."""
        return (self.entry, *(str(parameter) for parameter in self.displayed if not parameter.tuned))

    def is_share(self, metric: str) -> bool:
        """Whether a metric is 0 or 1 in every replication."""
        found = self.scenario.metrics.get(metric)
        return found is not None and found.proportion

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


def still_wide(until: Until, values: Sequence[float], done: int, *, proportion: bool = False) -> str:
    """What to say of a mean that is not known well enough after the most replications; empty where it is.

    Args: as of `more`.
    """
    if done < until.max_replications or not values:
        return ""
    widths = half_widths(until, values, proportion=proportion)
    broken = f" and {done - len(values)} that broke off" if done > len(values) else ""
    after = f"after {len(values)} replications{broken}, the most that until: allows"
    if widths is None:
        return f"{until.on} has no interval {after}"
    wide, target = widths
    return f"{until.on} is known to ± {wide:.3g} {after}; it asks for ± {target:.3g}" if wide > target else ""


@dataclass(frozen=True)
class Task:
    """One variant on one replication."""

    variant: int
    phase: str
    replication: int


Ended = tuple[Task, Record | None]
"""A task that has ended, and its record; None if it broke off."""
Planner = Generator[Sequence[Task], Ended, None]
"""Decides what runs: it yields tasks, and is sent each of them when it has ended; what it yields then runs too."""


def all_of(tasks: Sequence[Task]) -> Generator[Sequence[Task], Ended, list[Record]]:
    """Have some tasks run; returns the records of those that finished, in the order of the tasks, when all have ended.

    Whoever decides after that decides the same whatever the order in which jobs end.
    """
    records: dict[Task, Record | None] = {}
    new = wanted = tuple(dict.fromkeys(tasks))
    while len(records) < len(wanted):
        task, records[task] = yield new
        new = ()
    return [record for task in wanted if (record := records[task]) is not None]


def together(planners: Iterable[Planner]) -> Planner:
    """Several planners side by side, each of which is sent its own tasks; all begin replication by replication."""
    owners: dict[Task, Planner] = {}
    for planner in planners:
        owners.update(dict.fromkeys(next(planner, ()), planner))
    new: Sequence[Task] = sorted(owners, key=lambda task: (task.replication, task.variant))
    while owners:
        ended = yield new
        planner = owners.pop(ended[0])
        new = sent(planner, ended)
        owners.update(dict.fromkeys(new, planner))


def sent(planner: Planner, ended: Ended) -> Sequence[Task]:
    """What a planner yields when it is sent a task that has ended; nothing if it has come to its end."""
    try:
        return planner.send(ended)
    except StopIteration:
        return ()


def replicated(variant: Variant, numbers: Sequence[int], until: Until | None = None) -> Planner:
    """The replications that are reported, and more of them while the mean is not known well enough."""
    records = yield from all_of([Task(variant.number, FRESH, number) for number in numbers])
    made = len(numbers)
    while until is not None:
        values = results.numbers(until.on, records)
        further = more(until, values, made, proportion=variant.is_share(until.on))
        if not further:
            break
        records += yield from all_of([Task(variant.number, FRESH, made + index) for index in range(further)])
        made += further


def tuned(
    variants: Sequence[Variant], rule: Tuning, tally: Tally, numbers: Sequence[int], until: Until | None = None
) -> Planner:
    """Candidates on replications of their own, then the best of each context on those that are reported."""
    groups: dict[tuple[str, ...], list[Variant]] = defaultdict(list)
    for variant in variants:
        groups[variant.context].append(variant)

    def best_of(context: tuple[str, ...], group: Sequence[Variant]) -> Planner:
        tally.foreseen[context[0]] += len(numbers)
        trials = range(FIRST_REPLICATION, FIRST_REPLICATION + rule.replications)
        yield from all_of([Task(variant.number, TUNING, number) for number in trials for variant in group])
        candidates = [variant.number for variant in group]
        values = choosable(rule.on, tally.sides(candidates, TUNING), partial(tally.stops_itself, candidates[0]))
        choice = choose(rule, context, {number: list(values.get(number, {}).values()) for number in candidates})
        tally.choices.append(choice)
        tally.foreseen[context[0]] -= len(numbers)
        if choice.variant is not None:
            tally.chosen.append(choice.variant)
            yield from replicated(variants[choice.variant], numbers, until)

    return together(best_of(*group) for group in groups.items())


@dataclass(frozen=True)
class Choice:
    """What tuning found for one algorithm in one context.

    Attributes:
        variant: number of the best variant; None when no candidate finished all its replications, or none of those
            that did may be chosen (`runs.footing.choosable`).
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


Key = tuple[int, str]
"""Number of a variant, and a phase."""


class Tally:
    """What the tasks of a study have given so far.

    Args:
        variants: of the study; a search adds to them.
        entries: labels of its algorithms.

    Attributes:
        foreseen: entry -> how many jobs it will have in addition to those that are planned.
        choices: what tuning has found.
        chosen: numbers of the variants that were chosen to be reported.
        series: gives the curves of a finished task; None where nobody keeps them.
    """

    def __init__(self, variants: Sequence[Variant], entries: Sequence[str]) -> None:
        self._variants = variants
        self._planned = Counter(dict.fromkeys(entries, 0))
        self._open, self._ended = Counter[Key](), Counter[Key]()
        self._records: dict[Key, list[Record]] = defaultdict(list)
        self._summaries: dict[Key, Entry] = {}
        self.foreseen = Counter[str]()
        self.choices: list[Choice] = []
        self.chosen: list[int] = []
        self.series: Callable[[Task], Series] | None = None

    def add(self, tasks: Iterable[Task]) -> None:
        """Some tasks are planned."""
        for task in tasks:
            self._open[task.variant, task.phase] += 1
            self._planned[self._variants[task.variant].entry] += 1

    def take(self, task: Task, record: Record | None) -> None:
        """A task has ended, with a record or without."""
        key = task.variant, task.phase
        self._open[key] -= 1
        self._ended[key] += 1
        if record is not None:
            self._records[key].append(record)
            self._summaries.pop(key, None)

    def is_open(self, variant: int, phase: str) -> bool:
        """Whether a variant has tasks in a phase that have not ended."""
        return self._open[variant, phase] > 0

    def records(self, variant: int, phase: str) -> list[Record]:
        """The records of a variant so far, in order of replication."""
        return sorted(self._records[variant, phase], key=lambda record: int(record["replication"] or 0))

    def sides(self, variants: Iterable[int], phase: str) -> dict[int, Label]:
        """Variants as those who choose among them compare them; a curve is read where it is needed."""
        return {number: self._side(number, phase) for number in variants}

    def _side(self, variant: int, phase: str) -> Label:
        records, series = self.records(variant, phase), self.series
        tasks = [Task(variant, phase, int(one["replication"])) for one in records]
        return Label(records, lambda: () if series is None else map(series, tasks))

    def stops_itself(self, variant: int = 0) -> bool:
        """Whether algorithms on the problem of a variant decide themselves when to stop."""
        return stops_itself(self._variants[variant].scenario.problem)

    def summary(self, variant: Variant, phase: str) -> Entry:
        """The records of a variant so far, their means and intervals."""
        key = variant.number, phase
        if key not in self._summaries:
            records, metrics = self.records(*key), variant.scenario.metrics
            self._summaries[key] = results.summarise(variant.title(phase), variant.algorithm, records, metrics)
        return self._summaries[key]

    def remarks(self, until: Until | None) -> list[str]:
        """Which means are not known as well as was asked, though no replication follows."""
        if until is None:
            return []
        found = list[str]()
        for variant in self._variants:
            values = results.numbers(until.on, self.records(variant.number, FRESH))
            done = self._ended[variant.number, FRESH]
            if why := still_wide(until, values, done, proportion=variant.is_share(until.on)):
                found.append(f"{variant.title(FRESH)}: {why}")
        return found

    def expected(self) -> dict[str, int]:
        """Entry -> how many jobs it will have at least, those not decided yet included."""
        return {entry: number + self.foreseen[entry] for entry, number in self._planned.items()}
