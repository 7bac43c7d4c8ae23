"""Finding runs and sweeps on disk: those below a directory, and the newest one."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import cast

from coband.simulator.experiments.store.files import DATABASE, MANIFEST, SCENARIO, StoreError
from coband.simulator.experiments.store.manifest import Manifest
from coband.simulator.experiments.store.places import RUNS

LATEST = "latest"
"""What users write for the newest run below ``runs``."""


def runs_below(root: Path) -> Iterator[Path]:
    """The directories of runs and sweeps below ``root``, or ``root`` itself if it is one, in order of their paths.

    Links to directories are not followed, and what is in the directory of a run is its own.
    """
    for place, folders, files in os.walk(root):
        folders.sort()
        if MANIFEST in files or DATABASE in files:
            folders.clear()
            yield Path(place)


def called(name: str | PathLike[str]) -> Path:
    """The run or sweep that users call so: its path, or ``latest``, unless a file or directory has this name.

    Raises:
        StoreError: it is ``latest``, and there is no run.
    """
    path = Path(name)
    return latest() if str(path) == LATEST and not path.exists() else path


def latest(root: Path = RUNS) -> Path:
    """The run or sweep below ``root`` that was started last.

    Raises:
        StoreError: there is none.
    """
    found = max(runs_below(root), key=_started, default=None)
    if found is None:
        raise StoreError(
            f"there is no run below {root}, so there is no {LATEST} one. Run a scenario, or give its path."
        )
    return found


def _started(run: Path) -> tuple[str, int, str]:
    """When a run was started: by its manifest, to the second, and of several in one second by its first file."""
    try:
        written = (run / SCENARIO).stat().st_mtime_ns
    except OSError:
        written = 0
    return str(manifest_of(run).get("started") or ""), written, str(run)


def manifest_of(run: Path) -> Manifest:
    """The manifest beside a run's store; empty if there is none that can be read."""
    try:
        found = json.loads((run / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return cast(Manifest, found) if isinstance(found, dict) else {}
