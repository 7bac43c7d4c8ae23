"""Running a random sample of the jobs of a results file again, as somebody else would."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from coband.extending import Record, Registry, Report, ResultCache, RunDirectory, Study, executor
from coband.extensions.evidence.suite.submission import (
    JOBS,
    Candidate,
    Outcome,
    Submission,
    checked_study,
    code_here,
    driven,
    eligible,
    measured,
    origin_of,
    records_of,
    test_study,
    tuning_study,
)
from coband.extensions.evidence.suite.suites import REFERENCES, Suite

OWN = "coband "
"""What the origin of coband's own algorithms begins with."""
BROKEN = -1
"""Stands for the number of a replication where a test broke off."""
DEFAULTS: list[dict[str, Any]] = [{}]
"""The settings that are tried of an algorithm that declares no ranges."""


@dataclass(frozen=True)
class Checked:
    """What has run again: a replication of a test, a setting of tuning with all its replications, or what broke off."""

    scenario: str
    label: str
    part: str
    same: bool
    """Whether it made the same decisions and sent the same messages, with the same numbers, or broke off again."""


def contradictions(suite: Suite, submission: Submission) -> Iterator[str]:
    """What is wrong with a results file before anything runs."""
    if submission.sha256 != suite.digest:
        yield f"it was made on another version of {suite.name}"
    yield from (what for what, excused in _declared(suite, submission) if not excused)
    for scenario, label, test in _outcomes(submission):
        for what in _contradictions(suite, submission, scenario, label, test):
            yield f"{scenario}, {label}: {what}"
    if submission.seed != submission.expected_seed:
        yield f"the seed is {submission.seed}, but what is submitted gives {submission.expected_seed}"


def _declared(suite: Suite, submission: Submission) -> Iterator[tuple[str, bool]]:
    """(what a file says otherwise of its algorithms than we do, whether another version of coband may have)."""
    known, other = Registry.installed().algorithms, submission.coband != code_here()
    for name, origin in submission.algorithms.items():
        if name not in known:
            yield f"{name} is not installed here ({origin}), so that it cannot be run again", False
            continue
        here = origin_of(name)
        older = other and here.startswith(OWN) and origin.startswith(OWN)
        if here != origin:
            yield f"{name} is {here} here, and {origin} in the file", older
        if (told := sorted(known[name].facts)) != (said := sorted(submission.knows.get(name, ()))):
            yield f"{name} is told {_listed(told)} here, and {_listed(said)} in the file", older
    for scenario, reasons in submission.unfit.items():
        for name in (one for one in reasons if one in known):
            if not suite.why_not(scenario, known[name], submission.size):
                yield f"{scenario}: {name} fits here, and in the file it does not: {reasons[name]}", other


def _listed(facts: list[str]) -> str:
    return ", ".join(facts) or "nothing beside arms and rewards"


def _contradictions(suite: Suite, submission: Submission, scenario: str, label: str, test: Outcome) -> Iterator[str]:
    """What is wrong with one outcome of an algorithm that is installed."""
    budget, public = suite.definition.sizes[submission.size], _public(suite, submission, scenario, label)
    found = eligible(suite.world(scenario), test.candidates)
    means = [one.mean for one in found if one.mean is not None]
    chosen = [one.mean for one in found if one.settings == test.chosen]
    if (means or not test.failure) and min(means, default=None) not in chosen:
        yield "the settings that were tested are not those that tuning found best"
    tried = [one.settings for one in test.candidates]
    foreign = [one for one in tried if one not in public]
    if foreign:
        yield f"{foreign[0]} was tried, which is none of the public settings"
    elif tried != public and (tried or not test.failure) and not _older(submission, label, tried):
        yield f"the {len(public)} public settings were not tried once each, in their order"
    lengths = {len(test.fingerprints), *map(len, test.values.values())}
    if test.failure and lengths != {0}:
        yield "it broke off, and has numbers"
    if not test.failure and lengths != {budget.replications}:
        yield f"not every number has {budget.replications} replications"
    if any(len(one.fingerprints) != budget.tuning for one in test.candidates if one.mean is not None):
        yield f"not every setting was tried in {budget.tuning} replications"


def differences(suite: Suite, submission: Submission) -> Iterator[str]:
    """In what a run of today would differ, though nothing is wrong with the file."""
    if submission.coband != code_here():
        yield f"it was made by coband {submission.coband}, and here is {code_here()}"
    yield from (what for what, excused in _declared(suite, submission) if excused)
    found: dict[str, list[str]] = {}
    for scenario, label, test in _outcomes(submission):
        tried, public = [one.settings for one in test.candidates], _public(suite, submission, scenario, label)
        if tried != public and _older(submission, label, tried):
            found.setdefault(f"{label}: candidates of an older rule: 1, now {len(public)}", []).append(scenario)
    for sentence, scenarios in found.items():
        yield f"{sentence} ({', '.join(scenarios)})"


def _older(submission: Submission, label: str, tried: list[dict[str, Any]]) -> bool:
    """Whether another version of coband may have tried the defaults alone, before one of its algorithms had ranges.

    No other settings are excused, so that nobody chooses them, and nobody excuses an Alone that was not tuned.
    """
    own = label not in REFERENCES and origin_of(label).startswith(OWN)
    return own and tried == DEFAULTS and submission.coband != code_here()


def _outcomes(submission: Submission) -> Iterator[tuple[str, str, Outcome]]:
    """(scenario, label, outcome) of the references and of algorithms that are installed."""
    for scenario, tests in submission.tests.items():
        for label, test in tests.items():
            if label in REFERENCES or label in Registry.installed().algorithms:
                yield scenario, label, test


def _public(suite: Suite, submission: Submission, scenario: str, label: str) -> list[dict[str, Any]]:
    """The settings that are tried under a label."""
    name = suite.world(scenario).entry(label)["algorithm"]
    return suite.candidates(scenario, Registry.installed().algorithms[name], submission.size)


def verify(
    suite: Suite, submission: Submission, count: int, place: Path, pool: executor.JobExecutor, seed: int
) -> list[Checked]:
    """Run so many results again, drawn at random: half are of tests, half are settings of tuning.

    For a test, these are its replications, or that it broke off, which nobody writes to have no score where it is bad.

    Args:
        place: an empty directory for them.
        seed: of the draw.
    """
    outcomes, draw = list(_outcomes(submission)), random.Random(seed)
    tuned = [(s, label, n) for s, label, test in outcomes for n in range(len(test.candidates))]
    tested = [(s, label, n) for s, label, test in outcomes for n in _parts(test)]
    some = sorted(draw.sample(tuned, min(count // 2, len(tuned))))
    others = sorted(draw.sample(tested, min(count - len(some), len(tested))))
    again = _Again(suite, submission, place, pool)
    return [
        *(again.tuned(*one) for one in some),
        *(again.broken(s, label) if n == BROKEN else again.tested(s, label, n) for s, label, n in others),
    ]


def _parts(test: Outcome) -> Sequence[int]:
    """The replications of a test, or that it broke off; nothing where no setting of tuning was finished."""
    finished = [one for one in test.candidates if one.mean is not None]
    if not test.failure:
        return range(len(test.fingerprints))
    return [BROKEN] if finished or not test.candidates else []


@dataclass(frozen=True)
class _Again:
    """Runs parts of a submission again."""

    suite: Suite
    submission: Submission
    place: Path
    pool: executor.JobExecutor

    def tested(self, scenario: str, label: str, number: int) -> Checked:
        """A replication of a test."""
        test = self.submission.tests[scenario][label]
        study = test_study(self.suite, scenario, {label: test}, self.submission.size, self.submission.seed)
        records = self._records(replace(study, numbers=(number,)), f"{scenario}-{label}-{number}")
        values = measured(self.suite.world(scenario), records)
        same = [one["fingerprint"] for one in records] == [test.fingerprints[number]]
        same &= all(_alike(test.values[key][number], one[0]) for key, one in values.items() if one)
        return Checked(scenario, label, f"replication {number}", same)

    def broken(self, scenario: str, label: str) -> Checked:
        """A test that is said to have broken off: with its default settings and all checks, or later in the test."""
        test, size = self.submission.tests[scenario][label], self.submission.size
        entry = self.suite.world(scenario).entry(label)
        refused = self.suite.why_not(scenario, Registry.installed().algorithms[entry["algorithm"]], size)
        if not refused and test.candidates:
            study = test_study(self.suite, scenario, {label: test}, size, self.submission.seed)
        elif not refused:
            study = checked_study(self.suite, scenario, {label: entry}, size)
        same = bool(refused or self._run(study, f"{scenario}-{label}-broken").failures)
        return Checked(scenario, label, "breaking off", same)

    def tuned(self, scenario: str, label: str, number: int) -> Checked:
        """A setting on all tuning seeds."""
        stored = self.submission.tests[scenario][label].candidates[number]
        key = f"{label}#{number}"
        study = tuning_study(self.suite, scenario, {key: (label, stored.settings)}, self.submission.size)
        records = self._records(study, f"{scenario}-{key}")
        found = Candidate.of(self.suite.world(scenario), stored.settings, records, study.replications)
        before, now = (math.nan if one.mean is None else one.mean for one in (stored, found))
        same = stored.fingerprints == found.fingerprints and _alike(before, now) and stored.pulls in (None, found.pulls)
        return Checked(scenario, label, f"setting {number} of tuning", same)

    def _run(self, study: Study, name: str) -> Report:
        where = self.place / name
        where.mkdir()
        return driven(study, RunDirectory(where, resume=True, done=self.place / JOBS), self.pool)

    def _records(self, study: Study, name: str) -> list[Record]:
        self._run(study, name)
        (_, records), *_ = records_of(study, ResultCache(self.place / JOBS))
        return records


def _alike(stored: float, found: float) -> bool:
    return bool(np.isclose(stored, found, rtol=1e-9, equal_nan=True))
