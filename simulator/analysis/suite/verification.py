"""Running a random sample of the jobs of a results file again, as somebody else would."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from coband.simulator.analysis.suite.submission import (
    JOBS,
    Outcome,
    Submission,
    measured,
    origin_of,
    records_of,
    test_study,
)
from coband.simulator.analysis.suite.suites import REFERENCES, Suite
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.runs.driver import drive
from coband.simulator.experiments.runs.workers import WorkerPool
from coband.simulator.experiments.sweep.directory import ResultCache, SweepDirectory


@dataclass(frozen=True)
class Checked:
    """One replication of a test that has run again."""

    scenario: str
    label: str
    replication: int
    stored: str
    found: str

    @property
    def same(self) -> bool:
        """Whether it made the same decisions and sent the same messages."""
        return self.stored == self.found


def contradictions(suite: Suite, submission: Submission) -> Iterator[str]:
    """What is wrong with a results file before anything runs."""
    if submission.sha256 != suite.digest:
        yield f"it was made on another version of {suite.name}"
    known = Registry.installed().algorithms
    for name, origin in submission.algorithms.items():
        if name not in known:
            yield f"{name} is not installed here ({origin}), so that it cannot be run again"
        elif origin_of(name) != origin:
            yield f"{name} is {origin_of(name)} here, and {origin} in the file"
    for scenario, tests in submission.tests.items():
        for label, test in tests.items():
            means = [one.mean for one in test.candidates if one.mean is not None]
            chosen = [one.mean for one in test.candidates if one.settings == test.chosen]
            if means and min(means) not in chosen:
                yield f"{scenario}, {label}: the settings that were tested are not those that tuning found best"
            budget = suite.definition.sizes[submission.size].candidates
            if len(test.candidates) > budget:
                yield f"{scenario}, {label}: {len(test.candidates)} settings were tried, more than {budget}"
    if submission.seed != submission.expected_seed:
        yield f"the seed is {submission.seed}, but what is submitted gives {submission.expected_seed}"


def verify(suite: Suite, submission: Submission, count: int, place: Path, pool: WorkerPool, seed: int) -> list[Checked]:
    """Run so many replications of tests again, drawn at random.

    Args:
        place: an empty directory for them.
        seed: of the draw.
    """
    jobs = [
        (scenario, label, replication)
        for scenario, tests in submission.tests.items()
        for label, test in tests.items()
        for replication in range(len(test.fingerprints))
        if label in REFERENCES or label in Registry.installed().algorithms
    ]
    drawn = sorted(random.Random(seed).sample(jobs, min(count, len(jobs))))
    found = []
    for scenario, label, replication in drawn:
        test = submission.tests[scenario][label]
        study = replace(
            test_study(suite, scenario, {label: test}, submission.size, submission.seed), numbers=(replication,)
        )
        where = place / f"{scenario}-{label}-{replication}"
        where.mkdir()
        drive(study, SweepDirectory(where, place / JOBS), workers=pool)
        (_, records), *_ = records_of(study, ResultCache(place / JOBS))
        again = records[0]["fingerprint"] if records else ""
        if records and not _alike(suite, scenario, test, replication, records[0]):
            again = f"{again}, with other numbers"
        found.append(Checked(scenario, label, replication, test.fingerprints[replication], again))
    return found


def _alike(suite: Suite, scenario: str, test: Outcome, replication: int, record: dict[str, object]) -> bool:
    """Whether the numbers in the file are those of the replication, to rounding."""
    values = measured(suite.world(scenario), [record])
    return all(np.isclose(test.values[key][replication], found[0], rtol=1e-9) for key, found in values.items())
