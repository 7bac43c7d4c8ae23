"""A pytest plugin: scenario files with an ``expect:`` section, and counts locks, as tests.

It does nothing until the option ``coband_scenarios`` names files. In pyproject.toml:

    [tool.pytest.ini_options]
    coband_scenarios = ["scenarios/*.yaml", "counts.lock.json"]

A scenario gives one test for each of its expectations (it runs once), a lock file (*.json) one for each of its
scenarios.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

OPTION = "coband_scenarios"


class Differs(Exception):
    """A count is not what it should be; the text is all that is worth showing."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that names the files; without it nothing is collected."""
    parser.addini(
        OPTION,
        "glob patterns, from the root directory, of coband scenarios and counts locks that are tests",
        type="linelist",
        default=[],
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a pattern that no file matches, behind which a check would be missing.

    Raises:
        UsageError: there is one.
    """
    root = config.rootpath
    for pattern in config.getini(OPTION):
        found = chain(root.glob(pattern), root.rglob(pattern)) if not Path(pattern).is_absolute() else (Path(pattern),)
        if not any(file.is_file() for file in found):
            raise pytest.UsageError(f"{OPTION}: there is no file {pattern!r} below {root}")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Take the files that the option names."""
    root, patterns = parent.config.rootpath, parent.config.getini(OPTION)
    if not patterns or not file_path.is_relative_to(root):
        return None
    if not any(file_path.relative_to(root).match(pattern) for pattern in patterns):
        return None
    kind = LockFile if file_path.suffix == ".json" else ScenarioFile
    collector: pytest.Collector = kind.from_parent(parent, path=file_path)
    return collector


class _Readable:
    """Shows messages of coband as they are, without a traceback."""

    def repr_failure(self, info: Any, style: Any = None) -> Any:
        """The message, where the error is one of the user's input or a count that differs."""
        from coband.simulator.experiments.scenario.loading import BAD_INPUT
        from coband.simulator.scenario_errors import RequestError

        if isinstance(info.value, (Differs, RequestError, *BAD_INPUT)):
            return str(info.value)
        return super().repr_failure(info)  # type: ignore[misc]

    def reportinfo(self: Any) -> tuple[Path, None, str]:
        return self.path, None, self.name


class Counts(_Readable, pytest.Item):
    """Counts that should be what they were; ``differences`` says what of them is not."""

    def __init__(self, *, differences: Callable[[], list[str]], **keywords: Any) -> None:
        super().__init__(**keywords)
        self._differences = differences

    def runtest(self) -> None:
        if wrong := self._differences():
            raise Differs("\n".join(wrong))


class ScenarioFile(_Readable, pytest.File):
    """A scenario, which runs when its first expectation is tested."""

    def collect(self) -> Iterable[pytest.Item]:
        """One test for each label and count of ``expect:``; none without such a section."""
        for label, count in dict.fromkeys((item.label, item.count) for item in self.scenario.expect):
            differences = partial(self._differences, label, count)
            yield Counts.from_parent(self, name=f"{label}: {count}", differences=differences)

    @cached_property
    def study(self) -> Any:
        """The validated scenario, as what there is to run."""
        from coband.simulator.experiments.runs.study import load_run

        return load_run(self.path)

    @property
    def scenario(self) -> Any:
        return self.study.variants[0].scenario

    @cached_property
    def comparisons(self) -> list[Any]:
        """Every expectation, compared with a run of all replications."""
        from coband.simulator.experiments.runs import expectations
        from coband.simulator.experiments.runs.driver import drive
        from coband.simulator.experiments.runs.reporting import Commands
        from coband.simulator.experiments.store import directory
        from coband.simulator.experiments.store.store import open_run

        expectations.require(self.scenario, replications=self.study.possible_replications)
        commands = Commands(replay=["coband", "run", str(self.path)], given=["pytest"])
        with tempfile.TemporaryDirectory(prefix="coband-pytest-") as scratch:
            report = drive(self.study, directory.create(self.study.name, Path(scratch) / "run"), commands=commands)
            if report.interrupted:
                raise KeyboardInterrupt
            if report.failures:
                failure = report.failures[0]
                raise Differs(f"{failure.label}, replication {failure.replication}: {failure.kind}\n{failure.error}")
            with open_run(report.directory) as run:
                return expectations.compare(self.scenario, report.object, self.study.until is not None, run.series)

    def _differences(self, label: str, count: str) -> list[str]:
        wrong = [
            f"replication {item.replication}: {item.expected} expected, got {item.got}"
            for item in self.comparisons
            if (item.label, item.count) == (label, count) and not item.holds
        ]
        return [f"{label}: {count}", *wrong] if wrong else []


class LockFile(_Readable, pytest.File):
    """A counts lock."""

    def collect(self) -> Iterable[pytest.Item]:
        """One test for each scenario."""
        from coband.simulator.analysis.counts.counting import LockFile as Locked

        lock = Locked(self.path)
        for name in lock.locked(()):
            yield Counts.from_parent(self, name=name, differences=partial(_differences, lock, name))


def _differences(lock: Any, name: str) -> list[str]:
    from coband.simulator.analysis.counts import counting

    file = lock.scenario(name)
    wrong = [
        f"{change.label}: {change.count or 'the label'}: {change.locked} on file, now {change.found}"
        for change in counting.changes(lock.counts[name], counting.count(file))
    ]
    other = [lock.other_hardware(name) or ""]
    return [*filter(None, other), *wrong, f"if that is meant: {lock.update([file])}"] if wrong else []
