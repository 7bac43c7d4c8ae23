"""What labels are compared by, and at which pulls: the one rule that all judges ask.

Labels make different numbers of pulls where a schedule ends at a time, or where agents wait for what does not come.
Who makes few pulls has little regret and sends little, and has not done better for it. So

* a number that has a curve (`CURVES`) is compared at equal pulls: at the fewest that any of the labels made in that
  replication. Rewards and pulls themselves are compared at the end of the run, as are numbers without a curve;
* nobody is better than a label that makes more pulls (`BEHIND`);
* who makes fewer than half of the most pulls (`WAITS`) is not ranked or chosen: it has waited.

Where an algorithm itself decides when to stop, as in pure exploration, pulls are what it is judged by, and totals are
compared. Where pulls are equal, the rule changes nothing.

Also what labels have reached at the same simulated times (`snapshots`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from coband.simulator.arrays import FloatArray
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.runs.results import Record
from coband.simulator.experiments.statistics.estimates import LEVEL, interval, paired_difference

if TYPE_CHECKING:
    from coband.simulator.experiments.store.store import Series

CURVES: Mapping[str, str] = {
    "turns": "turns",
    "regret": "regret",
    "reward": "reward",
    "scalars": "scalars",
    "energy": "energy",
    "simulated_time": "times",
}
"""Numbers of results that are known during a run, and the curve of a series that has them."""
AT_THE_END = ("turns", "reward")
BEHIND, WAITS = 0.99, 0.5
AIM = "regret"


class Side(Protocol):
    """A label that is compared."""

    def values(self, key: str) -> dict[int, float]: ...
    @property
    def series(self) -> Sequence[Series]: ...


@dataclass(frozen=True, eq=False)
class Label:
    """A label by its records; curves are read where they are needed."""

    records: Sequence[Record]
    read: Callable[[], Iterable[Series]] = tuple

    def values(self, key: str) -> dict[int, float]:
        found = {int(one["replication"] or 0): one.get(key) for one in self.records}
        return {number: float(value) for number, value in found.items() if isinstance(value, (int, float))}

    @cached_property
    def series(self) -> Sequence[Series]:
        return list(self.read())


@dataclass(frozen=True)
class Footing:
    """What some labels are compared by.

    Attributes:
        values: of each label, by replication.
        made: pulls of each label in its whole run, by replication; empty where they do not matter.
        at: mean number of pulls at which they are compared; None for the whole run.
    """

    values: tuple[dict[int, float], ...]
    made: tuple[Mapping[int, float], ...] = ()
    at: float | None = None

    @property
    def pulls(self) -> tuple[float, ...]:
        """Mean number of pulls of each label, in the replications that all have; empty where they do not matter."""
        return _means(self.made)

    @property
    def where(self) -> str:
        """In words, with a blank before; empty where pulls are equal."""
        if not self.pulls:
            return ""
        return " over the whole run" if self.at is None else f" at equal pulls ({self.at:,.0f} on average)"

    def of(self, *places: int) -> Footing:
        """The same of some of the labels, still at the pulls of all."""
        made = tuple(self.made[place] for place in places if self.made)
        return Footing(tuple(self.values[place] for place in places), made, self.at)

    def behind(self, first: int, second: int) -> bool:
        """Whether the first makes fewer pulls than the second, so that it is not better for less of anything."""
        return bool(self.made) and fewer(BEHIND, self.made[first], self.made[second])


def footing(key: str, sides: Sequence[Side], stops: Callable[[], bool] = lambda: False) -> Footing:
    """How some labels are compared on a number of their results.

    Args:
        stops: whether their algorithms decide themselves when to stop; asked where pulls differ.
    """
    values, pulls = tuple(one.values(key) for one in sides), tuple(one.values("turns") for one in sides)
    least: dict[int, float] = {}
    for number, made in (item for one in pulls for item in one.items()):
        least[number] = min(made, least.get(number, made))
    if all(one[number] == least[number] for one in pulls for number in one) or stops():
        return Footing(values)
    if key in AT_THE_END or key not in CURVES:
        return Footing(values, pulls)
    found = tuple(_at_pulls(key, one, least, own) for one, own in zip(sides, pulls, strict=True))
    if any(one.keys() < own.keys() for one, own in zip(found, values, strict=True)):
        return Footing(values, pulls)  # a curve is missing
    return Footing(found, pulls, float(np.mean(list(least.values()))))


def waiting(sides: Sequence[Side], stops: Callable[[], bool] = lambda: False) -> list[bool]:
    """Which labels have waited most of the time that others used, and are neither ranked nor chosen."""
    pulls = [one.values("turns") for one in sides]
    every = [made for one in pulls for made in one.values()]
    if min(every, default=0.0) >= WAITS * max(every, default=0.0) or stops():
        return [False] * len(pulls)
    return [any(fewer(WAITS, one, other) for other in pulls) for one in pulls]


def _means(pulls: Sequence[Mapping[int, float]]) -> tuple[float, ...]:
    """Means over the replications that all labels have which have any; over a label's own where they share none."""
    ready = [one for one in pulls if one]
    common = set(ready[0]).intersection(*ready) if ready else set()
    return tuple(float(np.mean([one[number] for number in common or one])) if one else 0.0 for one in pulls)


def fewer(share: float, first: Mapping[int, float], second: Mapping[int, float]) -> bool:
    """Whether a label makes less than a share of another's pulls."""
    few, many = _means((first, second))
    return bool(first) and few < share * many


def choosable(key: str, sides: Mapping[int, Side], stops: Callable[[], bool]) -> dict[int, dict[int, float]]:
    """Number of a candidate -> what it is chosen by, in each replication.

    Those that have waited are left out, and those without a finished job; also, where numbers of whole runs are
    compared for want of a curve, those that make fewer pulls than others.
    """
    late = waiting(list(sides.values()), stops)
    left = {number: one for (number, one), out in zip(sides.items(), late, strict=True) if not out and one.values(key)}
    found = footing(key, list(left.values()), stops)
    numbers = range(len(left))
    whole = found.at is None and key not in AT_THE_END
    behind = [whole and any(found.behind(one, other) for other in numbers) for one in numbers]
    return {number: one for number, one, out in zip(left, found.values, behind, strict=True) if not out}


def judged(key: str, sides: Iterable[Side], stops: Callable[[], bool]) -> str:
    """By what `choosable` chooses, in words; empty where all make as many pulls."""
    ground = footing(key, list(sides), stops)
    if not ground.made:
        return ""
    if ground.at is None and key not in AT_THE_END:
        return f"{key} over the whole run (there is no curve of it), without those that make fewer pulls than others"
    return f"{key} {'at equal pulls' if ground.at is not None else 'over the whole run'}"


def stops_itself(problem: object) -> bool:
    """Whether algorithms on a problem decide themselves when to stop: it has another aim than regret."""
    return Registry.installed().aim_of(str(getattr(problem, "kind", ""))) != AIM


def _at_pulls(key: str, side: Side, places: Mapping[int, float], own: Mapping[int, float]) -> dict[int, float]:
    """A number of each replication after so many pulls: its result where these are all of them."""
    curves, whole = {one.replication: one for one in side.series}, side.values(key)
    found = {}
    for number, value in whole.items():
        if own.get(number) == places.get(number):
            found[number] = value
        elif number in curves and (reached := at_pulls(key, curves[number], places[number])) is not None:
            found[number] = reached
    return found


def at_pulls(key: str, series: Series, place: float) -> float | None:
    """A number after so many pulls, on a line between stored points; None where there is no curve or fewer pulls."""
    curve = _curve(key, series)
    if curve is None or not len(curve) or place > series.turns[-1]:
        return None
    return float(np.interp(place, [0, *series.turns], [0.0, *curve]))


def at_time(key: str, series: Series, place: float) -> float | None:
    """A number at a simulated time, that of the last stored point before; None where there is no curve."""
    curve = _curve(key, series)
    index = int(np.searchsorted(series.times, place, side="right")) - 1
    return None if curve is None else float(curve[index]) if index >= 0 else 0.0


def _curve(key: str, series: Series) -> FloatArray | None:
    found: FloatArray | None = getattr(series, CURVES[key]) if key in CURVES else None
    return found


SHARES = (0.25, 0.5, 0.75, 1.0)
REACHED = tuple(key for key in CURVES if key not in ("simulated_time", "energy"))
MOST = "most reward"


@dataclass(frozen=True)
class Snapshot:
    """Means over replications of a label at one simulated time; ``regret_per_turn`` is None before the first turn.

    Attributes:
        reward: None in runs of older versions, which did not keep it.
        ci95: 95 % t interval of each mean; None for one replication.
        verdict: `MOST` if the paired differences from all other labels say so, at a level at which they hold together
            with 95 %, and no label has made more pulls by then; otherwise empty.
    """

    time: float
    label: str
    turns: float
    regret: float
    regret_per_turn: float | None
    scalars: float
    reward: float | None = None
    ci95: Mapping[str, tuple[float, float] | None] = field(default_factory=dict)
    verdict: str = ""


def snapshots(series: Mapping[str, Sequence[Series]], at: float | None = None) -> Iterator[Snapshot]:
    """Every label at a simulated time, or when the first has taken a quarter, a half, three quarters and all turns.

    Replications of one number have the same arms and noise. Between two stored points of a series its earlier one
    counts, so nothing is said to have happened too early.
    """
    series = {label: found for label, found in series.items() if found and all(len(one.times) for one in found)}
    if not series:
        return
    if at is not None:
        yield from _at(series, at)
        return
    totals = {label: float(np.mean([one.turns[-1] for one in found])) for label, found in series.items()}
    for share in SHARES:
        turns = share * max(totals.values())
        there = [found for label, found in series.items() if totals[label] >= turns]
        yield from _at(series, min(float(np.mean([_time_of(one, turns) for one in found])) for found in there))


def _at(series: Mapping[str, Sequence[Series]], time: float) -> Iterator[Snapshot]:
    reached = {
        label: {
            key: {one.replication: got for one in found if (got := at_time(key, one, time)) is not None}
            for key in REACHED
        }
        for label, found in series.items()
    }
    best = _most_reward(reached)
    for label, values in reached.items():
        means = {key: float(np.mean(list(one.values()))) if one else None for key, one in values.items()}
        turns, regret, scalars = (float(means[key] or 0.0) for key in ("turns", "regret", "scalars"))
        bounds = {key: interval(list(one.values())) if one else None for key, one in values.items()}
        rate = regret / turns if turns else None
        verdict = MOST if label == best else ""
        yield Snapshot(time, label, turns, regret, rate, scalars, reward=means["reward"], ci95=bounds, verdict=verdict)


def _most_reward(reached: Mapping[str, Mapping[str, Mapping[int, float]]]) -> str | None:
    """The label with the most reward, if that is certain and none has made more pulls."""
    rewards, pulls = ({label: one[key] for label, one in reached.items()} for key in ("reward", "turns"))
    if not all(rewards.values()) or len(rewards) < 2:
        return None
    best = max(rewards, key=lambda label: float(np.mean(list(rewards[label].values()))))
    level = 1.0 - (1.0 - LEVEL) / (len(rewards) * (len(rewards) - 1) / 2)
    for label, values in rewards.items():
        common = sorted(rewards[best].keys() & values.keys())
        own, others = ([one[number] for number in common] for one in (rewards[best], values))
        bounds = paired_difference(own, others, level).interval if common else None
        if label != best and (bounds is None or bounds[0] <= 0 or fewer(BEHIND, pulls[best], pulls[label])):
            return None
    return best


def _time_of(series: Series, turns: float) -> float:
    """When a number of turns had been taken, or else all of them."""
    index = int(np.searchsorted(series.turns, turns))
    return float(series.times[min(index, len(series.times) - 1)])
