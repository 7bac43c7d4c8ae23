"""Where a sweep is kept: a new directory, or that of an earlier driver."""

from __future__ import annotations

from pathlib import Path

from coband.simulator.experiments.store import directory
from coband.simulator.experiments.store.directory import OutputError
from coband.simulator.experiments.sweep import lock, status


def new(name: str, out: Path | None) -> Path:
    """A new directory: ``out``, or runs/<name>-<number>.

    Raises:
        OutputError: ``out`` holds something already, or no directory can be made there.
    """
    if out is not None and is_sweep(out):
        raise OutputError(f"{out} holds a sweep already; go on with it by --resume, or choose another --out DIR.")
    return directory.create(name, out).path


def earlier(name: str, out: Path | None) -> Path:
    """The directory to go on in: ``out``, which may be new, or the latest runs/<name>-<number> that is a sweep.

    Raises:
        OutputError: there is none, or ``out`` holds something else.
    """
    if out is not None:
        return out if is_sweep(out) else directory.create(name, out).path
    stem = directory.stem(name)
    found = sorted(path for path in directory.RUNS.glob(f"{stem}-*") if path.name[len(stem) + 1 :].isdecimal())
    sweeps = [path for path in found if is_sweep(path)]
    if not sweeps:
        raise OutputError(
            f"there is no sweep {directory.RUNS / stem}-... to go on with; name its directory with --out DIR."
        )
    return max(sweeps, key=lambda path: int(path.name[len(stem) + 1 :]))


def is_sweep(path: Path) -> bool:
    """Whether a driver of a sweep has been there."""
    return (path / status.FILE).is_file() or (path / lock.FILE).is_file()
