"""The address of a job: a digest of everything that determines its result, so that it never runs twice."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from coband.simulator.core.algorithm import Algorithm
from coband.simulator.experiments.runs.code_version import code_version, sha256
from coband.simulator.experiments.scenario.scenario import Scenario, ScenarioEntry
from coband.simulator.maths.kernels import registry as kernel_registry
from coband.simulator.problems import datasets
from coband.simulator.problems.rewards import rewards

WORLD = ("agents", "server", "schedule", "network", "problem", "checks", "share")
"""The sections of a scenario that results depend on, beside the algorithm's own."""


@lru_cache(maxsize=64)
def _plugin_version(algorithm: Algorithm) -> str:
    """Digest of the modules of an algorithm from another package; ours are part of `code_version`."""
    return _foreign_code(algorithm.agent, algorithm.config)


def _foreign_code(*classes: type) -> str:
    """Digest of the modules of classes from other packages."""
    modules = {inspect.getmodule(part) for part in classes}
    foreign = [module for module in modules if module is not None and module.__name__.split(".")[0] != "coband"]
    files = sorted({str(module.__file__) for module in foreign if module.__file__})
    return sha256(*(Path(file).read_bytes() for file in files))


def _foreign_kinds(part: Any) -> Iterator[type]:
    """The kernels and rewards of other packages that a section names."""
    if isinstance(part, list):
        for item in part:
            yield from _foreign_kinds(item)
    elif isinstance(part, dict):
        for known in (kernel_registry.kernels(), rewards()):
            named = known.get(str(part.get("kind")))
            if named is not None and named.__module__.split(".")[0] != "coband":
                yield named
        for value in part.values():
            yield from _foreign_kinds(value)


class Files:
    """Digests of the files that scenarios name; each file is read once.

    Attributes:
        missing: the first data set that was not found, if any; its jobs cannot run.
    """

    def __init__(self) -> None:
        self._known: dict[Path, str] = {}
        self.missing: datasets.DataError | None = None

    def digest(self, file: Path) -> str:
        """Digest of a file's content.

        Raises:
            OSError: it cannot be read.
        """
        if file not in self._known:
            with file.open("rb") as stream:
                self._known[file] = hashlib.file_digest(stream, "sha256").hexdigest()
        return self._known[file]


def configuration_digest(scenario: Scenario, files: Files) -> dict[str, str]:
    """Label -> digest of all that determines the results of that entry, but for the replication and the code.

    Files count by their content, wherever they are.
    """
    sections = {name: _dumped(getattr(scenario, name)) for name in WORLD}
    content = _data_set(scenario, files)
    if content:
        sections["problem"]["data"]["path"] = content
    world = sha256(str(scenario.seed), *(_canonical(section, files) for section in sections.values()))
    return {entry.label: _entry_digest(world, sections, entry, files) for entry in scenario.algorithms}


def _entry_digest(world: str, sections: dict[str, Any], entry: ScenarioEntry, files: Files) -> str:
    config = _dumped(entry.config)
    kinds = tuple(_foreign_kinds([*sections.values(), config]))
    code = (_foreign_code(*kinds),) if kinds else ()
    version = _plugin_version(entry.algorithm)
    return sha256(world, entry.algorithm.name, entry.ties, version, _canonical(config, files), *code)


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
    file = part.get("file")
    if isinstance(file, str) and Path(file).expanduser().is_file():
        found["file"] = files.digest(Path(file).expanduser())
    return found


def _data_set(scenario: Scenario, files: Files) -> str | None:
    """Digest of the data set that the problem is made from, if it is and its files are there."""
    data = getattr(scenario.problem, "data", None)
    name, path = getattr(data, "name", None), getattr(data, "path", None)
    if not isinstance(name, str):
        return None
    try:
        dataset = datasets.find(name)
        return sha256(*map(files.digest, datasets.files_of(dataset, datasets.locate(dataset, path, scenario.base))))
    except datasets.DataError as error:
        files.missing = files.missing or error
        return None
