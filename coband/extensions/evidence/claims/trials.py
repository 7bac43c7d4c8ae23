"""A claim at one setting of what its paper leaves open: how far its conditions are, and what they say. Labels are
compared at equal values of a metric, each between two neighbouring points of its frontier.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from coband.extending import estimates, non_dominated
from coband.extensions.evidence.claims.claim import BlendedClaim, Claim, ClaimedStudy, Setting, Size
from coband.extensions.evidence.claims.comparisons import Presupposed
from coband.extensions.evidence.claims.condition import BaseCondition, Find, Finding, Term
from coband.extensions.evidence.claims.outcome import DIGITS, Outcome, fails_of, holds_of
from coband.extensions.evidence.claims.progress import Seconds, StudyProgress
from coband.extensions.evidence.claims.samples import Sample, SampleError, blended
from coband.extensions.evidence.claims.studies import Key, key_of

Point = tuple[float, float, dict[str, Setting]]
"""Mean of the metric, mean of what is compared, and the setting that has them."""
Blend = list[tuple[float, dict[str, Setting]]]
"""Settings with their weights."""
WEIGHT_DIGITS = 6
"""Digits of a weight."""


def frontier(points: Sequence[Point]) -> list[Point]:
    """The points that no other one beats in both means, by the first; both are better the lower they are."""
    best = non_dominated(np.array([point[:2] for point in points]))
    kept = {point[:2]: point for point, stays in zip(points, best, strict=True) if stays}
    return [kept[key] for key in sorted(kept)]


def common(frontiers: Mapping[str, Sequence[Point]], metric: str, levels: int) -> list[float]:
    """Values of the metric that all frontiers reach, at equal steps; one if they have no more in common.

    Raises:
        SampleError: they do not overlap.
    """
    low = max(points[0][0] for points in frontiers.values())
    high = min(points[-1][0] for points in frontiers.values())
    if low > high:
        reached = "; ".join(f"{label} {one[0][0]:,.5g} to {one[-1][0]:,.5g}" for label, one in frontiers.items())
        raise SampleError(
            f"the frontiers do not overlap, so nothing can be compared at equal {metric} ({reached}); "
            "list more of the open values."
        )
    if low == high:
        return [low]
    return np.linspace(low, high, levels).tolist() if levels > 1 else [(low + high) / 2]


def blend(points: Sequence[Point], level: float) -> Blend:
    """The neighbours of a level on a frontier, with the weights by which their metric has it as its mean.

    Linear interpolation: with neighbours (y_1, z_1) and (y_2, z_2) and w = (y_2 - level)/(y_2 - y_1), what is compared
    is w z_1 + (1 - w) z_2, the mean of who draws the first setting with probability w.
    """
    for first, second in pairwise(points):
        if first[0] <= level < second[0]:
            weight = round((second[0] - level) / (second[0] - first[0]), WEIGHT_DIGITS)
            parts = [(weight, first[2]), (round(1 - weight, WEIGHT_DIGITS), second[2])]
            return [(share, setting) for share, setting in parts if share > 0]
    return [(1.0, points[-1][2])]


def blends(claim: Claim, means: Mapping[str, Sequence[Point]]) -> dict[str, dict[str, Blend]]:
    """At each common level, in words, the blend of every label.

    Args:
        claim: with ``quantifier: at_equal``.
        means: the points of each label at all settings, on seeds that test nothing.

    Raises:
        SampleError: the frontiers do not overlap.
    """
    assert claim.at_equal is not None
    frontiers = {label: frontier(points) for label, points in means.items()}
    levels = common(frontiers, claim.at_equal.metric, claim.at_equal.levels)
    return {
        f"{claim.at_equal.metric} = {level:.5g}": {label: blend(points, level) for label, points in frontiers.items()}
        for level in levels
    }


def claim_at_level(claim: Claim, chosen: Mapping[str, Any]) -> BlendedClaim:
    """The claim at one level: with the blend of every label, and with the condition that their metric is equal."""
    assert claim.at_equal is not None
    terms = list({str(term): term for term in claim.terms()}.values())
    about = {"kind": "equal", "of": claim.at_equal.metric, "margin": claim.at_equal.tolerance}
    equal = [Presupposed(first=first, second=second, **about) for first, second in pairwise(terms)]
    return BlendedClaim.model_construct(
        **{**dict(claim), "conditions": [*claim.conditions, *equal]},
        blends={label: [(weight, setting) for weight, setting in parts] for label, parts in chosen.items()},
    )


ALONE = 1.0
"""The log e-value from which on evidence without the numbers behind it is worth to go on with."""
Prints = dict[str, dict[str, list[str]]]
"""Study -> variant -> fingerprints by replication."""
Used = Sequence[tuple[StudyProgress, set[int]]]
"""Studies, each with the numbers of some of its variants."""


def in_words(setting: Mapping[str, Setting]) -> str:
    """A setting as pages name it."""
    return ", ".join(f"{name} = {value}" for name, value in setting.items())


@dataclass
class ConditionProgress:
    """How far one condition of a claim is, whose replications are its own: a verdict may hang on one of several.

    Attributes:
        claim: the claim, whose studies are at a setting.
        condition: one of its conditions.
        used: the studies, each with the variants that it is about.
        start: the first replication that is not in the results file.
        old: what a results file says of the replications before.
    """

    claim: Claim
    condition: BaseCondition
    used: Used
    size: Size
    start: int = 0
    old: Finding | None = None

    def variants(self) -> Iterator[tuple[StudyProgress, int]]:
        """Its variants: the study, and the number in it."""
        yield from ((progress, number) for progress, numbers in self.used for number in sorted(numbers))

    def done(self) -> int:
        """How many replications all its variants have."""
        return min(progress.done(number, self.start) for progress, number in self.variants())

    def known(self) -> bool:
        """Whether all its variants have run once, so that it is known what they take."""
        return all(progress.found(number) for progress, number in self.variants())

    def rows(self) -> list[list[float]]:
        """What each replication from the start on gave.

        Raises:
            SampleError: it asks for what its study does not have.
        """
        return self.condition.rows(self.find())

    def judge(self) -> Finding:
        """What all its replications say.

        Raises:
            SampleError: it asks for what its study does not have.
        """
        if self.old is None:
            return self.condition.judge(self.rows())
        return self.condition.judge([*self.old.rows, *self.rows()]).after(self.old)

    def find(self) -> Find:
        """The samples of a term from the start on."""
        done, studies = self.done(), {progress.study.key: progress for progress, _ in self.used}

        def one(study: ClaimedStudy, term: Term) -> Mapping[int, Sample]:
            samples = studies[key_of(study, self.size)].samples
            return {} if samples is None else samples.of(term.label, term.at)

        def find(term: Term) -> list[Sample]:
            parts = [(weight, one(study, term)) for weight, study in self.claim.studies_of(term)]
            return [blended([(weight, of[number]) for weight, of in parts]) for number in range(self.start, done)]

        return find


@dataclass
class Trial:
    """One claim at one setting.

    Attributes:
        claim: the claim, whose studies are at the setting.
        setting: in words; empty where nothing is open.
        conditions: how far each of them is.
        prints: fingerprints of the replications in a results file.
    """

    claim: Claim
    setting: str
    conditions: Sequence[ConditionProgress]
    prints: Mapping[str, Mapping[str, Sequence[str]]] | None = None

    @property
    def start(self) -> int:
        """Before it all conditions have replications in a results file."""
        return min(one.start for one in self.conditions)

    def begin_at(self, earlier: Outcome) -> None:
        """Take over what a results file says, if it has the numbers of replications, or much evidence without them."""
        found = [one for one in earlier.findings if one.setting == self.setting]
        if len(found) != len(self.conditions) or not goes_on(found):
            return
        self.prints = earlier.fingerprints
        for condition, old in zip(self.conditions, found, strict=True):
            condition.old = old if old.rows else replace(old, before=old.before or old.evidence)
            condition.start = old.count
            for progress, _ in condition.used:
                progress.starts.add(old.count)

    def forget(self) -> None:
        self.prints = None
        for one in self.conditions:
            one.start, one.old = 0, None

    def judge(self) -> list[Finding]:
        """What they say of each condition.

        Raises:
            SampleError: a condition asks for what its study does not have.
        """
        return [replace(one.judge(), setting=self.setting) for one in self.conditions]

    def failure(self) -> str:
        """Why it cannot go on; empty while it can."""
        return next(filter(None, (progress.failures.get(number, "") for progress, number, _ in self._variants())), "")

    def repeats(self, replication: int) -> bool:
        """Whether a replication of the results file, run again, has the fingerprints that stand there."""
        for progress, number, _ in self._variants():
            sample, stored = progress.found(number).get(replication), self._stored(progress, number)
            fresh = None if sample is None else str(sample.record["fingerprint"])[:DIGITS]
            if replication >= len(stored) or fresh != stored[replication]:
                return False
        return True

    def fingerprints(self) -> Prints:
        """Return the fingerprints of all its jobs."""
        found: Prints = {}
        for progress, number, start in self._variants():
            samples, label = progress.found(number), progress.study.sweep.variants[number].label
            new = (samples[one].record["fingerprint"] for one in range(start, progress.done(number, start)))
            prints = [*self._stored(progress, number)[:start], *(str(one)[:DIGITS] for one in new)]
            found.setdefault(progress.study.name, {})[label] = prints
        return found

    def _stored(self, progress: StudyProgress, number: int) -> Sequence[str]:
        known = (self.prints or {}).get(progress.study.name, {})
        return known.get(progress.study.sweep.variants[number].label, ())

    def _variants(self) -> Iterator[tuple[StudyProgress, int, int]]:
        """(study, number of a variant, first of its replications that is not in the results file)."""
        starts: dict[tuple[int, int], tuple[StudyProgress, int]] = {}
        for one in self.conditions:
            for progress, number in one.variants():
                _, known = starts.get((id(progress), number), (progress, 0))
                starts[id(progress), number] = progress, max(known, one.start)
        yield from ((progress, number, start) for (_, number), (progress, start) in starts.items())


def seconds(ends: Sequence[tuple[ConditionProgress, int]], key: Seconds = "cpu_seconds") -> float:
    """Seconds until some conditions have so many replications; what they share counts once."""
    return _once(
        (progress, number, progress.left([number], end, one.start, key))
        for one, end in ends
        for progress, number in one.variants()
    )


def spent(conditions: Iterable[ConditionProgress]) -> float:
    """CPU seconds of what has run for some conditions beyond the results file; what they share counts once."""
    return _once(
        (progress, number, progress.seconds(number) * (one.done() - one.start))
        for one in conditions
        for progress, number in one.variants()
    )


def _once(values: Iterable[tuple[StudyProgress, int, float]]) -> float:
    """The sum over variants, each with the largest of its values."""
    found: dict[tuple[int, int], float] = {}
    for progress, number, value in values:
        found[id(progress), number] = max(value, found.get((id(progress), number), 0.0))
    return sum(found.values())


def goes_on(part: Sequence[Finding]) -> bool:
    """Whether replications of a results file count, of a claim at one setting: those with numbers, or much evidence.

    Evidence without numbers is a factor of that of later replications, which have to find the spread of their numbers
    again; little of it is not worth that, and the claim starts again.
    """
    if not all(one.count for one in part) or len({bool(one.rows) for one in part}) != 1:
        return False
    return bool(part[0].rows) or max(holds_of(part), fails_of(part)) >= ALONE


def variants_of(claim: Claim, condition: BaseCondition, size: Size, studies: Mapping[Key, StudyProgress]) -> Used:
    """The studies of a condition of a claim at a setting, each with the variants that it is about."""
    found: dict[Key, set[int]] = {}
    for term in condition.terms():
        for _, study in claim.studies_of(term):
            key = key_of(study, size)
            found.setdefault(key, set()).update(studies[key].study.numbers(term))
    return [(studies[key], numbers) for key, numbers in found.items()]


def trial_of(setting: str, claim: Claim, size: Size, studies: Mapping[Key, StudyProgress]) -> Trial:
    """A claim at a setting, before anything has run."""
    conditions = [
        ConditionProgress(claim, one, variants_of(claim, one, size, studies), size) for one in claim.conditions
    ]
    return Trial(claim, setting, conditions)


def choice(claim: Claim, trials: Sequence[Trial]) -> dict[str, dict[str, Any]]:
    """What tuning chooses: the best setting of each label by the mean of a metric; or the blends at equal levels.

    Args:
        claim: with ``quantifier: tuned`` or ``at_equal``.
        trials: the claim with the tuning's seed, at all of its settings in order.

    Raises:
        SampleError: there is no such metric, or the labels' frontiers do not overlap.
    """
    tuning, sign = claim.tuning, 1 if claim.tuning.best == "lowest" else -1
    labels = dict.fromkeys(term.label for term in claim.terms())
    if claim.at_equal is not None:
        of = str(getattr(claim.conditions[0], "of"))  # noqa: B009  which all of its kinds of conditions have
        metrics, pairs = (claim.at_equal.metric, of), list(zip(trials, claim.settings(), strict=True))
        means = {
            label: [(_mean(one, label, metrics[0]), _mean(one, label, metrics[1]), own) for one, own in pairs]
            for label in labels
        }
        return blends(claim, means)
    found: dict[str, dict[str, Setting]] = {}
    for label in labels:
        scores = [sign * _mean(trial, label, tuning.by) for trial in trials]
        found[label] = claim.settings()[scores.index(min(scores))]
    return found


def _mean(trial: Trial, label: str, metric: str) -> float:
    values = [
        sample.metric(metric)
        for one in trial.conditions
        for term in one.condition.terms()
        if term.label == label
        for sample in one.find()(term)
    ]
    if not values:
        raise SampleError("its tuning has not run.")
    return estimates.mean(values)


def tuned(claim: Claim, chosen: Mapping[str, Mapping[str, Setting]]) -> Claim:
    """The claim with each label at the setting that was chosen for it."""
    for label, setting in chosen.items():
        claim = claim.at(setting, label)
    return claim


def settings_of(claim: Claim, chosen: Mapping[str, Mapping[str, Setting]] | None = None) -> list[tuple[str, Claim]]:
    """The claim at each setting or level that is tried, with its words; none for a tuned claim before it is tuned."""
    if claim.quantifier == "at_equal":
        return [(level, claim_at_level(claim, parts)) for level, parts in (chosen or {}).items()]
    if claim.quantifier == "tuned":
        return [("", tuned(claim, chosen))] if chosen else []
    return [(in_words(setting), claim.at(setting)) for setting in claim.settings()]


def tuning_of(claim: Claim) -> list[tuple[str, Claim]]:
    """A tuned claim at all settings, with the seed that is there for tuning."""
    return [(in_words(one), claim.at(one).seeded(claim.tuning.seed)) for one in claim.settings()]
