"""A claim at one setting of what its paper leaves open: how far its studies are, and what they say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from coband.simulator.analysis.claims import levels
from coband.simulator.analysis.claims.claim import Claim, ClaimedStudy, Setting, Size
from coband.simulator.analysis.claims.conditions import Find, Finding, Term
from coband.simulator.analysis.claims.outcome import DIGITS, Outcome, fails_of, holds_of
from coband.simulator.analysis.claims.progress import Seconds, StudyProgress
from coband.simulator.analysis.claims.samples import Sample, SampleError, blended
from coband.simulator.analysis.claims.studies import Key, key_of
from coband.simulator.experiments.statistics import estimates

ALONE = 1.0
"""The log e-value from which on evidence without the numbers behind it is worth to go on with."""
Prints = dict[str, dict[str, list[str]]]
"""Study -> variant -> fingerprints by replication."""


def in_words(setting: Mapping[str, Setting]) -> str:
    """A setting as pages name it."""
    return ", ".join(f"{name} = {value}" for name, value in setting.items())


@dataclass
class Trial:
    """One claim at one setting.

    Attributes:
        claim: the claim, whose studies are at the setting.
        setting: in words; empty where nothing is open.
        used: its studies, each with the variants that it is about.
        findings: what a results file says of the replications before ``start``.
        prints: their fingerprints.
        start: the first replication that is not in the results file.
    """

    claim: Claim
    setting: str
    used: Sequence[tuple[StudyProgress, set[int]]]
    size: Size
    findings: Sequence[Finding] = ()
    prints: Mapping[str, Mapping[str, Sequence[str]]] | None = None
    start: int = 0

    def begin_at(self, earlier: Outcome | None) -> None:
        """Take over what a results file says, if it has the numbers of replications, or much evidence without them."""
        found = [] if earlier is None else [one for one in earlier.findings if one.setting == self.setting]
        if earlier is None or len(found) != len(self.claim.conditions) or not goes_on(found):
            return
        self.findings = [one if one.rows else replace(one, before=one.before or one.evidence) for one in found]
        self.prints, self.start = earlier.fingerprints, found[0].count
        for progress, _ in self.used:
            progress.starts.add(self.start)

    def forget(self) -> None:
        """Begin anew."""
        self.findings, self.prints, self.start = (), None, 0

    def done(self) -> int:
        """How many replications all its variants have."""
        return min(one.done(number, self.start) for one, numbers in self.used for number in numbers)

    def judge(self) -> list[Finding]:
        """What they say of each condition.

        Raises:
            SampleError: a condition asks for what its study does not have.
        """
        rows = [condition.rows(self.find()) for condition in self.claim.conditions]
        if self.findings:
            rows = [[*old.rows, *new] for old, new in zip(self.findings, rows, strict=True)]  # type: ignore[list-item]
        judged = [one.judge(found) for one, found in zip(self.claim.conditions, rows, strict=True)]
        if self.findings:
            judged = [one.after(old) for one, old in zip(judged, self.findings, strict=True)]
        return [replace(one, setting=self.setting) for one in judged]

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

    def left(self, end: int, key: Seconds) -> float:
        """Seconds until a number of replications, as far as is known."""
        return sum(one.left(numbers, end, self.start, key) for one, numbers in self.used)

    def known(self) -> bool:
        """Whether all its variants have run once, so that it is known what they take."""
        return all(one.found(number) for one, numbers in self.used for number in numbers)

    def failure(self) -> str:
        """Why it cannot go on; empty while it can."""
        return next(
            (one.failures[number] for one, numbers in self.used for number in numbers & one.failures.keys()), ""
        )

    def repeats(self, replication: int) -> bool:
        """Whether a replication of the results file, run again, has the fingerprints that stand there."""
        for progress, numbers in self.used:
            known = (self.prints or {}).get(progress.study.name, {})
            for variant in progress.study.sweep.variants:
                if variant.number in numbers:
                    sample, stored = progress.found(variant.number).get(replication), known.get(variant.label, ())
                    fresh = None if sample is None else str(sample.record["fingerprint"])[:DIGITS]
                    if replication >= len(stored) or fresh != stored[replication]:
                        return False
        return True

    def fingerprints(self) -> Prints:
        """Of all its jobs."""
        found: Prints = {}
        for progress, numbers in self.used:
            variants = found.setdefault(progress.study.name, {})
            for variant in progress.study.sweep.variants:
                if variant.number in numbers:
                    old = (self.prints or {}).get(progress.study.name, {}).get(variant.label, ())[: self.start]
                    variants[variant.label] = [*old, *_new(progress, variant.number, self.start)]
        return found


def goes_on(part: Sequence[Finding]) -> bool:
    """Whether replications of a results file count, of a claim at one setting: those with numbers, or much evidence.

    Evidence alone is a factor of that of later replications, which have to find the spread of their numbers anew;
    little of it is not worth that, and the claim begins anew.
    """
    if len({one.count for one in part}) != 1 or len({bool(one.rows) for one in part}) != 1:
        return False
    return bool(part[0].rows) or max(holds_of(part), fails_of(part)) >= ALONE


def _new(progress: StudyProgress, number: int, start: int) -> list[str]:
    found = progress.found(number)
    return [str(found[one].record["fingerprint"])[:DIGITS] for one in range(start, progress.done(number, start))]


def variants_of(claim: Claim, size: Size, studies: Mapping[Key, StudyProgress]) -> list[tuple[StudyProgress, set[int]]]:
    """The studies of a claim at a setting, each with the variants that it is about."""
    found: dict[Key, set[int]] = {}
    for term in claim.terms():
        for _, study in claim.studies_of(term):
            key = key_of(study, size)
            found.setdefault(key, set()).update(studies[key].study.numbers(term))
    return [(studies[key], numbers) for key, numbers in found.items()]


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
        return levels.blends(claim, means)
    found: dict[str, dict[str, Setting]] = {}
    for label in labels:
        scores = [sign * _mean(trial, label, tuning.by) for trial in trials]
        found[label] = claim.settings()[scores.index(min(scores))]
    return found


def _mean(trial: Trial, label: str, metric: str) -> float:
    find, terms = trial.find(), [term for term in trial.claim.terms() if term.label == label]
    values = [sample.metric(metric) for term in terms for sample in find(term)]
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
        return [(level, levels.blended(claim, parts)) for level, parts in (chosen or {}).items()]
    if claim.quantifier == "tuned":
        return [("", tuned(claim, chosen))] if chosen else []
    return [(in_words(setting), claim.at(setting)) for setting in claim.settings()]


def tuning_of(claim: Claim) -> list[tuple[str, Claim]]:
    """A tuned claim at all settings, with the seed that is there for tuning."""
    return [(in_words(one), claim.at(one).seeded(claim.tuning.seed)) for one in claim.settings()]
