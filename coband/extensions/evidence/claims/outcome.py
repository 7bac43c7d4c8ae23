"""What a claim came to: the numbers that the repository keeps, and the verdict that follows from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from coband.extending import mean_of_logs
from coband.extensions.evidence.claims.claim import Size
from coband.extensions.evidence.claims.condition import Finding
from coband.extensions.evidence.e_values import ENOUGH, closed_ebh

Verdict = Literal["holds", "does not hold", "no practical difference", "undecided", "not run"]
LEVEL = 0.05
"""The false discovery rate over all claims; a verdict on its own needs an e-value of 1 / LEVEL."""
SAME_SHARE = 0.25
"""The weight of "there is a practical difference" beside the sign of a difference, where both are false."""
DIGITS = 16
"""Digits of a fingerprint that results files keep."""


@dataclass(frozen=True)
class Outcome:
    """One claim after its studies have run.

    Attributes:
        claim: such as ``duets/figure_1a_regret``.
        size: full, quick or toy.
        findings: one per condition.
        replications: of the study with the fewest.
        cpu_hours: of all its replications; jobs that claims share count for each of them.
        reason: why it was not run, or not to the end; empty if it was.
        cost_hours: estimate of what a verdict still costs, where that is known.
        fingerprints: study -> variant -> one for each replication.
        origin: versions, commit, date.
        settings: digest of what it was tried with; empty where that was not noted.
        quantifier: any: it holds if it does at some setting of what is open; all: only if it does at all of them.
        chosen: label -> setting that tuning chose for it.
        before: the verdict that stood before the replications of this outcome; empty where there was none.
    """

    claim: str
    size: Size
    findings: Sequence[Finding]
    replications: int
    cpu_hours: float
    reason: str = ""
    cost_hours: float | None = None
    fingerprints: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    origin: Mapping[str, Any] = field(default_factory=dict)
    settings: str = ""
    quantifier: Literal["any", "all"] = "all"
    chosen: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    before: Verdict | Literal[""] = ""

    def parts(self) -> dict[str, list[Finding]]:
        found: dict[str, list[Finding]] = {}
        for one in self.findings:
            found.setdefault(one.setting, []).append(one)
        return found

    @property
    def holds(self) -> float:
        """The log e-value of the hypothesis that the claim is false: at a setting, all of its conditions have to hold.

        It is false at all settings of ``any`` (the mean of the e-values), or at one of ``all`` (the smallest).
        """
        found = [holds_of(part) for part in self.parts().values()] or [0.0]
        return mean_of_logs(found) if self.quantifier == "any" else min(found)

    @property
    def fails(self) -> float:
        """The log e-value of the hypothesis that the claim is true: at a setting, one of its conditions fails."""
        found = [fails_of(part) for part in self.parts().values()] or [0.0]
        return min(found) if self.quantifier == "any" else mean_of_logs(found)

    @property
    def same(self) -> float | None:
        """The log e-value of the hypothesis that one of its differences matters; None if one has no margin."""
        return same_of(self.findings)

    @property
    def nearest(self) -> tuple[Verdict, float]:
        """The verdict that has the most evidence, with its log e-value.

        A claim of a difference that is known not to matter in practice holds only if its sign is known too.
        """
        sides: list[tuple[Verdict, float]] = [("holds", self.holds), ("does not hold", self.fails)]
        sign = max(sides, key=lambda one: one[1])
        if self.same is None or self.holds >= ENOUGH or self.same < min(sign[1], ENOUGH):
            return sign
        return "no practical difference", self.same

    @property
    def decided(self) -> bool:
        """Whether it is decided so clearly that its verdict stands among many claims (`ENOUGH`)."""
        return self.nearest[1] >= ENOUGH

    def stakes(self) -> tuple[float, float]:
        """Log e-values of the hypotheses that the nearest verdict is wrong, and that it is right.

        With a margin there are four states of the world, by the sign of the difference and whether it matters; where it
        does, two hypotheses are true, whose e-values count with `SAME_SHARE`.
        """
        nearest, _ = self.nearest
        if self.same is None:
            return max(self.holds, self.fails), min(self.holds, self.fails)
        weights = math.log(1 - SAME_SHARE), math.log(SAME_SHARE) + self.same
        small = {"holds": self.holds, "does not hold": self.fails}
        large = {key: float(np.logaddexp(weights[0] + one, weights[1])) for key, one in small.items()}
        if nearest == "no practical difference":
            return min(large.values()), min(small.values())
        wrong = min(small.pop(nearest), large.pop(nearest))
        return wrong, min(*small.values(), *large.values())

    @property
    def missing(self) -> int | None:
        """About how many more replications of a condition decide it; None if that is not known."""
        found, leading = self.parts(), self.leading
        needs = [missing_of(found[setting]) for setting in leading]
        known = [one for one in needs if one is not None]
        if self.one_is_enough:
            return min(known, default=None)
        return max(known, default=None) if len(known) == len(needs) else None

    @property
    def leading(self) -> list[str]:
        """The settings that can decide what it seems to come to.

        Where one is enough, it is that which lacks the fewest replications of those at which it seems so; all of them
        before that is known.
        """
        found, holds = self.parts(), self.holds >= self.fails
        alike = [key for key, part in found.items() if (holds_of(part) >= fails_of(part)) == holds]
        if not (self.one_is_enough and alike):
            return list(found)
        known = {key: need for key in alike if (need := missing_of(found[key])) is not None}
        return [min(known, key=lambda key: known[key])] if known else alike

    @property
    def one_is_enough(self) -> bool:
        """Whether one setting decides what it seems to come to."""
        return (self.quantifier == "any") == (self.holds >= self.fails)

    def joined(self, earlier: Outcome) -> Outcome:
        """At every setting what has more replications, of this outcome and an earlier one of the same settings."""
        new, old = self.parts(), earlier.parts()
        kept = {key: part for key, part in old.items() if key not in new or _counted(part) > _counted(new[key])}
        if not kept:
            return self
        findings = [one for key in {**old, **new} for one in (kept.get(key) or new[key])]
        prints = {study: dict(variants) for study, variants in earlier.fingerprints.items()}
        for study, variants in self.fingerprints.items():
            known = prints.setdefault(study, {})
            known.update({key: found for key, found in variants.items() if len(found) >= len(known.get(key, ()))})
        return replace(
            earlier if len(kept) == len(new) else self,
            findings=findings,
            replications=min((one.count for one in findings if one.count), default=0),
            cpu_hours=max(self.cpu_hours, earlier.cpu_hours),
            fingerprints=prints,
        )


def holds_of(part: Sequence[Finding]) -> float:
    """The log e-value for a claim at one setting."""
    return min(one.evidence.holds for one in part)


def fails_of(part: Sequence[Finding]) -> float:
    """The log e-value against a claim at one setting: with equal weights, of that against each condition.

    What a comparison presupposes has to hold for this verdict too.
    """
    against = mean_of_logs([one.evidence.fails for one in part if not one.given])
    return min([against, *(one.evidence.holds for one in part if one.given)])


def same_of(part: Sequence[Finding]) -> float | None:
    """The log e-value of the hypothesis that one of some differences matters; None if one has no margin."""
    found = [one.evidence.holds if one.given else one.evidence.same for one in part]
    return None if not found or None in found else min(one for one in found if one is not None)


def missing_of(part: Sequence[Finding]) -> int | None:
    """About how many more replications of a condition decide a claim at one setting; None if that is not known."""
    needs = pursued(part)
    known = [need - part[place].count for place, need in needs.items() if need is not None]
    return max(known) if len(known) == len(needs) else None


def pursued(part: Sequence[Finding], cost: Callable[[int, int], float] | None = None) -> dict[int, int | None]:
    """The conditions whose replications decide a claim at one setting, by their places.

    They are all that are open where it seems to hold. Where it seems to fail, one of those that speak against it is
    enough: the one that costs least, with what a comparison presupposes.

    Args:
        part: the findings.
        cost: of a condition, by its place, up to a number of replications; None: what it lacks.

    Returns:
        About how many replications each of them needs; None where that is not known.
    """
    everything = {place: None if _unfit(one) else one.evidence.needed for place, one in enumerate(part)}
    holds, fails, same = holds_of(part), fails_of(part), same_of(part)
    if any(one.count < 2 for one in part):
        return everything
    if same is not None and same > max(holds, fails):
        known_same = {place for place, one in enumerate(part) if (same_of([one]) or 0.0) >= ENOUGH}
        return {place: need for place, need in everything.items() if place not in known_same} or everything
    late = {place: need for place, need in everything.items() if part[place].evidence.holds < ENOUGH}
    if fails < holds:
        return late or everything
    needs = {place: _against(part, place) for place, one in enumerate(part) if one.evidence.fails > one.evidence.holds}
    known = {place: need for place, need in needs.items() if need is not None and not part[place].given}
    if not known:
        return everything
    lacks = (lambda place, count: count - part[place].count) if cost is None else cost
    soonest = min(known, key=lambda place: lacks(place, known[place]))
    return {soonest: known[soonest], **{place: need for place, need in late.items() if part[place].given}}


def _unfit(one: Finding) -> bool:
    """Whether what a comparison presupposes seems to be false: then no number of replications is enough."""
    return one.given and one.evidence.fails > one.evidence.holds


def _against(part: Sequence[Finding], place: int) -> int | None:
    """About how many replications of a condition refute the claim; evidence against one of k conditions counts 1/k."""
    one = part[place]
    log_e, needed = one.evidence.fails, one.evidence.needed
    enough = ENOUGH + math.log(sum(not one.given for one in part))
    if log_e >= ENOUGH:  # which has no forecast any more
        return one.count + (log_e < enough)
    if needed is None:
        return None
    return one.count + math.ceil((needed - one.count) * (enough - log_e) / (ENOUGH - log_e))


def _counted(part: Sequence[Finding]) -> int:
    return sum(one.count for one in part)


def verdicts(outcomes: Sequence[Outcome]) -> list[Verdict]:
    """The verdicts on several claims at once, with a false discovery rate of at most `LEVEL`.

    By closed e-BH (Xu, Fischer and Ramdas 2025), and none with an e-value below 1 / `LEVEL`; what was not run takes no
    part.
    """
    run = [one for one in outcomes if one.replications > 0]
    stakes = [one.stakes() for one in run]
    published = closed_ebh([wrong for wrong, _ in stakes], [right for _, right in stakes], LEVEL)
    found: dict[str, Verdict] = {}
    for one, stands in zip(run, published, strict=True):
        verdict, log_e = one.nearest
        found[one.claim] = verdict if stands and log_e >= -math.log(LEVEL) else "undecided"
    return [found.get(one.claim, "not run") for one in outcomes]
