"""How far the studies of claims are, variant by variant, and what their replications cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from coband.extending import ResultCache
from coband.extensions.evidence.claims.samples import Sample, StudySamples
from coband.extensions.evidence.claims.studies import Needed

Seconds = Literal["wall_seconds", "cpu_seconds"]


@dataclass
class StudyProgress:
    """How far one study is.

    Attributes:
        study: what there is to run.
        starts: replications from which on claims need it; those before are known from results files.
        failures: why variants cannot go on, by their numbers.
        samples: what is finished.
    """

    study: Needed
    starts: set[int] = field(default_factory=lambda: {0})
    failures: dict[int, str] = field(default_factory=dict)
    samples: StudySamples | None = None

    def read(self, cache: ResultCache) -> None:
        self.samples = self.study.samples(cache, self.starts, self.samples)

    def found(self, number: int) -> Mapping[int, Sample]:
        return {} if self.samples is None else self.samples.found.get(number, {})

    def done(self, number: int, start: int = 0) -> int:
        """The first replication of a variant from a start on that has not run."""
        found = self.found(number)
        while start in found:
            start += 1
        return start

    def seconds(self, number: int, key: Seconds = "cpu_seconds") -> float:
        """Seconds of one replication of a variant; 0 before the first, when nobody knows."""
        found = self.found(number).values()
        return sum(float(one.record[key] or 0.0) for one in found) / max(1, len(found))

    def left(self, numbers: Iterable[int], end: int, start: int = 0, key: Seconds = "cpu_seconds") -> float:
        """Seconds until some variants have the replications from a start to an end."""
        return sum(self.seconds(number, key) * max(0, end - self.done(number, start)) for number in numbers)

    def behind(self, numbers: Iterable[int], end: int, start: int = 0) -> list[int]:
        """Which of some variants do not have the replications from a start to an end."""
        return [number for number in sorted(numbers) if self.done(number, start) < end]
