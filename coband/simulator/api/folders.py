"""Finding runs on disk."""

from __future__ import annotations

from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from coband.simulator.api.errors import RunError, translated
from coband.simulator.api.stored import Run, Sweep
from coband.simulator.experiments.store.files import MANIFEST, RUN, RUNS, called, kind_of
from coband.simulator.experiments.store.opening import facts

if TYPE_CHECKING:
    import pandas as pd


def load(path: str | PathLike[str]) -> Run | Sweep:
    """Read a run or a sweep from disk; half-finished and killed ones work too.

    Args:
        path: its directory, its run.sqlite alone, or ``latest``, the newest run below ``runs``.

    Raises:
        RunError: there is no run, or its store is of another version.
    """
    with translated():
        place = called(path)
        kind = kind_of(facts(place)[0])
    return Run(place) if kind == RUN else Sweep(place)


def runs(folder: str | PathLike[str] = RUNS) -> pd.DataFrame:
    """A row for each run and sweep in a folder, newest first; what cannot be read is left out.

    The columns are path, scenario, kind, status, times, and numbers of jobs and of labels; `load` reads a path.

    Args:
        folder: whose subfolders are run directories; one that does not exist has none.
    """
    import pandas as pd

    place = Path(folder)
    found = []
    for path in sorted(place.iterdir()) if place.is_dir() else ():
        if (path / MANIFEST).is_file():
            with suppress(RunError):
                found.append(load(path))
    known = ("status", "started", "finished", "jobs")
    rows = [
        (str(run.path), run.name, type(run).__name__.lower(), *map(run.manifest.get, known), len(run.labels))
        for run in sorted(found, key=_age, reverse=True)
    ]
    return pd.DataFrame(rows, columns=["path", "scenario", "kind", *known, "labels"])


def _age(run: Run) -> tuple[str, float, str]:
    """When it began; runs of the same second in the order in which they ended."""
    return str(run.manifest.get("started", "")), (run.path / MANIFEST).stat().st_mtime, run.path.name
