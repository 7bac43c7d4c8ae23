"""What a stored run or sweep has found: the object that results.json holds."""

from __future__ import annotations

from typing import Any

from coband.simulator.experiments.store.directory import RESULTS, read_json
from coband.simulator.experiments.store.store import StoredRun, StoreError


def is_sweep(run: StoredRun) -> bool:
    """Whether each label is a variant of a sweep."""
    return run.connection.execute("SELECT 1 FROM variants LIMIT 1").fetchone() is not None


def summary(run: StoredRun) -> dict[str, Any]:
    """The results of a run from its store; those of a sweep, which has chosen the best of them, from its results.json.

    Raises:
        StoreError: that file cannot be read.
    """
    if not is_sweep(run):
        return run.results()
    file = run.file.parent / RESULTS
    try:
        found: dict[str, Any] = read_json(file)
        _ = found["results"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(
            f"{file} cannot be read ({error}); `coband sweep FILE --resume --out {file.parent}` writes it anew."
        ) from error
    return found
