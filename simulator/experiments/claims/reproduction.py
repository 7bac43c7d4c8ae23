"""Running the studies of claims until every claim is decided, its replications are used up, or the budget is."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from coband.simulator.experiments.claims.claim import PlacedClaim, Size
from coband.simulator.experiments.claims.conditions import Term
from coband.simulator.experiments.claims.outcome import DIGITS, Outcome
from coband.simulator.experiments.claims.samples import Sample, SampleError, StudySamples
from coband.simulator.experiments.claims.studies import Key, Needed, key_of, needed
from coband.simulator.experiments.runs.driver import Commands, Listener, drive
from coband.simulator.experiments.runs.workers import WorkerPool
from coband.simulator.experiments.sweep.directory import SweepDirectory
from coband.simulator.experiments.sweep.result_cache import ResultCache

JOBS = "jobs"
STUDIES = "studies"
HOUR = 3600.0


class Stopped(Exception):
    """Somebody has interrupted it; what is finished is kept."""


@dataclass
class _Progress:
    """How far one study is.

    Attributes:
        done: replications that have run.
        failure: why it cannot go on; empty while it can.
    """

    study: Needed
    done: int = 0
    failure: str = ""
    samples: StudySamples = field(init=False)

    def read(self, cache: ResultCache) -> None:
        """Take in what is finished."""
        self.samples = self.study.samples(cache)
        self.done = min((len(found) for found in self.samples.found.values()), default=0)

    @property
    def seconds(self) -> float:
        """CPU seconds of one replication of all variants; 0 before the first."""
        found = [one for samples in self.samples.found.values() for one in samples]
        total = sum(float(one.record["wall_seconds"] or 0.0) for one in found)
        return total / self.done if self.done else 0.0


class Reproduction:
    """The claims, the studies they share, and how far these are.

    Args:
        claims: what is to be decided.
        place: directory of all jobs; what is finished there is not run again.
        pool: who runs jobs.
        size: of the studies.
        budget: hours of wall time; None for as long as it takes.
        origin: what results say about where they come from.
        listener: makes something that follows a study, by its name.
    """

    def __init__(
        self,
        claims: Sequence[PlacedClaim],
        place: Path,
        pool: WorkerPool,
        *,
        size: Size = "full",
        budget: float | None = None,
        origin: Mapping[str, Any] | None = None,
        listener: Callable[[str], Listener] | None = None,
    ) -> None:
        self._claims = [one for one in claims if one.claim.not_run is None]
        self._skipped = [one for one in claims if one.claim.not_run is not None]
        self._place, self._pool, self._size, self._listener = place, pool, size, listener
        self._cache = ResultCache(place / JOBS)
        self._end = None if budget is None else time.monotonic() + budget * HOUR
        self._origin = dict(origin or {})
        self._studies = {key: _Progress(study) for key, study in needed(self._claims, size).items()}
        self._reasons: dict[str, str] = {}
        for progress in self._studies.values():
            progress.read(self._cache)

    def run(self, settled: Callable[[Outcome], None] | None = None) -> None:
        """Run replications; the cheapest study comes first.

        Args:
            settled: told of each claim when its verdict is there, or cannot be had.

        Raises:
            Stopped: interrupted.
        """
        open_claims = {one.key: one for one in self._claims}
        while open_claims:
            for key in [key for key, one in open_claims.items() if self._settled(one)]:
                outcome = self.outcome(open_claims.pop(key))
                if settled is not None:
                    settled(outcome)
            wanted = self._wanted(list(open_claims.values()))
            if wanted:
                self._advance(*min(wanted.items(), key=lambda item: self._cost(*item)))

    def outcomes(self) -> list[Outcome]:
        """What is known of every claim."""
        return [self.outcome(one) for one in self._claims] + [self._not_run(one) for one in self._skipped]

    def outcome(self, placed: PlacedClaim) -> Outcome:
        """What is known of one claim."""
        claim, find = placed.claim, self._find(placed)
        try:
            findings, reason = [condition.judge(find) for condition in claim.conditions], self._reason(placed)
        except SampleError as error:
            findings, reason = [], str(error)
        looks = claim.replications.looks()
        count = min((len(find(term)) for term in claim.terms()), default=0) if findings else 0
        used = [self._studies[key] for key in self._keys(placed)]
        hours = sum(progress.seconds * progress.done for progress in used) / HOUR
        found = Outcome(
            placed.key,
            self._size,
            findings,
            len(looks) + (count not in looks),  # a look that was not planned counts too
            count,
            round(hours, 4),
            reason,
            None,
            {progress.study.name: _fingerprints(progress.samples) for progress in used},
            self._origin,
        )
        return _with_cost(found, used)

    def _not_run(self, placed: PlacedClaim) -> Outcome:
        return Outcome(placed.key, self._size, [], 1, 0, 0.0, placed.claim.not_run or "", origin=self._origin)

    def _keys(self, placed: PlacedClaim) -> list[Key]:
        claim = placed.claim
        return list(dict.fromkeys(key_of(claim.study_of(term), self._size) for term in claim.terms()))

    def _find(self, placed: PlacedClaim) -> Callable[[Term], Sequence[Sample]]:
        count = self._count(placed)

        def find(term: Term) -> Sequence[Sample]:
            key = key_of(placed.claim.study_of(term), self._size)
            return self._studies[key].samples.of(term.label, term.at)[:count]

        return find

    def _count(self, placed: PlacedClaim) -> int:
        """The replications that its verdict is from: those of its last look, or all before the first."""
        done = min(self._studies[key].done for key in self._keys(placed))
        return max((look for look in placed.claim.replications.looks() if look <= done), default=done)

    def _reason(self, placed: PlacedClaim) -> str:
        failures = [self._studies[key].failure for key in self._keys(placed)]
        return next(filter(None, failures), self._reasons.get(placed.key, ""))

    def _look(self, placed: PlacedClaim) -> int | None:
        """How many replications its next look needs; None if it has had all."""
        done = min(self._studies[key].done for key in self._keys(placed))
        return next((count for count in placed.claim.replications.looks() if count > done), None)

    def _settled(self, placed: PlacedClaim) -> bool:
        if any(self._studies[key].failure for key in self._keys(placed)):
            return True
        next_look = self._look(placed)
        if next_look is None:
            return True
        if next_look > placed.claim.replications.first and self.outcome(placed).decided:
            return True
        return self._too_dear(placed, next_look)

    def _too_dear(self, placed: PlacedClaim, count: int) -> bool:
        """Whether the rest of the budget is not enough for its next look."""
        if self._end is None:
            return False
        left = self._end - time.monotonic()
        costs = [self._cost(key, count) for key in self._keys(placed)]
        if left > sum(costs):
            return False
        begun = all(self._studies[key].done for key in self._keys(placed))
        rest = f", which take about {sum(costs) / HOUR:.2g} h more" if begun else "; what they take is not known yet"
        self._reasons[placed.key] = f"the budget ended before {count} replications{rest}"
        return True

    def _wanted(self, claims: Sequence[PlacedClaim]) -> dict[Key, int]:
        """Studies that have to go on, and to how many replications."""
        found: dict[Key, int] = {}
        for placed in claims:
            look = self._look(placed)
            for key in self._keys(placed):
                if look is not None and self._studies[key].done < look:
                    found[key] = min(look, found.get(key, look))
        return found

    def _cost(self, key: Key, count: int) -> float:
        """Seconds of wall time until a study has so many replications."""
        progress = self._studies[key]
        return progress.seconds * max(0, count - progress.done) / self._pool.size()

    def _advance(self, key: Key, count: int) -> None:
        """Run a study up to a number of replications; a first one alone, to learn what it costs."""
        progress = self._studies[key]
        study = progress.study.first(count if progress.done else 1)
        where = self._place / STUDIES / progress.study.name
        where.mkdir(parents=True, exist_ok=True)
        if study.missing is not None:
            progress.failure = f"its data are not here: {study.missing}"
            return
        listener = None if self._listener is None else self._listener(progress.study.name)
        report = drive(
            study,
            SweepDirectory(where, self._place / JOBS),
            workers=self._pool,
            commands=Commands(["coband", "run", progress.study.key[0]], ["coband", "reproduce"]),
            listener=listener,
        )
        before = progress.done
        progress.read(self._cache)
        if report.interrupted:
            raise Stopped
        if report.failures:
            progress.failure = f"a job broke off: {report.failures[0].error.strip().splitlines()[-1]}"
        elif progress.done == before:
            progress.failure = report.status.message or "no job has finished"


def _with_cost(outcome: Outcome, used: Sequence[_Progress]) -> Outcome:
    """With an estimate of what a verdict still costs."""
    wanted = outcome.needed
    if outcome.decided or wanted is None:
        return outcome
    hours = sum(progress.seconds * max(0, wanted - progress.done) for progress in used) / HOUR
    return replace(outcome, cost_hours=round(hours, 4))


def _fingerprints(samples: StudySamples) -> dict[str, list[str]]:
    return {
        variant.label: [str(one.record["fingerprint"])[:DIGITS] for one in samples.found.get(variant.number, ())]
        for variant in samples.variants
    }
