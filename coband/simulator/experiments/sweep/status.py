"""The status of a sweep on disk: written by its driver, read by anybody, also after the driver's death."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from coband.simulator.experiments.runs.results import dump
from coband.simulator.experiments.runs.status import EntryStatus, Status
from coband.simulator.experiments.store.files import OutputError, replace_text
from coband.simulator.experiments.sweep import lock

FILE = "status.json"


def write(directory: Path, status: Status) -> None:
    """Replace the status of a sweep."""
    replace_text(directory / FILE, dump(asdict(status)))


def read(directory: Path) -> Status:
    """The status of the sweep in a directory; a driver that was killed shows as ``killed``.

    Raises:
        OutputError: there is no sweep, or its status is damaged.
    """
    file = directory / FILE
    if not file.is_file():
        raise OutputError(f"{directory} holds no sweep: there is no {file}. Give the directory that --out named.")
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        found["entries"] = {name: EntryStatus(**entry) for name, entry in found["entries"].items()}
        status = Status(**found)
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise OutputError(
            f"{file} is damaged ({error}); `coband sweep FILE --resume --out {directory}` writes it anew."
        ) from error
    if status.state == "running" and not lock.is_held(directory):
        status.state = "killed"
    return status
