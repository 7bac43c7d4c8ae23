"""A submission: algorithms that are tuned on public seeds, then tested on seeds that follow from what is submitted."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from coband.extending import (
    FIRST_REPLICATION,
    Commands,
    ForeignCode,
    Listener,
    Record,
    Registry,
    Report,
    RequestError,
    ResultCache,
    RunDirectory,
    Study,
    address,
    code_version,
    drive,
    executor,
    files,
    footing,
)
from coband.extensions.evidence.suite.suites import CHECKED, REFERENCES, Settings, Size, Suite, World, is_own, point_of

MEASURED = ("bits", "scalars", "simulated_time")
"""What is kept of every test in addition to the metric that is compared."""
HONEST = "honest_regret_per_agent"
"""Compared instead of everybody's regret where some are not honest."""
JOBS = "jobs"
VERSION = metadata.version("coband")


class SubmissionError(RequestError):
    """A submission cannot be read, or is none of this suite."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class Candidate(_Part):
    """Settings that were tried on the tuning seeds.

    Attributes:
        mean: of what is compared; None if it broke off.
        pulls: mean number of pulls; None if it broke off, and in files of earlier versions.
    """

    settings: dict[str, Any]
    mean: float | None
    pulls: float | None = None
    fingerprints: list[str]

    @classmethod
    def of(cls, world: World, settings: dict[str, Any], records: Sequence[Record], count: int) -> Candidate:
        """What came out of so many replications, of which some may have broken off."""
        found = cls(settings=settings, mean=None, fingerprints=[one["fingerprint"] for one in records])
        if len(records) == count:
            found.mean = float(np.mean([_value(world, one) for one in records]))
            found.pulls = float(np.mean([one["turns"] for one in records]))
        return found


def eligible(world: World, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Those that tuning may choose (`runs.footing.choosable`, on the means that are kept)."""
    means = [{"replication": 0, "mean": one.mean, "turns": one.pulls} for one in candidates]
    sides = {number: footing.Label([one]) for number, one in enumerate(means)}
    return [candidates[number] for number in footing.choosable("mean", sides, lambda: world.error is not None)]


class Outcome(_Part):
    """One algorithm in one scenario.

    Attributes:
        chosen: the settings with the best mean in tuning, of those that were eligible.
        candidates: all that were tried.
        values: metric -> one number per replication of the test.
        fingerprints: of these replications.
        failure: why there are no values; empty if there are.
    """

    chosen: dict[str, Any] = {}
    candidates: list[Candidate] = []
    values: dict[str, list[float]] = {}
    fingerprints: list[str] = []
    failure: str = ""

    @property
    def tuned(self) -> tuple[str, ...]:
        """The parameters that had several values in tuning."""
        return tuple(sorted({key for one in self.candidates for key in one.settings}))


class Submission(_Part):
    """A results file.

    Attributes:
        suite, sha256, size: what it was run on.
        coband: version and digest of the code.
        algorithms: name -> what it comes from: ``coband``, or the distribution and its version, and a digest.
        knows: name -> what it is told beside arms and rewards.
        seed: of the test; the first 32 bits of a digest of all above and of what tuning chose.
        tests: scenario -> label -> what came out, with the references; of some scenarios or all.
        unfit: scenario -> algorithm -> why it does not fit.
    """

    suite: str
    sha256: str
    size: Size
    coband: str
    algorithms: dict[str, str]
    knows: dict[str, list[str]]
    seed: int
    tests: dict[str, dict[str, Outcome]]
    unfit: dict[str, dict[str, str]]

    @property
    def expected_seed(self) -> int:
        """The seed that follows from what is submitted."""
        chosen = {one: {label: test.chosen for label, test in found.items()} for one, found in self.tests.items()}
        parts = [
            self.sha256,
            self.size,
            self.coband,
            *(json.dumps(one, sort_keys=True) for one in (self.algorithms, chosen)),
        ]
        return int(code_version.sha256(*parts)[:8], 16)

    def write(self, file: Path) -> None:
        """Write the results file, whole or not at all."""
        file.parent.mkdir(parents=True, exist_ok=True)
        files.replace_bytes(file, (self.model_dump_json(indent=1) + "\n").encode())

    def gap(self, suite: Suite) -> str:
        """What is missing or too much, and no run of the suite writes; empty where nothing is."""
        for scenario, tests in self.tests.items():
            if scenario not in suite.definition.scenarios:
                return f"{suite.name} has no scenario {scenario!r}"
            wanted = [*REFERENCES, *self.algorithms]
            if sorted([*tests, *self.unfit.get(scenario, {})]) != sorted(wanted):
                return f"{scenario} does not have {', '.join(wanted)}, once each and nothing else"
            world = suite.world(scenario)
            metrics = sorted({world.metric, *MEASURED, *map(str, (world.error or ())[:1])})
            for label, test in tests.items():
                counts = {len(test.fingerprints), *(len(test.values.get(one, ())) for one in metrics)}
                if not test.failure and (len(counts) > 1 or 0 in counts):
                    return f"{scenario}, {label}: there are not as many {', '.join(metrics)} as fingerprints"
        return "" if self.tests else "it has no scenario"


def read(file: Path) -> Submission:
    """A results file.

    Raises:
        SubmissionError: it cannot be read.
    """
    try:
        return Submission.model_validate_json(file.read_bytes())
    except OSError as error:
        why = error.strerror
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        why = ": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"])))
    raise SubmissionError(f"{file} is not a results file of `coband suite run`: {why}")


@dataclass
class Runner:
    """Runs one submission.

    Args:
        found: the suite.
        names: the algorithms.
        scenarios: those of the suite in which they are compared.
        place: where finished jobs are kept; what is finished there does not run again.
        pool: who runs jobs.
        listener: makes something that follows a study, by its name.
    """

    found: Suite
    names: Sequence[str]
    scenarios: Sequence[str]
    size: Size
    place: Path
    pool: executor.JobExecutor
    listener: Callable[[str], Listener] | None = None

    def run(self) -> Submission:
        """Tune, fix the seeds, and test.

        Raises:
            SuiteError: the suite's files are not what was frozen, or a scenario cannot run here.
            KeyboardInterrupt: somebody has stopped it; what is finished is kept.
        """
        self.found.check()
        self.found.can_run(self.scenarios, self.size)
        algorithms = Registry.installed().algorithms
        unfit: dict[str, dict[str, str]] = {name: {} for name in self.scenarios}
        for scenario, name in product(self.scenarios, self.names):
            if why := self.found.why_not(scenario, algorithms[name], self.size):
                unfit[scenario][name] = why
        tests = {
            scenario: self._tuned(scenario, [n for n in self.names if n not in unfit[scenario]]) for scenario in unfit
        }
        submission = self._submission(tests, unfit)
        for scenario, entries in tests.items():
            self._test(scenario, entries, submission.seed)
        return submission

    def _submission(self, tests: dict[str, dict[str, Outcome]], unfit: dict[str, dict[str, str]]) -> Submission:
        algorithms = Registry.installed().algorithms
        found = Submission(
            suite=self.found.name,
            sha256=self.found.digest,
            size=self.size,
            coband=code_here(),
            algorithms={name: origin_of(name) for name in self.names},
            knows={name: sorted(algorithms[name].facts) for name in self.names},
            seed=0,
            tests=tests,
            unfit=unfit,
        )
        return found.model_copy(update={"seed": found.expected_seed})

    def _tuned(self, scenario: str, names: Sequence[str]) -> dict[str, Outcome]:
        """Every algorithm and both references, tuned with the same budget on the public seeds."""
        world, registry = self.found.world(scenario), Registry.installed()
        entries = {label: world.entry(label) for label in (*REFERENCES, *names)}
        tests = {label: Outcome() for label in entries}
        for label, why in self._refused(scenario, entries).items():
            tests[label].failure = why
        tried: dict[str, tuple[str, dict[str, Any]]] = {}
        for label in (one for one, test in tests.items() if not test.failure):
            algorithm = registry.algorithms[entries[label]["algorithm"]]
            for number, settings in enumerate(self.found.candidates(scenario, algorithm, self.size)):
                tried[f"{label}#{number}"] = label, settings
        study = tuning_study(self.found, scenario, tried, self.size)
        records, failures = self._records(study)
        for variant in study.variants:
            label, settings = tried[variant.entry]
            candidate = Candidate.of(world, settings, records[variant.number], study.replications)
            tests[label].candidates.append(candidate)
        for label, test in tests.items():
            if found := eligible(world, test.candidates):
                test.chosen = min(found, key=lambda one: one.mean or 0.0).settings
            elif not test.failure:
                test.failure = next((why for key, why in failures.items() if key.startswith(f"{label}#")), "broke off")
        return tests

    def _refused(self, scenario: str, entries: Mapping[str, Settings]) -> dict[str, str]:
        """Why entries break off with their default settings and all checks, by label.

        The checks find nodes that read what their algorithm does not declare (`Algorithm.knows`).
        """
        _, failures = self._records(checked_study(self.found, scenario, entries, self.size))
        return {label.removesuffix("#checked"): why for label, why in failures.items()}

    def _test(self, scenario: str, entries: Mapping[str, Outcome], seed: int) -> None:
        world = self.found.world(scenario)
        alive = {label: test for label, test in entries.items() if not test.failure}
        study = test_study(self.found, scenario, alive, self.size, seed)
        records, failures = self._records(study)
        for variant in study.variants:
            test, found = alive[variant.entry], records[variant.number]
            if len(found) < study.replications:
                test.failure = failures.get(variant.entry, "a replication broke off")
                continue
            test.values, test.fingerprints = measured(world, found), [one["fingerprint"] for one in found]
        self._leave_out_waiting(
            [(alive[one.entry], footing.Label(records[one.number])) for one in study.variants], study
        )

    @staticmethod
    def _leave_out_waiting(tests: Sequence[tuple[Outcome, footing.Label]], study: Study) -> None:
        """Take no numbers of those that make fewer pulls than others: they have done less."""
        whole = [(test, side) for test, side in tests if test.values]
        problem = study.variants[0].scenario.problem
        pulls = footing.footing("turns", [side for _, side in whole], lambda: footing.stops_itself(problem)).pulls
        for (test, _), made in zip(whole, pulls, strict=False):
            if made < footing.BEHIND * max(pulls):
                test.values, test.fingerprints = {}, []
                test.failure = f"its agents wait: {made:,.0f} pulls where others make {max(pulls):,.0f}"

    def _records(self, study: Study) -> tuple[dict[int, list[Record]], dict[str, str]]:
        """Run a study; the records of each variant, and why jobs broke off, by label."""
        where = self.place / study.name
        with files.writing_to(where, "Choose another place with --out DIR."):
            where.mkdir(parents=True, exist_ok=True)
        listener = None if self.listener is None else self.listener(study.name)
        report = driven(study, RunDirectory(where, resume=True, done=self.place / JOBS), self.pool, listener)
        failures = {one.label: one.gist for one in report.failures}
        return dict(records_of(study, ResultCache(self.place / JOBS))), failures


def checked_study(found: Suite, scenario: str, entries: Mapping[str, Settings], size: Size) -> Study:
    """A replication of each entry with its default settings and all checks, by keys LABEL#checked."""
    defaults = {f"{label}#checked": {**entry} for label, entry in entries.items()}
    study = found.study(scenario, defaults, size=size, first=FIRST_REPLICATION, count=1, settings=(CHECKED,))
    return replace(study, name=f"{study.name}-checked")


def tuning_study(found: Suite, scenario: str, tried: Mapping[str, tuple[str, Settings]], size: Size) -> Study:
    """Settings that are tried on the public seeds, by keys LABEL#NUMBER: (label, settings)."""
    world = found.world(scenario)
    entries = {key: {**world.entry(label), **settings} for key, (label, settings) in tried.items()}
    count = found.definition.sizes[size].tuning
    study = found.study(scenario, entries, size=size, first=FIRST_REPLICATION, count=count)
    return replace(study, name=f"{study.name}-tuning")


def test_study(found: Suite, scenario: str, entries: Mapping[str, Outcome], size: Size, seed: int) -> Study:
    """The test of some algorithms and references with the settings that tuning chose."""
    world = found.world(scenario)
    settings = {label: {**world.entry(label), **one.chosen} for label, one in entries.items()}
    return found.study(scenario, settings, size=size, seed=seed)


def driven(study: Study, place: RunDirectory, pool: executor.JobExecutor, listener: Listener | None = None) -> Report:
    """Run a study to its end.

    Raises:
        KeyboardInterrupt: somebody has stopped it.
        SubmissionError: it had to stop, as on a full disk; what has not run has not broken off.
    """
    commands = Commands(["coband", "run", str(place.path / files.SCENARIO)])
    report = drive(study, place, workers=pool, commands=commands, listener=listener)
    if report.interrupted:
        raise KeyboardInterrupt
    if report.status.state == "stopped":
        raise SubmissionError(
            f"{study.name} had to stop: {report.status.message}; what is finished is kept, and the same command goes on"
        )
    return report


def records_of(study: Study, cache: ResultCache) -> Iterator[tuple[int, list[Record]]]:
    """(number of a variant, its finished records)."""
    for variant in study.variants:
        done = (cache.get(address(variant.digest, replication)) for replication in study.numbers)
        yield variant.number, [one.record for one in done if one is not None]


def measured(world: World, records: Sequence[Record]) -> dict[str, list[float]]:
    """Metric -> one number per replication."""
    values = {name: [float(one.get(name) or 0) for one in records] for name in MEASURED}
    if world.error is not None:
        values[world.error[0]] = [float(one[world.error[0]]) for one in records]
    return {world.metric: [_value(world, one) for one in records], **values}


def _value(world: World, record: Record) -> float:
    """What is compared; of honest agents where some are not."""
    value = record.get(HONEST) if world.metric == "regret_per_agent" else None
    return float(record[world.metric] if value is None else value)


def code_here() -> str:
    """Version and digest of the coband that runs."""
    return f"{VERSION} {code_version.source_digest()}"


def origin_of(name: str) -> str:
    """What an algorithm comes from: coband and its version, or a distribution with a digest of its code.

    Libraries that it uses do not count.
    """
    if is_own(name):
        return f"coband {VERSION}"
    algorithm, point = Registry.installed().algorithms[name], point_of(name)
    offered = algorithm.agent.__module__ if point is None else point.module
    package = None if point is None else point.dist
    origin = offered.partition(".")[0] if package is None else f"{package.name} {package.version}"
    return f"{origin} {ForeignCode().digest([offered, *algorithm.modules])[:16]}"
