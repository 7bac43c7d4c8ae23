"""How far each algorithm has come at the same simulated times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from coband.simulator.experiments.runs.footing import BEHIND, CURVES, at_time, fewer
from coband.simulator.experiments.statistics.estimates import LEVEL, interval, paired_difference
from coband.simulator.experiments.store.store import Series, StoredRun

SHARES = (0.25, 0.5, 0.75, 1.0)
COLUMNS = tuple(key for key in CURVES if key not in ("simulated_time", "energy"))
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


def timeline(run: StoredRun, labels: Sequence[str]) -> Iterator[Snapshot]:
    """Every label at the times when the first has taken a quarter, a half, three quarters and all of the most turns."""
    return snapshots({label: run.series(label) for label in labels})


def snapshots(series: Mapping[str, Sequence[Series]]) -> Iterator[Snapshot]:
    """The same of the curves of some labels, whose replications of one number have the same arms and noise.

    Between two stored points of a series its earlier one counts, so nothing is said to have happened too early.
    """
    series = {label: found for label, found in series.items() if found and all(len(one.times) for one in found)}
    if not series:
        return
    totals = {label: float(np.mean([one.turns[-1] for one in found])) for label, found in series.items()}
    for share in SHARES:
        turns = share * max(totals.values())
        there = [found for label, found in series.items() if totals[label] >= turns]
        yield from _at(series, min(float(np.mean([_time_of(one, turns) for one in found])) for found in there))


def _at(series: Mapping[str, Sequence[Series]], time: float) -> Iterator[Snapshot]:
    reached: dict[str, dict[str, list[float]]] = {}
    for label, found in series.items():
        columns = {key: [at_time(key, one, time) for one in found] for key in COLUMNS}
        reached[label] = {key: [one for one in values if one is not None] for key, values in columns.items()}
    best = _best(series, reached)
    for label, values in reached.items():
        means = {key: float(np.mean(numbers)) if numbers else None for key, numbers in values.items()}
        turns, regret, scalars = (float(means[key] or 0.0) for key in ("turns", "regret", "scalars"))
        bounds = {key: interval(numbers) if numbers else None for key, numbers in values.items()}
        rate = regret / turns if turns else None
        verdict = MOST if label == best else ""
        yield Snapshot(time, label, turns, regret, rate, scalars, reward=means["reward"], ci95=bounds, verdict=verdict)


def _best(series: Mapping[str, Sequence[Series]], reached: Mapping[str, Mapping[str, list[float]]]) -> str | None:
    """The label with the most reward, if that is certain and none has made more pulls."""
    rewards, pulls = (
        {
            label: dict(zip((one.replication for one in found), reached[label][key], strict=False))
            for label, found in series.items()
        }
        for key in ("reward", "turns")
    )
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
