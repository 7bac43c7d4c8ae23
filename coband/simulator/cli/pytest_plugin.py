"""A pytest plugin: scenario files with an ``expect:`` section as tests.

It does nothing until the option ``coband_scenarios`` names files. In pyproject.toml:

    [tool.pytest.ini_options]
    coband_scenarios = ["scenarios/*.yaml"]

A scenario gives one test for each of its expectations; it runs once.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from functools import cached_property
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
        "glob patterns, from the root directory, of coband scenarios that are tests",
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
    collector: pytest.Collector = ScenarioFile.from_parent(parent, path=file_path)
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


class Count(_Readable, pytest.Item):
    """A count of a label."""

    def __init__(self, *, label: str, count: str, **keywords: Any) -> None:
        super().__init__(name=f"{label}: {count}", **keywords)
        self._label, self._count = label, count

    def runtest(self) -> None:
        wrong = [
            f"replication {item.replication}: {item.expected} expected, got {item.got}"
            for item in self.parent.comparisons  # type: ignore[union-attr]
            if (item.label, item.count) == (self._label, self._count) and not item.holds
        ]
        if wrong:
            raise Differs("\n".join([self.name, *wrong]))


class ScenarioFile(_Readable, pytest.File):
    """A scenario, which runs when its first expectation is tested."""

    def collect(self) -> Iterable[pytest.Item]:
        """One test for each label and count of ``expect:``; none without such a section."""
        for label, count in dict.fromkeys((item.label, item.count) for item in self.scenario.expect):
            yield Count.from_parent(self, label=label, count=count)

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
