"""What scenarios send, in numbers that a file can hold and a later run must repeat: the counts lock.

Counts are those of the first replication. They follow from scenario and seed alone, so that one of them changes only
when an algorithm, or what surrounds it, sends something else.
"""

from __future__ import annotations

import json
import os
import shlex
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from coband.simulator.experiments.runs.code_version import explained, hardware
from coband.simulator.experiments.runs.driver import drive
from coband.simulator.experiments.runs.planner import Variant
from coband.simulator.experiments.runs.reporting import Commands, Listener
from coband.simulator.experiments.runs.results import Failure, Record
from coband.simulator.experiments.runs.study import Study, study_of
from coband.simulator.experiments.scenario.files import is_shipped
from coband.simulator.experiments.scenario.loading import load
from coband.simulator.experiments.scenario.scenario import Scenario
from coband.simulator.experiments.store import directory, files
from coband.simulator.experiments.sweep.study import load_study
from coband.simulator.scenario_errors import RequestError

HARDWARE = "$hardware"
"""The key of a lock file below which each scenario has what its counts were computed with."""
Counts = dict[str, dict[str, int | float | None]]
"""By label, by name of the count."""


class CountsError(RequestError):
    """A lock file that cannot be used, or a scenario that did not finish; the text says what to do."""


@dataclass(frozen=True)
class Change:
    """A count that is not what the file says; None where there is none.

    Attributes:
        count: its name; empty when the whole label is new or gone.
    """

    label: str
    count: str
    locked: Any
    found: Any


def count(file: Path, settings: Sequence[str] = (), workers: int = 1, listener: Listener | None = None) -> Counts:
    """Run a scenario's first replication without a trace and count; of a grid, the first and the last variant of each
    algorithm.

    Raises:
        CountsError: a label broke off.
        DataError, UnsupportedScenario: a data set or a package is not there.
        ScenarioError: the scenario is not valid.
    """
    study = load_study(file, settings)
    if not any(variant.settings for variant in study.variants):
        return _run(load(file, settings), file, workers, listener)
    if (lacking := study.lacking) is not None:
        raise lacking
    found = [(variant.label, _run(variant.scenario, file, workers, listener)) for variant in ends(study)]
    return {label: counts for label, runs in found for counts in runs.values()}


def ends(study: Study) -> list[Variant]:
    """The first and the last variant of each algorithm of a grid."""
    by_entry = [[variant for variant in study.variants if variant.entry == entry] for entry in study.entries]
    return [variant for variants in by_entry for variant in (variants[0], *variants[1:][-1:])]


def _run(scenario: Scenario, file: Path, workers: int, listener: Listener | None) -> Counts:
    study = study_of(replace(scenario, trace="off"), replications=(0,))
    commands = Commands(replay=["coband", "run", str(file)], given=["coband", "counts"])
    with tempfile.TemporaryDirectory(prefix="coband-counts-") as scratch:
        place = directory.create(scenario.name, Path(scratch) / "run")
        report = drive(study, place, workers=workers, commands=commands, listener=listener)
    if report.interrupted:
        raise KeyboardInterrupt
    if report.failures:
        raise CountsError(f"{file}: {_broken(report.failures[0])}")
    names = [name for name, metric in scenario.metrics.items() if metric.locked]
    return {entry["label"]: counts_of(entry["replications"][0], names) for entry in report.object["results"]}


def _broken(failure: Failure) -> str:
    return f"{failure.label} broke off ({failure.gist}), so there is nothing to count; to see why: {failure.replay}"


def counts_of(record: Record, names: Iterable[str]) -> dict[str, Any]:
    """The counts of one finished job: those of the metrics ``names`` that it has."""
    return {name: record[name] for name in names if record.get(name) is not None}


def changes(locked: Counts, found: Counts) -> list[Change]:
    """Where the counts of a scenario differ from those on file, label by label."""
    return [change for label in {**locked, **found} for change in _changes(label, locked.get(label), found.get(label))]


def _changes(label: str, locked: Mapping[str, Any] | None, found: Mapping[str, Any] | None) -> Iterator[Change]:
    if locked is None or found is None:
        yield Change(label, "", locked, found)
        return
    for name in {**locked, **found}:
        if locked.get(name) != found.get(name):
            yield Change(label, name, locked.get(name), found.get(name))


class LockFile:
    """A file of counts: JSON, by scenario, label and name of the count.

    Attributes:
        counts: what it holds; scenarios by their path from ``base``.

    Args:
        base: what the scenarios' paths start from; None for the file's own directory.

    Raises:
        CountsError: the file is there, but it is not a lock file.
    """

    def __init__(self, path: Path, base: Path | None = None) -> None:
        self.path, self._base = path, (path.parent if base is None else base).absolute()
        self.counts, self._hardware = _read(path)

    def put(self, name: str, counts: Counts) -> None:
        """Replace the counts of a scenario by what this process has counted; others are what the file has by now."""
        self.counts, self._hardware = _read(self.path)
        self.counts[name], self._hardware[name] = counts, hardware()

    def other_hardware(self, name: str) -> str | None:
        """What the counts of a scenario on file were computed with, in a sentence, if that was something else."""
        return explained(self._hardware.get(name), hardware(), (f"the counts of {name} on file", "those of this run"))

    def name(self, scenario: Path) -> str:
        """How the file calls a scenario; one that comes with coband goes by its own name."""
        if is_shipped(scenario):
            return scenario.as_posix()
        return Path(os.path.relpath(scenario.absolute(), self._base)).as_posix()

    def scenario(self, name: str) -> Path:
        """Where a scenario of that name is, from the working directory if it lies below."""
        found = Path(os.path.normpath(self._base / name))
        if not found.exists() and is_shipped(Path(name)):
            return Path(name)
        return found.relative_to(Path.cwd()) if found.is_relative_to(Path.cwd()) else found

    def locked(self, scenarios: Sequence[Path]) -> list[str]:
        """The names of scenarios that must be on file; all that are when none is given.

        Raises:
            CountsError: there is no file, or one of them is not on it.
        """
        if not self.path.exists():
            raise CountsError(f"there is no {self.path}; `coband counts FILE...` makes it.")
        names = [self.name(scenario) for scenario in scenarios] or list(self.counts)
        if not names:
            raise CountsError(
                f"{self.path} has no counts, so nothing would be checked; `coband counts FILE...` adds some."
            )
        missing = [name for name in names if name not in self.counts]
        if missing:
            raise CountsError(
                f"{self.path} has no counts of {missing[0]}; it has {', '.join(self.counts) or 'none'}. "
                "`coband counts FILE` adds it."
            )
        for name in names:
            if not (file := self.scenario(name)).exists() and not is_shipped(file):
                raise CountsError(
                    f"{self.path} has counts of {name}, and there is no such file. Bring it back, or delete its entry "
                    f"in {self.path}."
                )
        return names

    def update(self, scenarios: Iterable[Path], settings: Iterable[str] = ()) -> str:
        """The command that puts what is counted now on file."""
        changed = [word for setting in settings for word in ("--set", setting)]
        return shlex.join(["coband", "counts", "--update", "--file", str(self.path), *changed, *map(str, scenarios)])

    def write(self) -> None:
        """Replace the file, at once."""
        content = {
            **self.counts,
            HARDWARE: {name: self._hardware[name] for name in self.counts if name in self._hardware},
        }
        with files.writing_to(self.path, "Choose another place with --file."):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            files.replace_text(self.path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def _read(path: Path) -> tuple[dict[str, Counts], dict[str, dict[str, Any]]]:
    """Counts by scenario, and what they were computed with; both empty where there is no file."""
    if not path.exists():
        return {}, {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise CountsError(f"{path} is not JSON ({error}); is it a counts lock?") from error
    computed = found.pop(HARDWARE, {}) if isinstance(found, dict) else {}
    try:
        counts = TypeAdapter(dict[str, Counts]).validate_python(found)
        return counts, TypeAdapter(dict[str, dict[str, Any]]).validate_python(computed)
    except ValidationError:
        expected = "scenario, label and count, one inside the other, and numbers in them"
        raise CountsError(f"{path} is not a counts lock: {expected} are expected.") from None
