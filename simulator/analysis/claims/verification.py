"""Running a sample of the jobs behind stored verdicts again, and comparing their fingerprints."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from coband.simulator.analysis.claims.claim import PlacedClaim, Size
from coband.simulator.analysis.claims.outcome import DIGITS, Outcome
from coband.simulator.analysis.claims.studies import Needed, needed
from coband.simulator.analysis.claims.trials import settings_of
from coband.simulator.experiments.runs.driver import drive
from coband.simulator.experiments.runs.workers import WorkerPool
from coband.simulator.experiments.sweep.directory import SweepDirectory


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


def sample(
    claims: Sequence[PlacedClaim], outcomes: Mapping[str, Outcome], count: int, seed: int
) -> list[tuple[Needed, str, int, str]]:
    """Jobs drawn at random from those behind the outcomes: (study, variant, replication, stored fingerprint).

    A results file also has the fingerprints of variants that only other claims about a study need; those are left out.
    """
    found: dict[tuple[str, str, int], tuple[Needed, str, int, str]] = {}
    with_jobs = [one for one in claims if one.key in outcomes and outcomes[one.key].fingerprints]
    sizes = {outcomes[one.key].size for one in with_jobs}
    studies = {size: _by_name([(one, outcomes[one.key]) for one in with_jobs], size) for size in sizes}
    for placed in with_jobs:
        outcome = outcomes[placed.key]
        by_name = studies[outcome.size]
        for name, variants in outcome.fingerprints.items():
            if name not in by_name:
                continue  # the claim's settings have changed since
            known = {variant.label for variant in by_name[name].sweep.variants}
            for variant in known.intersection(variants):
                for replication, print_ in enumerate(variants[variant]):
                    found.setdefault((name, variant, replication), (by_name[name], variant, replication, print_))
    keys = sorted(found)
    return [found[key] for key in random.Random(seed).sample(keys, min(count, len(keys)))]


def _by_name(claims: Sequence[tuple[PlacedClaim, Outcome]], size: Size) -> dict[str, Needed]:
    """The studies of all claims, each with the variants that any of them needs: claims share the jobs of a study."""
    tried = [one for placed, outcome in claims for _, one in settings_of(placed.claim, outcome.chosen)]
    return {study.name: study for study in needed(tried, size).values()}


def verify(
    jobs: Sequence[tuple[Needed, str, int, str]],
    place: Path,
    pool: WorkerPool,
    told: Callable[[Checked], None] | None = None,
) -> list[Checked]:
    """Run jobs again in an empty directory, and compare fingerprints."""
    found = []
    for number, (study, variant, replication, stored) in enumerate(jobs):
        where = place / str(number)
        where.mkdir(parents=True)
        fresh, missing = "", str(study.sweep.missing or "")
        if not missing:
            (one,) = (one for one in study.sweep.variants if one.label == variant)
            alone = replace(study.sweep, variants=(replace(one, number=0),), numbers=(replication,))
            report = drive(alone, SweepDirectory(where), workers=pool)
            records = [record for entry in report.object["results"] for record in entry["replications"]]
            if records:
                fresh = str(records[0]["fingerprint"])[:DIGITS]
            else:
                missing = "the job broke off"
        found.append(Checked(study.name, variant, replication, stored, fresh, missing))
        if told is not None:
            told(found[-1])
    return found
