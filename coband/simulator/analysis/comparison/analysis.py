"""The analysis behind a report, computed once for the HTML page, the figures and the terminal.

The keys of a grid are of two kinds. Those under ``algorithms.`` are parameters of algorithms, which one chooses. All
others are the environment, which one faces. Algorithms are compared only within one environment: a lower regret under
less noise does not make an algorithm better. A single run has one environment, which has no name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from coband.simulator.analysis.comparison import differences as differences_
from coband.simulator.analysis.comparison.data import Contender, ReportError, RunComparison, name_of
from coband.simulator.analysis.comparison.differences import Difference, Ranking
from coband.simulator.analysis.comparison.flows import Flow, flows
from coband.simulator.analysis.frames import STORED
from coband.simulator.analysis.traces import rounds as rounds_
from coband.simulator.analysis.traces import times
from coband.simulator.analysis.traces.columns import Events, read_events
from coband.simulator.analysis.traces.rounds import Round, Waits
from coband.simulator.arrays import FloatArray
from coband.simulator.experiments.runs.footing import Snapshot, footing, snapshots
from coband.simulator.experiments.statistics import estimates as statistics
from coband.simulator.experiments.statistics.estimates import Estimate
from coband.simulator.metrics import Metric
from coband.simulator.scenario_errors import nearest


@dataclass(frozen=True, eq=False)
class Environment:
    """One combination of the values that one faces.

    Attributes:
        values: name of each key of the grid -> label of its value; empty in a single run.
        comparison: the contenders in this environment. In a sweep their labels are without the environment, such as
            ``Async [alpha=0.1]``.
    """

    values: dict[str, str]
    comparison: RunComparison

    @property
    def name(self) -> str:
        """Such as "noise=0.1, latency=near"."""
        return named(self.values)


def environments(comparison: RunComparison) -> list[Environment]:
    """The environments in the order of runs and grids.

    A variant that a key of the environment does not affect has run once for all its values, and belongs to each of
    them. Two sweeps share an environment if the keys of their grids have the same values. A single run beside a sweep
    is an environment of its own.
    """
    if not any(one.variant for one in comparison.contenders):
        return [Environment({}, comparison)]
    found: dict[tuple[tuple[str, str], ...], list[Contender]] = {}
    for run in dict.fromkeys(one.run for one in comparison.contenders):
        own = [one for one in comparison.contenders if one.run is run]
        for values in combinations([one.faced for one in own]):
            inside = [one for one in own if one.faced.items() <= values.items()]
            key = values if values or len(comparison.runs) == 1 else {"run": name_of(run)}
            found.setdefault(tuple(key.items()), []).extend(inside)
    several = _several(comparison.contenders)
    return [Environment(dict(key), _inside(comparison, members, several)) for key, members in found.items()]


def _inside(
    comparison: RunComparison, members: Sequence[Contender], several: dict[tuple[str, str], set[str]]
) -> RunComparison:
    """The contenders of one environment, by algorithm, with labels that leave out the environment."""
    entries = list(dict.fromkeys(one.entry for one in members))
    ordered = sorted(members, key=lambda one: entries.index(one.entry))
    labels = _short(ordered, several)
    relabelled = tuple(replace(one, label=label, family=one.entry) for one, label in zip(ordered, labels, strict=True))
    return replace(comparison, contenders=relabelled)


def combinations(faced: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    """The combinations of values that occur, in the order of the grid; partial ones where no whole one has them."""
    longest = list(dict.fromkeys(tuple(one.items()) for one in sorted(faced, key=len, reverse=True)))
    order = list(dict.fromkeys(name for one in longest for name, _ in one))
    ranks = {name: list(dict.fromkeys(one[name] for one in faced if name in one)) for name in order}
    found: list[dict[str, str]] = []
    for values in map(dict, longest):
        if not any(values.items() <= known.items() for known in found):
            found.append({name: values[name] for name in order if name in values})
    return sorted(found, key=lambda values: [ranks[name].index(text) for name, text in values.items()])


def named(values: Mapping[str, str]) -> str:
    """Values of keys in words, such as "noise=0.1, latency=near"."""
    return ", ".join(f"{name}={text}" for name, text in values.items())


def _several(contenders: Sequence[Contender]) -> dict[tuple[str, str], set[str]]:
    """(algorithm, parameter) -> its values."""
    found: dict[tuple[str, str], set[str]] = {}
    for one in contenders:
        for name, text in one.chosen.items():
            found.setdefault((one.entry, name), set()).add(text)
    return found


def _short(inside: Sequence[Contender], several: dict[tuple[str, str], set[str]]) -> list[str]:
    """Labels without the environment: the algorithm, and its parameters that have several values in the grid."""
    labels = []
    for one in inside:
        values = [f"{name}={text}" for name, text in one.chosen.items() if len(several[one.entry, name]) > 1]
        labels.append(f"{one.entry} [{', '.join(values)}]" if values else one.entry)
    return [label if labels.count(label) == 1 else one.label for label, one in zip(labels, inside, strict=True)]


ORDER = ("regret", "scalars", "uplink_scalars", "messages", "simulated_time", "mean_age")
"""Order of coband's own metrics; those of the problem and of the algorithms come first."""


WHAT_WAS_DONE = {"turns": "makes the most pulls", "reward": "earns the most reward"}
"""Measures where labels make different numbers of pulls, and what is said of the best one."""


def measures(comparison: RunComparison, within: Sequence[RunComparison] = ()) -> list[Metric]:
    """The measures of a comparison: numbers that all contenders have and that are not equal everywhere.

    The aim of the problem comes first, then what was done where pulls differ within an environment, then the metrics of
    problem and algorithms, then coband's own. Regret is omitted if the problem has another aim.
    """
    metrics, aim = comparison.metrics, comparison.aim
    ranked = [metric for name, metric in metrics.items() if metric.better and name not in (aim, "regret")]
    ranked.sort(key=lambda metric: ORDER.index(metric.name) if metric.name in ORDER else -1)
    first = [replace(metrics[aim], better=metrics[aim].better or "lower")]
    if any(footing("turns", each.contenders, each.stops_itself).pulls for each in within):
        first += [replace(metrics[name], better="higher", verb=verb) for name, verb in WHAT_WAS_DONE.items()]
    return [*first, *(metric for metric in ranked if _differs(comparison, metric))]


def _differs(comparison: RunComparison, measure: Metric) -> bool:
    values = [one.values(measure.name) for one in comparison.contenders]
    if any(len(found) < len(one.records) for found, one in zip(values, comparison.contenders, strict=True)):
        return False
    return len({value for found in values for value in found.values()}) > 1


MAX_PAIRED = 5
"""Largest number of contenders for which all pairs are shown; with more, each is compared with one reference."""


class Shared:
    """What all environments of a comparison have in common."""

    def __init__(self, comparison: RunComparison, measure: str | None) -> None:
        self.comparison = comparison
        self.environments = environments(comparison)
        found = {one.name: one for one in measures(comparison, [one.comparison for one in self.environments])}
        if measure is not None and measure not in found:
            raise ReportError(f"labels cannot be compared by {measure!r}, only by {', '.join(found)}.")
        self.measures = [one for name, one in found.items() if measure in (None, name)]

    @property
    def entries(self) -> list[str]:
        """The algorithms, whatever their parameters."""
        return list(dict.fromkeys(one.entry for one in self.comparison.contenders))

    @property
    def labels(self) -> list[str]:
        """The labels without environments."""
        return list(dict.fromkeys(one.label for each in self.environments for one in each.comparison.contenders))

    def short(self, label: str | None) -> str | None:
        """The label without its environment."""
        for whole in self.comparison.contenders:
            if whole.label == label:
                inside = (one for each in self.environments for one in each.comparison.contenders)
                return next(one.label for one in inside if one.run is whole.run and one.own == whole.own)
        return label

    @cached_property
    def kinds(self) -> dict[str, bool]:
        """Kind of message -> whether it carries scalars; those with the most scalars first, which gives the colours."""
        sizes: dict[str, float] = {}
        for one in self.comparison.contenders:
            for flow in flows(one):
                sizes[flow.kind] = sizes.get(flow.kind, 0.0) + flow.scalars
        return {kind: sizes[kind] > 0 for kind in sorted(sizes, key=lambda kind: (-sizes[kind], kind))}


@dataclass(frozen=True, eq=False)
class Timing:
    """How one contender spends simulated time.

    Attributes:
        shares: time of an average agent in each category, shape (replications, categories).
        first: events of the first replication.
    """

    contender: Contender
    shares: FloatArray
    rounds: tuple[tuple[Round, ...], ...]
    first: Events

    @property
    def all_rounds(self) -> list[Round]:
        return [one for found in self.rounds for one in found]

    @property
    def parts(self) -> list[float]:
        """Mean time of a round in each of ``rounds.PARTS``."""
        parts: list[float] = np.mean([one.parts for one in self.all_rounds], axis=0).tolist()
        return parts

    @property
    def waits(self) -> list[Waits]:
        """The agents that rounds of the first replication waited for."""
        return rounds_.waits(self.rounds[0])


class Analysis:
    """The statistics of a comparison; results are computed on first use.

    In a sweep the labels are rivals only within one environment: :attr:`within` has an analysis of each.

    Args:
        reference: label that all others are compared with, in a sweep with the environment or without; None: all pairs
            are compared, or with more than :data:`MAX_PAIRED` contenders the first label is the reference.
        environment: name of the environment; empty in a single run, and for all environments of a sweep together.
        shared: what all environments have in common; None to find it in the comparison.
        measure: what is compared; None: all that differs.

    Attributes:
        swept: whether it is about all environments of a sweep together.

    Raises:
        ReportError: there is no such label, or labels cannot be compared by the measure.
    """

    def __init__(
        self,
        comparison: RunComparison,
        reference: str | None = None,
        environment: str = "",
        shared: Shared | None = None,
        measure: str | None = None,
    ) -> None:
        self.comparison = comparison
        self.environment = environment
        self.contenders = comparison.contenders
        self.labels = [one.label for one in self.contenders]
        self.swept = shared is None and any(one.variant for one in self.contenders)
        self.shared = Shared(comparison, measure) if shared is None else shared
        self.measures = self.shared.measures
        short = reference if shared is not None else self.shared.short(reference)
        if short is not None and short not in (self.labels if shared is not None else self.shared.labels):
            known = nearest(str(reference), self.shared.labels)
            raise ReportError(f"there is no label {reference!r} to compare with; there is {known}.")
        many = len(self.labels) > MAX_PAIRED
        self.reference = self.labels[0] if short is None and many else short

    @cached_property
    def within(self) -> list[Analysis]:
        """The analysis of each environment of a sweep; a single run is its own."""
        if not self.swept:
            return [self]
        found = []
        for one in self.shared.environments:
            inside = [other.label for other in one.comparison.contenders]
            reference = self.reference if self.reference in inside else None
            found.append(Analysis(one.comparison, reference, one.name, self.shared))
        return found

    def table(self, name: str) -> pd.DataFrame:
        """A table that `coband.Run` has, such as "agents": of all runs, with the labels of this comparison."""
        found = {run: STORED[name](run) for run in dict.fromkeys(one.run for one in self.contenders)}
        rows = [found[one.run][found[one.run]["label"] == one.own].assign(label=one.label) for one in self.contenders]
        return pd.concat(rows, ignore_index=True)

    def estimates(self, measure: Metric) -> list[Estimate]:
        """Mean and interval of every label: Student's t, or Wilson's for proportions."""
        return [_estimate(measure, list(one.values(measure.name).values())) for one in self.contenders]

    @cached_property
    def differences(self) -> dict[str, list[Difference]]:
        """Key of a measure -> differences of all pairs."""
        return {one.name: differences_.differences(self.comparison, one) for one in self.measures}

    @cached_property
    def rankings(self) -> list[Ranking]:
        return [differences_.ranking(self.comparison, one, self.differences[one.name]) for one in self.measures]

    @cached_property
    def at_times(self) -> list[Snapshot]:
        """The labels at the same simulated times; none where they have met different worlds or are equally fast."""
        times = {statistics.mean(list(one.values("simulated_time").values())) for one in self.contenders}
        paired = not any(self.comparison.why_unpaired(self.contenders[0], one) for one in self.contenders)
        many = len(self.contenders) <= MAX_PAIRED and len(times) > 1 and paired
        return self.at() if many else []

    def at(self, time: float | None = None) -> list[Snapshot]:
        """The labels at a simulated time; None: at some."""
        return list(snapshots({one.label: one.series for one in self.contenders}, time))

    def shown(self, measure: Metric) -> list[Difference]:
        """The differences to show: all pairs, or those with the reference."""
        return self._shown[measure.name]

    @cached_property
    def _shown(self) -> dict[str, list[Difference]]:
        if self.reference is None:
            return self.differences
        return {key: differences_.against(found, self.reference) for key, found in self.differences.items()}

    @cached_property
    def flows(self) -> list[tuple[str, list[Flow]]]:
        return [(one.label, flows(one)) for one in self.contenders]

    @property
    def silent(self) -> bool:
        """Whether no label sends a message."""
        return not any(found for _, found in self.flows)

    @property
    def replications(self) -> list[int]:
        return [len(one.records) for one in self.contenders]

    @cached_property
    def timings(self) -> list[Timing]:
        """The timings of the contenders that have a trace."""
        if self.swept:
            return [timing for one in self.within for timing in one.timings]
        return [_timing(one, self._agents(one)) for one in self.contenders if one.traced]

    @property
    def untraced(self) -> list[str]:
        return [one.label for one in self.contenders if not one.traced]

    def _agents(self, contender: Contender) -> int | None:
        agents = self.comparison.scenario_of(contender).get("agents")
        return agents.get("count") if isinstance(agents, dict) else None


def _estimate(measure: Metric, values: list[float]) -> Estimate:
    if measure.proportion:
        return Estimate(statistics.mean(values), statistics.wilson(values), len(values))
    return statistics.estimate(values)


def _timing(contender: Contender, agents: int | None) -> Timing:
    shares, rounds, first = [], [], None
    for job in contender.jobs:
        events = read_events(job)
        first = events if first is None else first
        count = agents or int(events["node"].max(initial=-1)) + 1
        end = float(contender.values("simulated_time").get(job.replication, 0.0))
        shares.append(times.breakdown(events, count, end).mean(axis=0))
        rounds.append(tuple(rounds_.rounds(events)))
    assert first is not None
    return Timing(contender, np.array(shares), tuple(rounds), first)
