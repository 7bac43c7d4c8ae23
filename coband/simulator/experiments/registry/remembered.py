"""Answers about what is installed, kept in the user's cache directory, so that they need no import of algorithms.

Like Python's compiled code, an answer counts as long as the sources have the sizes and times of change that they had
when it was computed. It is computed again whenever that is not certain: when other packages offer algorithms, or in a
process that has imported coband's own. Where the directory cannot be written, nothing is kept.
"""

from __future__ import annotations

import json
import os
import sys
from binascii import crc32
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from coband.simulator.plugins.offers import Offer, of_others, offers

PACKAGE = Path(__file__).resolve().parents[3]
PARTS = ("agents", "scenarios", "server", "simulator")
SUFFIXES = (".py", ".yaml", ".bib")
REGISTRY = "coband.simulator.experiments.registry.registry"


def remembered(question: str, compute: Callable[[], Any]) -> Any:
    """The answer to a question about what is installed, in JSON types.

    Args:
        question: what is asked; answers are kept by it.
        compute: gives the answer; it may be kept unless the function raises an exception.
    """
    found = None if REGISTRY in sys.modules else offers()
    if found is None or of_others(found):
        return json.loads(json.dumps(compute()))
    state = _state(found)
    answers = _read(state)
    if question not in answers:
        answers[question] = json.loads(json.dumps(compute()))
        if not _broken():
            _write(state, answers)
    return answers[question]


def file() -> Path | None:
    """Where answers are kept: one file for each place where coband is installed, and each version of Python."""
    folder = cache_directory()
    if folder is None:
        return None
    return folder / "coband" / "answers" / f"{crc32(os.fsencode(PACKAGE)):08x}-{sys.implementation.cache_tag}.json"


def cache_directory() -> Path | None:
    """The user's directory of files that can be computed again; None if the user has no home."""
    chosen = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if chosen.is_absolute():  # the XDG specification says to ignore relative paths
        return chosen
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return Path(local) if local else None
    try:
        home = Path.home()
    except RuntimeError:
        return None
    return home / "Library" / "Caches" if sys.platform == "darwin" else home / ".cache"


def _broken() -> bool:
    """Whether a part of coband could not be loaded, for a reason that may pass."""
    return bool(sys.modules[REGISTRY].Registry.installed().broken) if REGISTRY in sys.modules else False


def _read(state: str) -> dict[str, object]:
    place = file()
    with suppress(OSError, ValueError, KeyError, TypeError):
        kept = json.loads("" if place is None else place.read_text(encoding="utf-8"))
        if kept["state"] == state:
            return dict(kept["answers"])
    return {}


def _write(state: str, answers: dict[str, object]) -> None:
    """Replace the file at once, whoever else writes or reads it; answers of another state go."""
    place = file()
    if place is None:
        return
    draft = place.with_name(f"{place.name}.{os.getpid()}")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(json.dumps({"state": state, "answers": answers}), encoding="utf-8")
        os.replace(draft, place)
    except OSError:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def _state(found: list[Offer]) -> str:
    """What answers depend on: coband's files and entry points, and the version of pydantic, which words the types."""
    lines = [repr(offer) for offer in found] + sorted(line for part in PARTS for line in _files(PACKAGE / part))
    pydantic = find_spec("pydantic")
    if pydantic is not None and pydantic.origin is not None:
        lines.append(_line(pydantic.origin.replace("__init__", "version")))
    return "\n".join(lines)


def _files(folder: str | Path) -> Iterator[str]:
    """Path, size and time of change of every file below a folder that can make a difference."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(SUFFIXES):
                yield _line(entry.path)
            elif entry.is_dir() and entry.name != "__pycache__":
                yield from _files(entry.path)


def _line(path: str) -> str:
    found = os.stat(path)
    return f"{path} {found.st_size} {found.st_mtime_ns}"
