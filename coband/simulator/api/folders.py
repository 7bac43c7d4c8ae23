"""Finding runs on disk."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, overload

from coband.simulator.api.errors import RunError, translated
from coband.simulator.api.stored import Run, Sweep
from coband.simulator.experiments.store.files import MANIFEST, RUN, RUNS, called, kind_of
from coband.simulator.experiments.store.opening import facts

if TYPE_CHECKING:
    import pandas as pd


class Runs(Sequence[Run]):
    """Some runs, newest first; ``runs[0]`` is the newest."""

    def __init__(self, runs: Iterable[Run]) -> None:
        self._runs = list(runs)

    @overload
    def __getitem__(self, index: int) -> Run: ...
    @overload
    def __getitem__(self, index: slice) -> Runs: ...
    def __getitem__(self, index: int | slice) -> Run | Runs:
        return Runs(self._runs[index]) if isinstance(index, slice) else self._runs[index]

    def __len__(self) -> int:
        return len(self._runs)

    @property
    def table(self) -> pd.DataFrame:
        """A row for each: path, scenario, kind, status, times, numbers of jobs and of labels."""
        import pandas as pd

        known = ("status", "started", "finished", "jobs")
        rows = [
            (str(run.path), run.name, type(run).__name__.lower(), *map(run.manifest.get, known), len(run.labels))
            for run in self
        ]
        return pd.DataFrame(rows, columns=["path", "scenario", "kind", *known, "labels"])

    def __repr__(self) -> str:
        return self.table.to_string()

    def _repr_html_(self) -> str:
        return str(self.table.to_html())


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


def runs(folder: str | PathLike[str] = RUNS) -> Runs:
    """List the runs and sweeps in a folder, newest first; what cannot be read is left out.

    Args:
        folder: whose subfolders are run directories; one that does not exist has none.
    """
    place = Path(folder)
    found = []
    for path in sorted(place.iterdir()) if place.is_dir() else ():
        if (path / MANIFEST).is_file():
            try:
                found.append(load(path))
            except RunError:
                continue
    return Runs(sorted(found, key=_age, reverse=True))


def _age(run: Run) -> tuple[str, float, str]:
    """When it began; runs of the same second in the order in which they ended."""
    return str(run.manifest.get("started", "")), (run.path / MANIFEST).stat().st_mtime, run.path.name
