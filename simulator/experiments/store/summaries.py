"""What a stored run or sweep has found: the object that results.json holds."""

from __future__ import annotations

import hashlib
import json

from coband.simulator.experiments.runs.results import Results
from coband.simulator.experiments.store.files import RESULTS
from coband.simulator.experiments.store.store import StoredRun, StoreError


def is_sweep(run: StoredRun) -> bool:
    """Whether each label is a variant of a sweep."""
    return run.connection.execute("SELECT 1 FROM variants LIMIT 1").fetchone() is not None


def summary(run: StoredRun) -> Results:
    """The results of a run from its store; those of a sweep, which has chosen the best of them, from its results.json.

    Raises:
        StoreError: that file cannot be read, or is not what the sweep wrote at its end.
    """
    if not is_sweep(run):
        return run.results()
    file = run.file.parent / RESULTS
    again = f"`coband sweep FILE --resume --out {file.parent}` writes it anew."
    try:
        content = file.read_bytes()
        found: Results = json.loads(content)
        _ = found["results"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{file} cannot be read ({error}); {again}") from error
    if is_changed(run, content):
        raise StoreError(f"{file} was changed after its sweep had ended, so its numbers are not shown; {again}")
    return found


def is_changed(run: StoredRun, results: bytes) -> bool:
    """Whether the content of results.json is not what the run wrote when it ended; False for one that has not ended."""
    return run.meta("results") not in (None, hashlib.sha256(results).hexdigest())
