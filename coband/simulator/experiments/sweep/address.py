"""The address of a job: a digest of everything that determines its result, so that it never runs twice."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from coband.simulator.core.metrics import METRICS
from coband.simulator.experiments.registry.registry import CLASSES, has_field
from coband.simulator.experiments.runs.code_version import code_version, file_sha256, sha256
from coband.simulator.experiments.scenario.files import is_file_key
from coband.simulator.experiments.scenario.scenario import Scenario, ScenarioEntry
from coband.simulator.experiments.sweep.foreign_code import ForeignCode
from coband.simulator.problems.data_error import DataError

WORLD = ("agents", "server", "schedule", "network", "problem", "checks", "share")
"""The sections of a scenario that results depend on, beside the algorithm's own."""
ON_THE_WIRE = ("messages", "adversaries")
"""Further ones that count where they say anything."""
LONGEST_NAME = 1000
"""Longer texts in a scenario are not looked up as names of files."""


def _modules(scenario: Scenario, entry: ScenarioEntry) -> Iterator[str]:
    """The modules whose code a run of an entry executes, but for kinds: its algorithm, its server, the problem, and
    metrics of other packages."""
    yield from (*entry.algorithm.modules, type(entry.config).__module__, type(scenario.problem).__module__)
    yield from (metric.of.__module__ for metric in METRICS.known().values())


def _kinds(part: Any) -> Iterator[str]:
    """The modules of the kinds that a section names, and of functions of the user's."""
    if isinstance(part, list):
        for item in part:
            yield from _kinds(item)
    elif isinstance(part, dict):
        if "kind" in part:
            named = [one.get(part["kind"]) for one in CLASSES]
            yield from (found.__module__ for found in named if found is not None)
            if "function" in part and has_field(part["kind"], "function"):
                yield str(part["function"]).rpartition(":")[0]
        for value in part.values():
            yield from _kinds(value)


class Files:
    """Digests of the files that scenarios name, and of the code of others; each file is read once.

    Args:
        base: of relative names.
        scenario: the file that is read, if it is one.

    Attributes:
        code: of plugins and of the user's.
        missing: the first data set that was not found, if any; its jobs cannot run.
    """

    def __init__(self, base: Path | None = None, scenario: Path | None = None) -> None:
        self.code = ForeignCode(scenario)
        self._bases = [Path.cwd(), *([] if base is None else [base])]
        self._known: dict[Path, str] = {}
        self.missing: DataError | None = None

    def digest(self, file: Path) -> str:
        """Digest of a file's content.

        Raises:
            OSError: it cannot be read.
        """
        if file not in self._known:
            self._known[file] = file_sha256(file)
        return self._known[file]

    def named(self, value: Any) -> Iterator[Path]:
        """The file whose name a value of a scenario is, if it is one, from where the scenario or the user stands."""
        if not isinstance(value, str) or not value or len(value) > LONGEST_NAME or "\n" in value or "\0" in value:
            return
        for base in self._bases:
            try:
                file = base / Path(value).expanduser()
                found = file.is_file()
            except (OSError, RuntimeError):  # a name too long, or a home directory that nobody has
                return
            if found:
                yield file
                return


def configuration_digest(scenario: Scenario, files: Files) -> dict[str, str]:
    """Label -> digest of all that determines the results of that entry, but for the replication and the code.

    Files count by their content, wherever they are.
    """
    sections = {name: _dumped(getattr(scenario, name)) for name in WORLD}
    sections |= {name: said for name, said in scenario.resolved().items() if name in ON_THE_WIRE}
    if scenario.server.aggregate.sums:
        del sections["server"]["aggregate"]
    content = _data_set(scenario, files)
    if content:
        sections["problem"]["data"]["path"] = content
    world = sha256(str(scenario.seed), *(_canonical(section, files) for section in sections.values()))
    kinds = list(_kinds(list(sections.values())))
    return {entry.label: _entry_digest(world, kinds, scenario, entry, files) for entry in scenario.algorithms}


def _entry_digest(world: str, kinds: Sequence[str], scenario: Scenario, entry: ScenarioEntry, files: Files) -> str:
    config = _dumped(entry.config)
    modules = [*_modules(scenario, entry), *kinds, *_kinds(config)]
    return sha256(world, entry.algorithm.name, entry.ties, files.code.digest(modules), _canonical(config, files))


def address(digest: str, replication: int) -> str:
    """The address of one job: a digest of its configuration, its replication and the code."""
    return sha256(digest, str(replication), code_version())


def _dumped(part: Any) -> Any:
    return part.model_dump(mode="json") if isinstance(part, BaseModel) else part


def _canonical(part: Any, files: Files) -> str:
    return json.dumps(_with_content(part, files), sort_keys=True)


def _with_content(part: Any, files: Files) -> Any:
    """The part with the digests of files in the place of their names."""
    if isinstance(part, list):
        return [_with_content(item, files) for item in part]
    if not isinstance(part, dict):
        return part
    found = {key: _with_content(value, files) for key, value in part.items()}
    for key, value in part.items():
        for file in files.named(value):
            found[key] = files.digest(file) if key == "path" or is_file_key(key) else [value, files.digest(file)]
    return found


def _files_of(name: str, path: Path | None, base: Path) -> list[Path]:
    from coband.simulator.problems import datasets  # few scenarios have data
    from coband.simulator.problems.ratings import RATINGS

    rated = RATINGS.get(name)
    if rated is not None:
        return [datasets.locate(rated, path, base)]
    dataset = datasets.find(name)
    return datasets.files_of(dataset, datasets.locate(dataset, path, base))


def _data_set(scenario: Scenario, files: Files) -> str | None:
    """Digest of the data set that the problem is made from, if it is and its files are there."""
    data = getattr(scenario.problem, "data", None)
    name, path = getattr(data, "name", None), getattr(data, "path", None)
    if not isinstance(name, str):
        return None
    try:
        return sha256(*map(files.digest, _files_of(name, path, scenario.base)))
    except DataError as error:
        files.missing = files.missing or error
        return None
