"""Running the studies of claims until every claim is decided, dearer than it is worth, or the budget is spent."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from coband.extending import Listener, code_version, executor
from coband.extensions.evidence.claims import trials
from coband.extensions.evidence.claims.claim import Claim, PlacedClaim, Size
from coband.extensions.evidence.claims.condition import Finding
from coband.extensions.evidence.claims.jobs import Jobs
from coband.extensions.evidence.claims.outcome import Outcome, Verdict, fails_of, holds_of, pursued, verdicts
from coband.extensions.evidence.claims.progress import Seconds, StudyProgress
from coband.extensions.evidence.claims.results import is_of_other_settings, settings_digest
from coband.extensions.evidence.claims.samples import SampleError
from coband.extensions.evidence.claims.studies import Key, needed
from coband.extensions.evidence.claims.trials import ConditionProgress, Trial
from coband.extensions.evidence.e_values import ENOUGH

HOUR = 3600.0
SMALLER = 1 / 40
"""What a verdict on a smaller study is worth, of one on the paper's sizes."""
SLICE = 600.0
"""CPU seconds of a step, about; after it everything is weighed again, and saved."""
LEAST = 1 / 20
"""A step's replications of those that are there already, at least: a step of few costs more than these."""
Ends = list[tuple[ConditionProgress, int]]
"""Conditions, each with a number of replications."""


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
        earlier: outcomes of results files, by claim. Their replications count if they are of the same settings, and if
            one of them, run again, has the same fingerprints.
    """

    def __init__(
        self,
        claims: Sequence[PlacedClaim],
        place: Path,
        pool: executor.JobExecutor,
        *,
        size: Size = "full",
        budget: float | None = None,
        origin: Mapping[str, Any] | None = None,
        listener: Callable[[str], Listener] | None = None,
        earlier: Mapping[str, Outcome] | None = None,
    ) -> None:
        self._claims = [one for one in claims if one.claim.not_run is None]
        self._skipped = [one for one in claims if one.claim.not_run is not None]
        self._pool, self._size, self._jobs = pool, size, Jobs(place, pool, listener)
        self._end = None if budget is None else time.monotonic() + budget * HOUR
        self._origin = dict(origin or {})
        known = dict(earlier or {})
        self._before: dict[str, Verdict] = dict(zip(known, verdicts(list(known.values())), strict=True))
        self._earlier = {one.key: found for one in self._claims if (found := self._same(one, known))}
        self._reasons: dict[str, str] = {}
        self._refused: dict[str, str] = {}
        self._checked: set[str] = set()
        self._known_outcomes: dict[str, tuple[list[tuple[int, int]], Outcome]] = {}
        self._digests = {one.key: settings_digest(one, size) for one in self._claims}
        self._chosen = {key: one.chosen for key, one in self._earlier.items() if one.chosen}
        tried = {one.key: trials.settings_of(one.claim, self._chosen.get(one.key)) for one in self._claims}
        tuning = {one.key: trials.tuning_of(one.claim) for one in self._claims if not tried[one.key]}
        self._studies = self._known([claim for part in (tried, tuning) for all_ in part.values() for _, claim in all_])
        self._trials = {key: [self._trial(*one) for one in found] for key, found in tried.items()}
        self._tuning = {key: [self._trial(*one) for one in found] for key, found in tuning.items()}
        for key, earlier_ in self._earlier.items():
            for trial in self._trials[key]:
                trial.begin_at(earlier_)
        for progress in self._studies.values():
            self._jobs.read(progress)

    def run(
        self,
        settled: Callable[[Outcome], None] | None = None,
        saved: Callable[[Sequence[Outcome]], object] | None = None,
    ) -> None:
        """Run replications where they decide: the claim that seems to need the least time for its verdict comes first.

        Args:
            settled: told of each claim when its verdict is there, or cannot be had.
            saved: given what a step has changed.

        Raises:
            Stopped: interrupted.
        """
        open_claims = {one.key: one for one in self._claims}
        while open_claims:
            for key in [key for key, one in open_claims.items() if self._settled(one)]:
                outcome = self._told(open_claims.pop(key))
                if settled is not None:
                    settled(outcome)
            if open_claims:
                chosen = min(open_claims.values(), key=self._cost)
                self._advance(chosen)
                if saved is not None:
                    saved([self._told(one) for one in self._sharing(chosen)])

    def outcomes(self) -> list[Outcome]:
        skipped = (
            Outcome(one.key, self._size, [], 0, 0.0, one.claim.not_run or "", origin=self._origin)
            for one in self._skipped
        )
        return [*map(self._told, self._claims), *skipped]

    def _told(self, placed: PlacedClaim) -> Outcome:
        """What is known of one claim, with what a verdict still takes."""
        found = self.outcome(placed)
        known = not found.decided and found.missing is not None
        return replace(found, cost_hours=round(self._seconds(placed, self._ends(placed)) / HOUR, 4) if known else None)

    def outcome(self, placed: PlacedClaim) -> Outcome:
        """What is known of one claim: of every setting the earlier outcome, until there are more replications."""
        own = self._trials[placed.key]
        state = [(one.start, one.done()) for trial in own for one in trial.conditions]
        if placed.key not in self._known_outcomes or self._known_outcomes[placed.key][0] != state:
            self._known_outcomes[placed.key] = (state, self._found(placed))
        found = self._known_outcomes[placed.key][1]
        return replace(found, reason=self._reason(placed) or found.reason)

    def _found(self, placed: PlacedClaim) -> Outcome:
        findings: list[Finding] = []
        own, reason, earlier = self._trials[placed.key], "", self._earlier.get(placed.key)
        try:
            some = any(one.done() for trial in own for one in trial.conditions)
            findings = [one for trial in own for one in trial.judge()] if some else []
        except SampleError as error:
            reason = str(error)
        prints: trials.Prints = {}
        for trial in own:
            for study, variants in trial.fingerprints().items():
                prints.setdefault(study, {}).update(variants)
        spent = trials.spent(one for trial in own for one in trial.conditions)
        before = earlier.cpu_hours if earlier is not None and any(trial.start for trial in own) else 0.0
        found = Outcome(
            claim=placed.key,
            size=self._size,
            findings=findings,
            replications=min((one.count for one in findings if one.count), default=0),
            cpu_hours=round(before + spent / HOUR, 6),
            reason=reason,
            cost_hours=None,
            fingerprints=prints,
            origin=self._origin,
            settings=self._digests[placed.key],
            quantifier="any" if placed.claim.quantifier == "any" else "all",
            chosen=self._chosen.get(placed.key, {}),
            before=self._before.get(placed.key, ""),
        )
        return found if earlier is None else found.joined(earlier)

    def _same(self, placed: PlacedClaim, earlier: Mapping[str, Outcome]) -> Outcome | None:
        """The outcome of a results file, if it is about the same settings."""
        found = earlier.get(placed.key)
        if found is None or found.size != self._size or found.origin.get("seed") != self._origin.get("seed"):
            return None
        return None if not found.settings or is_of_other_settings(found, placed) else found

    def _known(self, claims: Iterable[Claim]) -> dict[Key, StudyProgress]:
        return {key: StudyProgress(study) for key, study in needed(claims, self._size).items()}

    def _trial(self, setting: str, claim: Claim, studies: Mapping[Key, StudyProgress] | None = None) -> Trial:
        return trials.trial_of(setting, claim, self._size, self._studies if studies is None else studies)

    def _sharing(self, placed: PlacedClaim) -> list[PlacedClaim]:
        """The claims that have a study in common with one, it among them."""
        own = self._used(placed)
        return [one for one in self._claims if own & self._used(one)]

    def _used(self, placed: PlacedClaim) -> set[int]:
        """The studies of a claim at all its settings, by what tells them apart."""
        conditions = (one for trial in self._parts(placed) for one in trial.conditions)
        return {id(progress) for one in conditions for progress, _ in one.used}

    def _parts(self, placed: PlacedClaim) -> list[Trial]:
        return self._trials[placed.key] or self._tuning[placed.key]

    def _open(self, placed: PlacedClaim) -> list[Trial]:
        """The trials of a claim that go on: first all, then those that can decide it and do not stand by themselves."""
        outcome, parts, first = self.outcome(placed), self._parts(placed), placed.claim.replications.first
        known, leading, enough = outcome.parts(), outcome.leading, ENOUGH + math.log(len(parts))
        begun = [one for one in parts if all(condition.done() >= first for condition in one.conditions)]
        able = [one for one in parts if one.setting in leading or one not in begun]
        standing = {key for key, part in known.items() if max(holds_of(part), fails_of(part)) >= enough}
        return [one for one in able if one.setting not in standing] or parts

    def _reason(self, placed: PlacedClaim) -> str:
        found = (trial.failure() for trial in self._parts(placed))
        return next(filter(None, found), self._refused.get(placed.key, "")) or self._reasons.get(placed.key, "")

    def _ends(self, placed: PlacedClaim) -> Ends:
        """The conditions whose replications decide it, and how many of each seem to be enough; first some of all."""
        if not self._trials[placed.key]:
            enough = placed.claim.tuning.replications
            return [(one, enough) for trial in self._parts(placed) for one in trial.conditions]
        if early := self._early(placed):
            return [(one, placed.claim.replications.first) for one in early]
        outcome, found = self.outcome(placed), list[Ends]()
        findings = outcome.parts()
        for trial in self._open(placed):
            own, part = trial.conditions, findings.get(trial.setting)
            cost = lambda place, count, own=own: trials.seconds([(own[place], count)])  # noqa: E731
            needs = dict.fromkeys(range(len(own))) if part is None else pursued(part, cost)
            done = {place: own[place].done() for place in needs}
            found.append([(own[place], max(done[place] + 1, need or 2 * done[place])) for place, need in needs.items()])
        longest = [max(end for _, end in ends) for ends in found]
        most = min(longest) if outcome.one_is_enough else max(longest)
        return [(one, min(end, most)) for ends in found for one, end in ends]

    def _early(self, placed: PlacedClaim) -> list[ConditionProgress]:
        """The conditions that have not run as often as a first verdict asks for."""
        first, conditions = placed.claim.replications.first, (one.conditions for one in self._open(placed))
        return [one for own in conditions for one in own if one.done() < first]

    def _cost(self, placed: PlacedClaim) -> float:
        """Seconds of wall time until it is decided, as far as is known."""
        return self._seconds(placed, self._ends(placed), "wall_seconds") / self._pool.size()

    def _seconds(self, placed: PlacedClaim, ends: Ends, key: Seconds = "cpu_seconds") -> float:
        earlier = self._earlier.get(placed.key)
        known = all(one.known() for trial in self._open(placed) for one in trial.conditions)
        if known or earlier is None or not earlier.replications:
            return trials.seconds(ends, key)
        missing = max(max(0, end - one.done()) for one, end in ends)
        return missing * earlier.cpu_hours * HOUR / fmean(one.count for one in earlier.findings)

    def _settled(self, placed: PlacedClaim) -> bool:
        """Whether it goes on no more: decided, broken off, or dearer than its bound or the budget."""
        bound, ends = placed.claim.replications, self._ends(placed)
        if placed.key in self._refused or any(trial.failure() for trial in self._parts(placed)):
            return True
        if self._trials[placed.key]:
            if (placed.key in self._earlier or not self._early(placed)) and self.outcome(placed).decided:
                return True
            if min(one.done() for one, _ in ends) >= (bound.most or math.inf):
                return True
        return self._too_dear(placed, ends)

    def _too_dear(self, placed: PlacedClaim, ends: Ends) -> bool:
        """Whether the rest of the budget, or what a verdict on a claim is worth, is less than it seems to take."""
        rest = math.inf if self._end is None else self._end - time.monotonic()
        cost, cpu = self._cost(placed), self._seconds(placed, ends)
        most = placed.claim.replications.hours * HOUR * (1 if self._size == "full" else SMALLER)
        spent = self.outcome(placed).cpu_hours * HOUR
        if rest > cost and spent + cpu <= most:
            return False
        done, count = min(one.done() for one, _ in ends), max(end for _, end in ends)
        known = f", which take about {cpu / HOUR:.2g} CPU hours more" if cpu else "; what they take is not known yet"
        what = "the budget ended before" if rest <= cost else f"its {most / HOUR:g} CPU hours ended before"
        self._reasons[placed.key] = f"{what} {count} replications{known if done or cpu else ''}"
        return True

    def _advance(self, placed: PlacedClaim) -> None:
        """Run a step of a claim: what its first verdict needs, or about `SLICE` seconds of what it still needs.

        A first replication alone says what others cost.
        """
        if not self._trials[placed.key]:
            self._tune(placed)
            return
        if placed.key not in self._checked:
            self._checked.add(placed.key)
            self._check(placed)
        conditions = [one for trial in self._open(placed) for one in trial.conditions]
        if unknown := [one for one in conditions if not one.known()]:
            self._jobs.run([(one, one.done() + 1) for one in unknown])
            return
        ends, bound = self._ends(placed), placed.claim.replications
        each = trials.seconds([(one, one.done() + 1) for one, _ in ends])
        slice_ = int(SLICE / each) if each else 1
        half = [(one, max(math.ceil(0.5 * (end - one.done())), int(LEAST * one.done())), end) for one, end in ends]
        step = [(one, max(1, min(more, slice_)), end) for one, more, end in half]
        reached = [(one, max(one.done() + more, min(bound.first, end))) for one, more, end in step]
        self._jobs.run([(one, min(end, bound.most or end)) for one, end in reached])

    def _tune(self, placed: PlacedClaim) -> None:
        """Run all settings on the tuning's seed, the same number of times each, and choose for each label."""
        claim, parts = placed.claim, self._tuning[placed.key]
        self._jobs.run(self._ends(placed))
        if any(trial.failure() for trial in parts):
            return
        try:
            chosen = trials.choice(claim, parts)
        except SampleError as error:
            self._refused[placed.key] = str(error)
            return
        self._chosen[placed.key] = chosen
        tried = trials.settings_of(claim, chosen)
        studies = self._known([at for _, at in tried])
        for progress in studies.values():
            self._jobs.read(progress)
        self._trials[placed.key] = [self._trial(setting, at, studies) for setting, at in tried]

    def _check(self, placed: PlacedClaim) -> None:
        """Run one replication of a results file again; where fingerprints differ, what the file says does not count.

        A job that breaks off says nothing of the file.
        """
        parts, earlier = self._parts(placed), self._earlier.get(placed.key)
        if earlier is None or earlier.origin.get("git") == self._origin.get("git"):
            return
        for trial in (one for one in parts if one.start):
            replication = int(code_version.sha256(placed.key, trial.setting)[:8], 16) % trial.start
            self._jobs.run([(one, replication + 1) for one in trial.conditions], replication)
            if not trial.failure() and not trial.repeats(replication):
                for one in parts:
                    one.forget()
                del self._earlier[placed.key]
                return
