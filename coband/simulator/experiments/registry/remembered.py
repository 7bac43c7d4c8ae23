"""Answers about what is installed, kept in the user's cache directory, so that they need no import of algorithms: with
all of them, `coband list` takes five times as long.

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

from coband.simulator.plugins.entry_points import OWN_DISTRIBUTION, distribution, offered

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
    if REGISTRY in sys.modules or any(distribution(point) != OWN_DISTRIBUTION for point in offered()):
        return json.loads(json.dumps(compute()))
    state, place = _state(), file()
    answers = _read(state, place)
    if question not in answers:
        answers[question] = json.loads(json.dumps(compute()))
        registry = sys.modules.get(REGISTRY)
        if registry is None or not registry.Registry.installed().broken:  # for a reason that may pass
            _write(state, answers, place)
    return answers[question]


def file() -> Path:
    """Where answers are kept: one file for each place where coband is installed, and each version of Python."""
    chosen = Path(os.environ.get("XDG_CACHE_HOME", ""))  # the XDG specification says to ignore relative paths
    folder = chosen if chosen.is_absolute() else Path(os.path.expanduser("~"), ".cache")
    name = f"{crc32(os.fsencode(PACKAGE)):08x}-{sys.implementation.cache_tag}.json"
    return folder / "coband" / "answers" / name


def _read(state: str, place: Path) -> dict[str, object]:
    with suppress(OSError, ValueError, KeyError, TypeError):
        kept = json.loads(place.read_text(encoding="utf-8"))
        if kept["state"] == state:
            return dict(kept["answers"])
    return {}


def _write(state: str, answers: dict[str, object], place: Path) -> None:
    """Replace the file at once, whoever else writes or reads it; answers of another state go."""
    draft = place.with_name(f"{place.name}.{os.getpid()}")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(json.dumps({"state": state, "answers": answers}), encoding="utf-8")
        os.replace(draft, place)
    except OSError:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def _state() -> str:
    """What answers depend on: coband's files and entry points, and the version of pydantic, which words the types."""
    lines = [repr(point) for point in offered()] + sorted(line for part in PARTS for line in _files(PACKAGE / part))
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
