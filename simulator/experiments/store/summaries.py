"""What a stored run or sweep has found: the object that results.json holds."""

from __future__ import annotations

import json

from coband.simulator.experiments.runs.results import Results
from coband.simulator.experiments.store.files import RESULTS
from coband.simulator.experiments.store.store import StoredRun, StoreError


def is_sweep(run: StoredRun) -> bool:
    """Whether each label is a variant of a sweep; a what-if run has variants of its own."""
    if "whatif" in run.manifest:
        return False
    return run.connection.execute("SELECT 1 FROM variants LIMIT 1").fetchone() is not None


def summary(run: StoredRun) -> Results:
    """The results of a run from its store; those of a sweep, which has chosen the best of them, from its results.json.

    Raises:
        StoreError: that file cannot be read.
    """
    if not is_sweep(run):
        return run.results()
    file = run.file.parent / RESULTS
    try:
        found: Results = json.loads(file.read_bytes())
        _ = found["results"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        again = f"`coband sweep FILE --resume --out {file.parent}` writes it anew."
        raise StoreError(f"{file} cannot be read ({error}); {again}") from error
    return found
