"""The code of others that results depend on: plugins, scripts and functions of the user's, with all files around them.

Of a plugin all files of its distribution count. Of a script, and of a module that no distribution has installed, all
files count in the folder in which Python finds it, whoever reads them; and so do those of what they import.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from coband.simulator.experiments.runs.code_version import file_sha256, sha256
from coband.simulator.experiments.store.files import DATABASE, MANIFEST
from coband.simulator.experiments.sweep import lock
from coband.simulator.plugins.entry_points import distributions, foreign
from coband.simulator.plugins.functions import SESSION

MOST_BYTES, MOST_FILES = 50_000_000, 10_000
NOT_CODE = {MANIFEST, DATABASE}, {lock.FILE, lock.OWNER}, {"pyvenv.cfg"}
"""What runs, sweeps and virtual environments have, which are left out."""
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
