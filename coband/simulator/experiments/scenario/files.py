"""Scenario files: reading them, resolving the file names in them, those that are installed with coband
(``quickstart``), and files that must lie beside a stored scenario.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import takewhile
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml
from pydantic import ValidationError

from coband.simulator.experiments.registry.registry import Registry, has_field
from coband.simulator.experiments.scenario.yaml_nodes import Mark, Node, text_at
from coband.simulator.experiments.store.files import replace_bytes
from coband.simulator.problems.problem import Problem
from coband.simulator.scenario_errors import KeyPath


def write(problems: Iterable[tuple[Problem, Path]], folder: Path) -> None:
    """Write the files of problems; what is there already is the same, since names have a digest of the content.

    Args:
        problems: each with the directory of the scenario that it comes from.

    Raises:
        DataError: the content is not to be had.
        OSError: a file cannot be written.
    """
    for problem, base in problems:
        name, content = problem.attachment(base) or ("", bytes)
        if name and not (folder / name).exists():
            replace_bytes(folder / name, content())


def problems_in(document: object, base: Path) -> Iterator[tuple[Problem, Path]]:
    """The problems with a file beside them anywhere in a document, which need not be valid, as for `write`."""
    if isinstance(document, list):
        for item in document:
            yield from problems_in(item, base)
    elif isinstance(document, Mapping):
        if document.get("kind") == "arrays" and isinstance(content := document.get("content"), str):
            with suppress(ValidationError):
                arrays = Registry.installed().problems["arrays"].config
                yield arrays.model_validate({"kind": "arrays", "content": content}), base
        for value in document.values():
            yield from problems_in(value, base)


MAX_BYTES = 1_000_000
PUBLIC = frozenset({"edge_list", "flash", "fedscale", "packets"})
"""Kinds whose files are published: they are looked for in the directory of downloads too."""


@dataclass(frozen=True)
class ScenarioText:
    """A scenario that is not in a file.

    Attributes:
        name: what errors call it.
        base: the directory to which relative file names in it refer.
    """

    text: str
    name: str
    base: Path

    def __str__(self) -> str:
        return self.name


def read_scenario(source: str | Path | ScenarioText) -> tuple[str, Path]:
    """Read the text of a scenario; return it with the directory to which relative file names in it refer.

    Args:
        source: a file, or the name of a shipped scenario where there is no such file; or the text itself.

    Raises:
        ScenarioError: there is no such file or shipped scenario, it is too large, or it is not UTF-8.
    """
    if isinstance(source, ScenarioText):
        return source.text, source.base
    path = Path(source)
    file = located(path)
    return _read_text(file, path), file.absolute().parent


def _read_text(file: Path, path: Path) -> str:
    here = Mark(str(path))
    try:
        with file.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise here.error(f"there is no such file{_similar(path)}") from None
    except IsADirectoryError:
        if (file / "run.sqlite").is_file():
            raise here.error(f"is the directory of a run; give its scenario, {path / 'scenario.yaml'}") from None
        raise here.error(
            "is a directory without a run.sqlite; give a scenario file, or the directory of a run"
        ) from None
    except (OSError, ValueError) as error:
        raise here.error(f"the file cannot be read: {getattr(error, 'strerror', error)}") from None
    if len(raw) > MAX_BYTES:
        raise here.error(f"the file is larger than {MAX_BYTES} bytes, which no scenario needs")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if raw.startswith(b"SQLite format 3"):
            raise here.error("is the store of a run; give its directory") from None
        before = raw[: error.start]
        mark = Mark(str(path), before.count(b"\n") + 1, error.start - (before.rfind(b"\n") + 1) + 1)
        raise mark.error(f"byte 0x{raw[error.start]:02x} is not UTF-8; save the file as UTF-8") from None


def _similar(path: Path) -> str:
    folder = path.parent
    if near := difflib.get_close_matches(path.name, os.listdir(folder) if folder.is_dir() else (), n=1):
        return f"; did you mean {folder / near[0]}?"
    if near := similar(path):
        return f"; did you mean {' or '.join(near)}, which {'come' if len(near) > 1 else 'comes'} with coband?"
    if path.suffix or path.is_absolute():
        return ""
    return ", and no scenario of that name comes with coband; `coband list scenarios` shows those that do"


def with_absolute_paths(node: Node, base: Path, path: KeyPath = ()) -> Node:
    """Make relative file names in the tree independent of the working directory.

    A name in a scenario file is relative to that file, a name in ``--set`` to the working directory. Names of files of
    delays, graphs, turns, availability, tables and Python functions become absolute. ``problem.data.path`` stays
    relative to the scenario, since `Problem.build` receives the scenario's directory. A published file, such as a
    graph's, that is not there is looked for in the directory of downloads and in its folders.
    """
    if isinstance(node.value, tuple):
        items = (with_absolute_paths(one, base, (*path, number)) for number, one in enumerate(node.value))
        return replace(node, value=tuple(items))
    if not isinstance(node.value, dict):
        return node
    kind, entries = text_at(node, "kind"), dict(node.value)
    for key, inner in node.value.items():
        if isinstance(name := inner.value, str) and _names_file(path, kind, key, name, inner.mark):
            entries[key] = replace(inner, value=_absolute(name, inner.mark, base, kind))
        else:
            entries[key] = with_absolute_paths(inner, base, (*path, key))
    return replace(node, value=entries)


def _names_file(path: KeyPath, kind: str | None, key: str, name: str, mark: Mark) -> bool:
    if name.startswith("~"):
        return False
    if key == "path":
        return path == ("problem",) or (path == ("problem", "data") and mark.line is None)
    return (is_file_key(key) or (key == "function" and ".py:" in name)) and has_field(kind, key)


def is_file_key(key: str) -> bool:
    """Whether the value of a key of a kind is the name of a file."""
    return key == "file" or key.endswith("_file")


def _absolute(name: str, mark: Mark, base: Path, kind: str | None) -> str:
    if any(letter < " " for letter in name):
        text = f"{name!r} is not a file name; in double quotes \\ begins a special character: use single quotes"
        raise mark.error(text)
    file = (Path.cwd() if mark.line is None else base) / name
    if kind not in PUBLIC or not file.name or file.exists():
        return str(file)
    from coband.simulator.problems.datasets import data_directory  # few scenarios have data

    directory = data_directory()
    downloads = (directory / file.name, *sorted(directory.glob(f"*/{file.name}")))
    return str(next((one for one in downloads if one.is_file()), file))


SUFFIX = ".yaml"
FOLDER = Path(__file__).resolve().parents[3] / "scenarios"  # beside `simulator`, installed or not
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
    return MappingProxyType(dict(sorted(found.items())))


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
    comment = takewhile(lambda line: line.startswith("#"), text.splitlines())
    header = tuple(line.removeprefix("#").removeprefix(" ").rstrip() for line in comment)
    return ShippedScenario(name, path, header, _data(yaml.load(text, LOADER)))


def shipped_scenarios() -> list[ShippedScenario]:
    """All shipped scenarios, in the order of their names."""
    return [shipped_scenario(name) for name in paths()]


def _data(document: Mapping[str, Any]) -> str | None:
    for *sections, key in DATA_KEYS:
        part = document
        for section in sections:
            part = part.get(section) or {}
        if key in part:
            from coband.simulator.problems.datasets import graph_of  # names alone need no numpy

            graph = graph_of(str(part[key]))
            return str(part[key]) if graph is None else graph.name
    return None
