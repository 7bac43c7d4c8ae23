"""The address of a job: a digest of everything that determines its result, so that it never runs twice.

The code of others counts too. For a plugin, that is all files of its distribution; for a script or a module that no
distribution has installed, all files in its folder, whoever reads them, and those of what they import.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from coband.simulator.core.metrics import METRICS
from coband.simulator.experiments.registry.registry import CLASSES, has_field
from coband.simulator.experiments.runs.code_version import code_version, file_sha256, sha256
from coband.simulator.experiments.scenario.files import is_file_key
from coband.simulator.experiments.scenario.scenario import Scenario, ScenarioEntry
from coband.simulator.experiments.store.files import DATABASE, LOCK, MANIFEST, OWNER
from coband.simulator.plugins.entry_points import distributions, foreign
from coband.simulator.plugins.functions import SESSION
from coband.simulator.problems.problem import DataError

MOST_BYTES, MOST_FILES = 50_000_000, 10_000
NOT_CODE = {MANIFEST, DATABASE}, {LOCK, OWNER}, {"pyvenv.cfg"}
"""What runs and virtual environments have, which are left out."""
IMPORT = re.compile(r"(?:^|[;:])[ \t]*(?:from[ \t]+(\w+)[\w.]*[ \t]+import|import[ \t]+([\w., \t]+))", re.MULTILINE)


class UnknownCode(Exception):
    """Nobody knows what some code is; the text says why."""


class ForeignCode:
    """Digests of code of others; what several modules have in common is read once.

    Args:
        scenario: the file that is read, which lies among code without being part of it.

    Attributes:
        unknown: why nobody knows what some of the code is, a sentence each. Its digest is another one each time.
    """

    def __init__(self, scenario: Path | None = None) -> None:
        self._scenario = None if scenario is None else scenario.resolve()
        self._known: dict[str | Path | None, tuple[str, list[Path]]] = {}
        self.unknown: dict[str, None] = {}

    def digest(self, modules: Iterable[str]) -> str:
        """Digest of the code of modules and of what they import, but for coband, Python and what they have installed;
        empty where nothing is foreign.

        Args:
            modules: dotted names, files that end in .py, or ``__main__``.
        """
        waiting = [place for module in modules if module == SESSION or foreign(module) for place in _places_of(module)]
        places: set[str | Path | None] = set()
        while waiting:
            place = waiting.pop()
            if place not in places:
                places.add(place)
                if place not in self._known:
                    self._known[place] = self._read(place)
                waiting += self._known[place][1]
        return sha256(*sorted({self._known[place][0] for place in places})) if places else ""

    def _read(self, place: str | Path | None) -> tuple[str, list[Path]]:
        """Digest of the files of a place, and the folders that they import from."""
        try:
            if place is None:
                raise UnknownCode("some code of this scenario is in no file, as in a notebook")
            found = sorted(_few(_below(place) if isinstance(place, Path) else _installed(place), place))
            kept = [(name, file) for name, file in found if file != self._scenario]
            digest = sha256(*(part for name, file in kept for part in (name, file_sha256(file))))
            tops = {top for _, file in kept if file.suffix == ".py" for top in _imported(file)}
            imported = {one for top in tops if foreign(top) for one in _places_of(top) if isinstance(one, Path)}
            return digest, sorted(imported)
        except UnknownCode as reason:
            self.unknown[f"{reason}, so its finished jobs are never used again"] = None
            return uuid.uuid4().hex, []


def _places_of(module: str) -> Sequence[str | Path | None]:
    """The name of a module's distribution, or the folder in which Python finds it; None for what is in no file."""
    if module == SESSION:
        module = str(getattr(sys.modules[SESSION], "__file__", None))
        return [Path(module).resolve().parent if module.endswith(".py") and Path(module).is_file() else None]
    if module.endswith(".py"):
        return [Path(module).resolve().parent]
    top = module.partition(".")[0]
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        return [None]
    found: dict[str | Path | None, None] = {}
    for place in spec.submodule_search_locations or filter(None, [spec.origin]):
        file = Path(place).resolve()
        names = distributions().get(top, ())
        of = next((name for name in names if any(file in (one, *one.parents) for _, one in _installed(name))), None)
        found[of or file.parent] = None
    return list(found) or [None]


def _imported(file: Path) -> Iterator[str]:
    """The top-level modules that a file may import."""
    for package, names in IMPORT.findall(file.read_text(encoding="utf-8", errors="replace")):
        yield from (name.split()[0].partition(".")[0] for name in (package or names).split(",") if name.strip())


def _installed(distribution: str) -> Iterator[tuple[str, Path]]:
    """Names and files of a distribution; of one that is used where its sources are, hardly any."""
    for file in metadata.files(distribution) or ():
        if file.suffix != ".pyc" and file.name != "RECORD":
            yield str(file), Path(str(file.locate())).resolve()


def _below(folder: Path) -> Iterator[tuple[str, Path]]:
    """Names and files of a folder, but for hidden ones, compiled ones, runs, virtual environments, and those to which
    this process writes what it says."""
    seen, said = set[str](), list(_outputs())
    for place, folders, files in os.walk(folder, followlinks=True):
        real = os.path.realpath(place)
        if real in seen or (Path(place) != folder and any(marks <= set(files) for marks in NOT_CODE)):
            folders.clear()
            continue
        seen.add(real)
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__pycache__")))
        for name in files:
            file = Path(place, name)
            if name.startswith(".") or name.endswith(".pyc") or not file.is_file():
                continue
            if not any(os.path.samestat(file.stat(), one) for one in said):
                yield str(file.relative_to(folder)), file


def _outputs() -> Iterator[os.stat_result]:
    """What the standard output and error of this process are."""
    for stream in (1, 2):
        with suppress(OSError):
            yield os.fstat(stream)


def _few(files: Iterable[tuple[str, Path]], place: str | Path) -> Iterator[tuple[str, Path]]:
    """The same files.

    Raises:
        UnknownCode: they are too many, or too large.
    """
    size = 0
    for number, (name, file) in enumerate(files, start=1):
        if file.is_file():
            size += file.stat().st_size
            if size > MOST_BYTES or number > MOST_FILES:
                most = f"{MOST_BYTES // 10**6} MB, or {MOST_FILES:,} files"
                raise UnknownCode(f"{place} has code of this scenario among more than {most}")
            yield name, file


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
    yield from (metric.of.__module__ for metric in METRICS.values())


def _kinds(part: Any) -> Iterator[str]:
    """The modules of the kinds that a section names, and of functions of the user's."""
    if isinstance(part, list):
        for item in part:
            yield from _kinds(item)
    elif isinstance(part, dict):
        if isinstance(part.get("kind"), str):  # a field of a message may be called kind, too
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
