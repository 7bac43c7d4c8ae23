"""How far the studies of claims are, variant by variant, and what their replications cost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from coband.simulator.analysis.claims.samples import StudySamples
from coband.simulator.analysis.claims.studies import Needed
from coband.simulator.experiments.sweep.result_cache import ResultCache

Seconds = Literal["wall_seconds", "cpu_seconds"]


@dataclass
class StudyProgress:
    """How far one study is.

    Attributes:
        study: what there is to run.
        failures: why variants cannot go on, by their numbers.
        samples: what is finished.
    """

    study: Needed
    failures: dict[int, str] = field(default_factory=dict)
    samples: StudySamples = field(init=False)

    def read(self, cache: ResultCache) -> None:
        """Take in what is finished."""
        self.samples = self.study.samples(cache)

    def done(self, number: int) -> int:
        """How many replications of a variant have run."""
        return len(self.samples.found.get(number, ()))

    def seconds(self, number: int, key: Seconds = "cpu_seconds") -> float:
        """Seconds of one replication of a variant; 0 before the first."""
        done = self.done(number)
        return self.spent([number], key) / done if done else 0.0

    def spent(self, numbers: Iterable[int], key: Seconds = "cpu_seconds") -> float:
        """Seconds of all replications of some variants."""
        found = [one for number in numbers for one in self.samples.found.get(number, ())]
        return sum(float(one.record[key] or 0.0) for one in found)

    def left(self, numbers: Iterable[int], count: int, key: Seconds = "cpu_seconds") -> float:
        """Seconds until some variants have so many replications; one that has none counts as free."""
        return sum(self.seconds(number, key) * max(0, count - self.done(number)) for number in numbers)

    def behind(self, numbers: Iterable[int], count: int) -> list[int]:
        """Which of some variants have fewer replications."""
        return [number for number in sorted(numbers) if self.done(number) < count]
