"""Everything that a report says about a comparison, computed once for page, figures and terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from coband.simulator.arrays import FloatArray
from coband.simulator.experiments.report import comparison as comparisons
from coband.simulator.experiments.report import rounds as rounds_
from coband.simulator.experiments.report import times
from coband.simulator.experiments.report.communication import Flow, flows
from coband.simulator.experiments.report.comparison import Difference, Ranking
from coband.simulator.experiments.report.data import Comparison, Contender, ReportError
from coband.simulator.experiments.report.events import Events, read
from coband.simulator.experiments.report.measures import Measure, measures
from coband.simulator.experiments.report.rounds import Round, Waits
from coband.simulator.experiments.statistics import estimates as statistics
from coband.simulator.experiments.statistics.estimates import Estimate

MOST_PAIRED = 5
"""Up to so many contenders all pairs are shown, otherwise each against one."""


@dataclass(frozen=True, eq=False)
class Timing:
    """Where one contender's time went.

    Attributes:
        shares: time of an average agent in each category, shape (replications, categories).
        rounds: of each replication.
        first: events of its first replication.
    """

    contender: Contender
    shares: FloatArray
    rounds: tuple[tuple[Round, ...], ...]
    first: Events

    @property
    def all_rounds(self) -> list[Round]:
        """The rounds of all replications."""
        return [one for found in self.rounds for one in found]

    @property
    def parts(self) -> list[float]:
        """Mean time of a round in each of ``rounds.PARTS``."""
        parts: list[float] = np.mean([one.parts for one in self.all_rounds], axis=0).tolist()
        return parts

    @property
    def waits(self) -> list[Waits]:
        """For whom rounds of the first replication waited."""
        return rounds_.waits(self.rounds[0])


class Analysis:
    """What there is to say.

    Args:
        comparison: the contenders.
        reference: differences are shown against this label; None for all pairs, or with more than
            :data:`MOST_PAIRED` contenders for the first one.

    Raises:
        ReportError: there is no such label.
    """

    def __init__(self, comparison: Comparison, reference: str | None = None) -> None:
        self.comparison = comparison
        self.contenders = comparison.contenders
        self.labels = [one.label for one in self.contenders]
        if reference is not None and reference not in self.labels:
            raise ReportError(f"there is no label {reference!r} to compare with; there is {', '.join(self.labels)}.")
        many = len(self.labels) > MOST_PAIRED
        self.reference = self.labels[0] if reference is None and many else reference
        self.measures = measures(comparison)

    def estimates(self, measure: Measure) -> list[Estimate]:
        """Mean and interval of every label: Student's, of proportions Wilson's."""
        return [_estimate(measure, list(one.values(measure.key).values())) for one in self.contenders]

    @cached_property
    def differences(self) -> dict[str, list[Difference]]:
        """Key of a measure -> differences of all pairs."""
        return {one.key: comparisons.differences(self.comparison, one) for one in self.measures}

    @cached_property
    def rankings(self) -> list[Ranking]:
        """Who wins on each measure."""
        return [comparisons.ranking(self.comparison, one, self.differences[one.key]) for one in self.measures]

    def shown(self, measure: Measure) -> list[Difference]:
        """The differences to show."""
        found = self.differences[measure.key]
        return found if self.reference is None else comparisons.against(found, self.reference)

    @cached_property
    def flows(self) -> list[tuple[str, list[Flow]]]:
        """What each label sends."""
        return [(one.label, flows(one)) for one in self.contenders]

    @property
    def silent(self) -> bool:
        """Whether nobody sends anything."""
        return not any(found for _, found in self.flows)

    @property
    def replications(self) -> list[int]:
        """Numbers of replications of the contenders."""
        return [len(one.records) for one in self.contenders]

    @cached_property
    def timings(self) -> list[Timing]:
        """The contenders whose trace was kept."""
        return [_timing(one, self._agents(one)) for one in self.contenders if one.traced]

    @property
    def untraced(self) -> list[str]:
        """The labels whose trace was off."""
        return [one.label for one in self.contenders if not one.traced]

    def _agents(self, contender: Contender) -> int | None:
        agents = self.comparison.scenario_of(contender).get("agents")
        return agents.get("count") if isinstance(agents, dict) else None


def _estimate(measure: Measure, values: list[float]) -> Estimate:
    if measure.proportion:
        return Estimate(statistics.mean(values), statistics.wilson(values), len(values))
    return statistics.estimate(values)


def _timing(contender: Contender, agents: int | None) -> Timing:
    shares, rounds, first = [], [], None
    for job in contender.jobs:
        events = read(job)
        first = events if first is None else first
        count = agents or int(events.node.max(initial=-1)) + 1
        end = float(contender.values("simulated_time").get(job.replication, 0.0))
        shares.append(times.breakdown(events, count, end).mean(axis=0))
        rounds.append(tuple(rounds_.rounds(events)))
    assert first is not None
    return Timing(contender, np.array(shares), tuple(rounds), first)


def nothing_but_idle(timings: Sequence[Timing]) -> bool:
    """Whether all time is idle or finished, so that there is nothing to see."""
    quiet = [number for number, name in enumerate(times.CATEGORIES) if name not in (times.IDLE, times.FINISHED)]
    return not any(one.shares[:, quiet].any() for one in timings)
