"""The code of others that results depend on: plugins, scripts and functions of the user's, with all files around them.

Of a plugin all files of its distribution count. Of a script, and of a module that no distribution has installed, all
files count in the folder in which Python finds it, whoever reads them.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import uuid
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path

from coband.simulator.experiments.runs.code_version import file_sha256, sha256
from coband.simulator.experiments.store.files import DATABASE, MANIFEST
from coband.simulator.experiments.store.places import RUNS
from coband.simulator.plugins.entry_points import distributions, foreign
from coband.simulator.plugins.functions import SESSION

MOST_BYTES, MOST_FILES = 50_000_000, 10_000
NOT_CODE = {MANIFEST, DATABASE, "pyvenv.cfg"}
"""What runs and virtual environments have, which are left out."""


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
        self._known: dict[object, str] = {}
        self.unknown: dict[str, None] = {}

    def digest(self, modules: Iterable[str]) -> str:
        """Digest of the code of modules, but for those of coband and Python; empty where nothing is foreign.

        Args:
            modules: dotted names, files that end in .py, or ``__main__``.
        """
        chosen = {module for module in modules if module == SESSION or foreign(module)}
        return sha256(*sorted({self._of(module) for module in chosen})) if chosen else ""

    def _of(self, module: str) -> str:
        place = _place_of(module)
        if place not in self._known:
            self._known[place] = self._read(place)
        return self._known[place]

    def _read(self, place: str | Path | None) -> str:
        try:
            if place is None:
                raise UnknownCode("some code of this scenario is in no file, as in a notebook")
            found = sorted(_few(_below(place) if isinstance(place, Path) else _installed(place), place))
            kept = ((name, file_sha256(file)) for name, file in found if file != self._scenario)
            return sha256(*(part for pair in kept for part in pair))
        except UnknownCode as reason:
            self.unknown[f"{reason}, so its finished jobs are never used again"] = None
            return uuid.uuid4().hex


def _place_of(module: str) -> str | Path | None:
    """The name of a module's distribution, or the folder in which Python finds it; None for what is in no file."""
    if module == SESSION:
        module = str(getattr(sys.modules[SESSION], "__file__", None))
        return Path(module).resolve().parent if module.endswith(".py") and Path(module).is_file() else None
    if module.endswith(".py"):
        return Path(module).resolve().parent
    top = module.partition(".")[0]
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        return None
    folders = [Path(place).resolve() for place in spec.submodule_search_locations or ()]
    file = Path(spec.origin).resolve() if spec.origin is not None else None
    for name in distributions().get(top, ()):
        if any(one == file for _, one in _installed(name)):
            return name
    return folders[0].parent if folders else None if file is None else file.parent


def _installed(distribution: str) -> Iterator[tuple[str, Path]]:
    """Names and files of a distribution; of one that is used where its sources are, hardly any."""
    for file in metadata.files(distribution) or ():
        if file.suffix != ".pyc" and file.name != "RECORD":
            yield str(file), Path(str(file.locate())).resolve()


def _below(folder: Path) -> Iterator[tuple[str, Path]]:
    """Names and files of a folder, but for hidden ones, compiled ones, runs and virtual environments."""
    for place, folders, files in os.walk(folder):
        if Path(place) != folder and not NOT_CODE.isdisjoint(files):
            folders.clear()
            continue
        folders[:] = [name for name in folders if not name.startswith((".", "__pycache__")) and name != RUNS.name]
        for name in files:
            if not name.startswith(".") and not name.endswith(".pyc"):
                file = Path(place, name)
                yield str(file.relative_to(folder)), file


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
