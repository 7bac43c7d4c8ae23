"""Running the studies of claims until every claim is decided, its replications are used up, or the budget is."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from coband.simulator.analysis.claims.claim import PlacedClaim, Size
from coband.simulator.analysis.claims.conditions import Term
from coband.simulator.analysis.claims.outcome import DIGITS, Outcome
from coband.simulator.analysis.claims.progress import StudyProgress
from coband.simulator.analysis.claims.samples import Sample, SampleError, StudySamples
from coband.simulator.analysis.claims.settings import settings_digest
from coband.simulator.analysis.claims.studies import Key, key_of, needed
from coband.simulator.experiments.runs.driver import Commands, Listener, drive
from coband.simulator.experiments.runs.workers import WorkerPool
from coband.simulator.experiments.sweep.directory import SweepDirectory
from coband.simulator.experiments.sweep.result_cache import ResultCache

JOBS = "jobs"
STUDIES = "studies"
HOUR = 3600.0


class Stopped(Exception):
    """Somebody has interrupted it; what is finished is kept."""


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
        self._studies = {key: StudyProgress(study) for key, study in needed(self._claims, size).items()}
        self._parts = {one.key: self._variants(one) for one in self._claims}
        self._reasons: dict[str, str] = {}
        for progress in self._studies.values():
            progress.read(self._cache)

    def run(self, settled: Callable[[Outcome], None] | None = None) -> None:
        """Run replications; the claim whose next look costs least comes first.

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
            if open_claims:
                self._advance(min(open_claims.values(), key=self._cost))

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
        spent = sum(progress.spent(numbers) for progress, numbers in self._used(placed))
        found = Outcome(
            placed.key,
            self._size,
            findings,
            len(looks) + (count not in looks),  # a look that was not planned counts too
            count,
            round(spent / HOUR, 6),
            reason,
            None,
            {progress.study.name: _fingerprints(progress.samples) for progress, _ in self._used(placed)},
            self._origin,
            settings_digest(placed, self._size),
        )
        return self._with_cost(found, placed)

    def _with_cost(self, outcome: Outcome, placed: PlacedClaim) -> Outcome:
        """With an estimate of what a verdict still costs."""
        wanted = outcome.needed
        if outcome.decided or wanted is None:
            return outcome
        seconds = sum(progress.left(numbers, wanted) for progress, numbers in self._used(placed))
        return replace(outcome, cost_hours=round(seconds / HOUR, 4))

    def _not_run(self, placed: PlacedClaim) -> Outcome:
        return Outcome(placed.key, self._size, [], 1, 0, 0.0, placed.claim.not_run or "", origin=self._origin)

    def _variants(self, placed: PlacedClaim) -> dict[Key, set[int]]:
        """The variants of studies that a claim is about."""
        found: dict[Key, set[int]] = {}
        for term in placed.claim.terms():
            key = key_of(placed.claim.study_of(term), self._size)
            found.setdefault(key, set()).update(self._studies[key].study.numbers(term))
        return found

    def _used(self, placed: PlacedClaim) -> list[tuple[StudyProgress, set[int]]]:
        """The studies of a claim with its variants of each."""
        return [(self._studies[key], numbers) for key, numbers in self._parts[placed.key].items()]

    def _find(self, placed: PlacedClaim) -> Callable[[Term], Sequence[Sample]]:
        count = self._count(placed)

        def find(term: Term) -> Sequence[Sample]:
            key = key_of(placed.claim.study_of(term), self._size)
            return self._studies[key].samples.of(term.label, term.at)[:count]

        return find

    def _done(self, placed: PlacedClaim) -> int:
        """How many replications all its variants have."""
        return min(progress.done(number) for progress, numbers in self._used(placed) for number in numbers)

    def _count(self, placed: PlacedClaim) -> int:
        """The replications that its verdict is from: those of its last look, or all before the first."""
        done = self._done(placed)
        return max((look for look in placed.claim.replications.looks() if look <= done), default=done)

    def _failure(self, placed: PlacedClaim) -> str:
        """Why it cannot go on; empty while it can."""
        used = self._used(placed)
        return next((one.failures[number] for one, numbers in used for number in numbers & one.failures.keys()), "")

    def _reason(self, placed: PlacedClaim) -> str:
        return self._failure(placed) or self._reasons.get(placed.key, "")

    def _look(self, placed: PlacedClaim) -> int | None:
        """How many replications its next look needs; None if it has had all."""
        done = self._done(placed)
        return next((count for count in placed.claim.replications.looks() if count > done), None)

    def _settled(self, placed: PlacedClaim) -> bool:
        if self._failure(placed):
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
        cost = self._cost(placed)
        if self._end - time.monotonic() > cost:
            return False
        begun = self._done(placed) > 0
        rest = f", which take about {cost / HOUR:.2g} h more" if begun else "; what they take is not known yet"
        self._reasons[placed.key] = f"the budget ended before {count} replications{rest}"
        return True

    def _cost(self, placed: PlacedClaim) -> float:
        """Seconds of wall time until its next look, as far as is known."""
        look = self._look(placed)
        if look is None:
            return 0.0
        costs = [progress.left(numbers, look, "wall_seconds") for progress, numbers in self._used(placed)]
        return sum(costs) / self._pool.size()

    def _advance(self, placed: PlacedClaim) -> None:
        """Run what a claim needs for its next look, study by study; a first replication alone says what others cost."""
        look = self._look(placed) if self._done(placed) else 1
        assert look is not None
        for progress, numbers in self._used(placed):
            behind = progress.behind(numbers, look)
            if behind:
                self._run(progress, behind, look)

    def _run(self, progress: StudyProgress, numbers: Sequence[int], count: int) -> None:
        """Run some variants of a study up to a number of replications."""
        study = progress.study.part(numbers, count)
        where = self._place / STUDIES / progress.study.name
        where.mkdir(parents=True, exist_ok=True)
        if study.missing is not None:
            progress.failures.update(dict.fromkeys(numbers, f"its data are not here: {study.missing}"))
            return
        listener = None if self._listener is None else self._listener(progress.study.name)
        report = drive(
            study,
            SweepDirectory(where, self._place / JOBS),
            workers=self._pool,
            commands=Commands(["coband", "run", progress.study.key[0]], ["coband", "reproduce"]),
            listener=listener,
        )
        progress.read(self._cache)
        if report.interrupted:
            raise Stopped
        reason = report.status.message or "no job has finished"
        if report.failures:
            reason = f"a job broke off: {report.failures[0].error.strip().splitlines()[-1]}"
        progress.failures.update(dict.fromkeys(progress.behind(numbers, count), reason))


def _fingerprints(samples: StudySamples) -> dict[str, list[str]]:
    return {
        variant.label: [str(one.record["fingerprint"])[:DIGITS] for one in samples.found.get(variant.number, ())]
        for variant in samples.variants
    }
