"""The scenarios that are installed with coband, found by name, such as ``quickstart`` or ``duets/h1_quick``."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

SUFFIX = ".yaml"
FOLDER = Path(__file__).resolve().parents[3] / "scenarios"  # beside `simulator`, installed or not
CLAIMS = "claims"
"""The folder of what papers claim, which are no scenarios."""
SUITES, SUITE = "suite", "suite.yaml"
"""The folder of suites, and the name of the file in each that says how its scenarios are used, which is none."""
DATA_KEYS = (("problem", "data", "name"), ("network", "topology", "file"))
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # all files in a twentieth of a second instead of one


@dataclass(frozen=True)
class ShippedScenario:
    """A scenario that is installed with coband.

    Attributes:
        name: path in the folder of scenarios, without ``.yaml``.
        header: the lines of the comment at its top: its subject, source and sizes.
        data: the dataset or file that it reads and that coband does not include; None if it needs none.
    """

    name: str
    path: Path
    header: tuple[str, ...]
    data: str | None

    @property
    def summary(self) -> str:
        """The first line of the header."""
        return self.header[0] if self.header else ""


@cache
def paths() -> MappingProxyType[str, Path]:
    """The file of every shipped scenario, by name, in alphabetical order."""
    found = {path.relative_to(FOLDER).with_suffix("").as_posix(): path for path in FOLDER.rglob(f"*{SUFFIX}")}
    scenarios = {name: path for name, path in found.items() if not name.startswith(f"{CLAIMS}/") and path.name != SUITE}
    return MappingProxyType(dict(sorted(scenarios.items())))


def located(path: Path) -> Path:
    """The file of a scenario: an existing file, else the shipped scenario of that name, else ``path`` itself."""
    return path if os.path.isfile(path) else paths().get(path.as_posix(), path)


def is_shipped(path: Path) -> bool:
    """Whether ``path`` is the name of a shipped scenario and not an existing file."""
    return located(path) is not path


def similar(path: Path) -> list[str]:
    """The names of shipped scenarios that are most similar to a path; folder and ``.yaml`` are optional."""
    wanted = path.as_posix().removesuffix(SUFFIX).removeprefix("scenarios/")
    same = [name for name in paths() if name == wanted or name.endswith(f"/{wanted}")]
    ends = {name.rpartition("/")[2]: name for name in reversed(paths())}
    near = difflib.get_close_matches(wanted, paths()) or map(ends.__getitem__, difflib.get_close_matches(wanted, ends))
    return same or list(near)


def shipped_scenario(name: str) -> ShippedScenario:
    """The shipped scenario with this name.

    Raises:
        KeyError: there is no such scenario.
    """
    path = paths()[name]
    text = path.read_text(encoding="utf-8")
    return ShippedScenario(name, path, tuple(_header(text)), _data(yaml.load(text, LOADER)))


def shipped_scenarios() -> list[ShippedScenario]:
    """All shipped scenarios, in the order of their names."""
    return [shipped_scenario(name) for name in paths()]


def _header(text: str) -> Iterator[str]:
    """Yield the lines of the comment at the top of a file."""
    for line in text.splitlines():
        if not line.startswith("#"):
            return
        yield line.removeprefix("#").removeprefix(" ").rstrip()


def _data(document: Mapping[str, Any]) -> str | None:
    for *sections, key in DATA_KEYS:
        part = document
        for section in sections:
            part = part.get(section) or {}
        if key in part:
            from coband.simulator.problems.graph_datasets import graph_of  # names alone need no numpy

            graph = graph_of(str(part[key]))
            return str(part[key]) if graph is None else graph.name
    return None
