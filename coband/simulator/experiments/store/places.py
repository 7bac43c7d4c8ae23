"""New, empty directories for runs."""

from __future__ import annotations

import re
from pathlib import Path

from coband.simulator.experiments.store.files import OutputError, is_too_long

RUNS = Path("runs")


def new_place(name: str, out: Path | None = None) -> Path:
    """A new, empty directory: ``out``, or runs/<name>-<number> with the next free number.

    Raises:
        OutputError: ``out`` holds something already, or no directory can be made there.
    """
    if is_too_long(out or RUNS / name):
        raise OutputError(
            f"no run directory can be made: {out or RUNS / name}: SQLite cannot open files with so long a path. "
            "Choose a shorter one with --out DIR."
        )
    try:
        return _numbered(name) if out is None else _given(out)
    except OSError as error:
        place = error.filename or out or RUNS
        raise OutputError(
            f"no run directory can be made: {place}: {error.strerror}. Choose another place with --out DIR."
        ) from error


def _given(out: Path) -> Path:
    out.mkdir(parents=True, exist_ok=True)
    if any(out.iterdir()):
        raise OutputError(f"{out} is not empty, and a run overwrites nothing. Remove it, or choose another --out DIR.")
    return out


def stem(name: str) -> str:
    """The start of the names of a scenario's run directories."""
    return re.sub(r"[^\w.-]+", "-", name).strip(".-") or "run"


def _numbered(name: str) -> Path:
    start = stem(name)
    RUNS.mkdir(exist_ok=True)
    pattern = re.compile(re.escape(start) + r"-(\d+)")
    taken = [int(match[1]) for entry in RUNS.iterdir() if (match := pattern.fullmatch(entry.name))]
    number = max(taken, default=0) + 1
    while True:
        path = RUNS / f"{start}-{number:04d}"
        try:
            path.mkdir()  # fails when another run was quicker, so no two runs share a directory
            return path
        except FileExistsError:
            number += 1
