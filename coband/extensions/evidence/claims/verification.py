"""Running a sample of the jobs behind stored verdicts again, and comparing their fingerprints."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from coband.extending import ResultCache, RunDirectory, drive, executor
from coband.extensions.evidence.claims.claim import Claim, PlacedClaim, Size
from coband.extensions.evidence.claims.condition import Finding
from coband.extensions.evidence.claims.jobs import JOBS
from coband.extensions.evidence.claims.outcome import DIGITS, Outcome
from coband.extensions.evidence.claims.progress import StudyProgress
from coband.extensions.evidence.claims.studies import Needed, needed
from coband.extensions.evidence.claims.trials import ConditionProgress, settings_of, variants_of


@dataclass(frozen=True)
class Checked:
    """One job that has run again.

    Attributes:
        study: its study, variant and replication.
        stored: the fingerprint in the results file.
        found: that of now; empty if there is none.
        missing: why the job could not run or broke off; empty if it ran to its end.
    """

    study: str
    variant: str
    replication: int
    stored: str
    found: str
    missing: str = ""

    @property
    def same(self) -> bool:
        """Whether the job gave the same decisions and messages."""
        return self.stored == self.found

    @property
    def comparison(self) -> str:
        """What there is to say of it in a word."""
        if self.missing:
            return "none"
        return "same" if self.same else "DIFFERS"


Job = tuple[Needed, str, int, str]
"""A study, a variant, a replication, and the fingerprint in the results file."""


def sample(claims: Sequence[PlacedClaim], outcomes: Mapping[str, Outcome], count: int, seed: int) -> list[Job]:
    """Jobs behind the outcomes: all that a claim needs for a replication, of claims and replications drawn at random.

    A results file also has the fingerprints of variants that only other claims about a study need; those are left out.
    """
    with_jobs = [one for one in claims if one.key in outcomes and outcomes[one.key].fingerprints]
    sizes = {outcomes[one.key].size for one in with_jobs}
    tried = [one for placed in with_jobs for _, one in settings_of(placed.claim, outcomes[placed.key].chosen)]
    studies = {size: {one.name: one for one in needed(tried, size).values()} for size in sizes}  # which claims share
    groups: dict[tuple[str, str, int], list[Job]] = {}
    for placed in with_jobs:
        outcome = outcomes[placed.key]
        for setting, claim in settings_of(placed.claim, outcome.chosen):
            for own in needed([claim], outcome.size).values():
                known, prints = studies[outcome.size].get(own.name), outcome.fingerprints.get(own.name, {})
                if known is None:  # the claim's settings have changed since
                    continue
                for label in (variant.label for variant in own.sweep.variants):
                    for replication, print_ in enumerate(prints.get(label, ())):
                        job = (known, label, replication, print_)
                        groups.setdefault((placed.key, setting, replication), []).append(job)
    keys = sorted(groups)
    random.Random(seed).shuffle(keys)
    found = {(job[0].name, *job[1:3]): job for key in keys for job in groups[key]}
    return list(found.values())[:count]


def disagreements(
    claims: Sequence[PlacedClaim], outcomes: Mapping[str, Outcome], jobs: Sequence[Job], place: Path
) -> Iterator[str]:
    """What is wrong with the numbers of results files: evidence that does not follow from their rows, and rows that
    are not what a replication gives that has run again.

    Args:
        claims: to look at.
        outcomes: of the results files.
        jobs: that have run again.
        place: where.
    """
    cache, again = ResultCache(place / JOBS), {replication for _, _, replication, _ in jobs}
    for placed in (one for one in claims if one.key in outcomes):
        outcome = outcomes[placed.key]
        parts, tried = outcome.parts(), settings_of(placed.claim, outcome.chosen)
        claimed = {setting: len(claim.conditions) for setting, claim in tried}
        quantifier = "any" if placed.claim.quantifier == "any" else "all"
        if parts and ({key: len(part) for key, part in parts.items()}, outcome.quantifier) != (claimed, quantifier):
            yield f"{placed.key}: the file has other settings or conditions than the claim, or another quantifier"
            continue
        for setting, claim in tried:
            part, where = parts.get(setting, []), f"{placed.key}{f' at {setting}' if setting else ''}"
            if not part or not all(one.rows for one in part):
                continue
            for condition, stored in zip(claim.conditions, part, strict=True):
                if not _alike(condition.judge(stored.rows).after(stored), stored):
                    yield f"{where}: what the file says of {stored.text!r} does not follow from its replications"
            yield from _other_rows(where, claim, part, outcome.size, again, cache)


def without_numbers(claims: Sequence[PlacedClaim], outcomes: Mapping[str, Outcome]) -> list[str]:
    """The claims whose results have no numbers of replications: nothing can be computed from them again."""
    found = [(placed.key, outcomes[placed.key]) for placed in claims if placed.key in outcomes]
    return [key for key, outcome in found if not all(one.rows for one in outcome.findings if one.count)]


def _other_rows(
    where: str, claim: Claim, part: Sequence[Finding], size: Size, again: set[int], cache: ResultCache
) -> Iterator[str]:
    studies = {key: StudyProgress(study, set(again)) for key, study in needed([claim], size).items()}
    for progress in studies.values():
        progress.read(cache)
    for replication in sorted(again):
        for condition, stored in zip(claim.conditions, part, strict=True):
            used = variants_of(claim, condition, size, studies)
            now = ConditionProgress(claim, condition, used, size, start=replication)
            if (
                stored.start <= replication < stored.count
                and now.done() > replication
                and not np.allclose(now.rows()[0], stored.rows[replication - stored.start])
            ):
                yield f"{where}: replication {replication} gives other numbers than the file says"
                break


def _alike(one: Finding, other: Finding) -> bool:
    first, second = (
        [found.estimate or 0.0, found.evidence.holds, found.evidence.fails, found.evidence.same or 0.0]
        for found in (one, other)
    )
    return (one.count, one.given) == (other.count, other.given) and bool(np.allclose(first, second, rtol=1e-6))


def verify(jobs: Sequence[Job], place: Path, pool: executor.JobExecutor) -> list[Checked]:
    """Run jobs again in an empty directory, and compare fingerprints."""
    found = []
    for number, (study, variant, replication, stored) in enumerate(jobs):
        where = place / str(number)
        where.mkdir(parents=True)
        fresh, missing = "", str(study.sweep.lacking or "")
        if not missing:
            (one,) = (one for one in study.sweep.variants if one.label == variant)
            alone = replace(study.sweep, variants=(replace(one, number=0),), numbers=(replication,))
            report = drive(alone, RunDirectory(where, resume=True, done=place / JOBS), workers=pool)
            records = [record for entry in report.object["results"] for record in entry["replications"]]
            if records:
                fresh = str(records[0]["fingerprint"])[:DIGITS]
            else:
                missing = "the job broke off"
        found.append(Checked(study.name, variant, replication, stored, fresh, missing))
    return found
