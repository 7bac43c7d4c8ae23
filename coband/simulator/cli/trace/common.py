"""Shared by the subcommands of ``coband trace``: opening a run, selecting jobs, and printing events."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from coband.simulator.cli.options import AtLeast, BadInput, options
from coband.simulator.cli.runs import RUN as RUN
from coband.simulator.cli.runs import RUNS_HELP as RUNS_HELP

if TYPE_CHECKING:
    from coband.simulator.experiments.store.store import StoredRun

LABEL = click.option("--label", metavar="LABEL", help="Only this label.")
REPLICATION = click.option("--replication", type=AtLeast(0), help="Only this replication, counted from 0.")


choice = options(LABEL, REPLICATION)
"""The options that select jobs."""


def opened(path: Path) -> StoredRun:
    """Open a run for reading."""
    from coband.simulator.experiments.store.store import open_run

    return open_run(path)


def print_json(item: Mapping[str, Any]) -> None:
    """Print one line of JSON."""
    print(json.dumps(item, allow_nan=False))


def cell(value: Any) -> str:
    """A value in a table; "." for None."""
    if value is None:
        return "."
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def parse_interval(text: str | None) -> tuple[float | None, float | None]:
    """``A..B``, ``A..`` or ``..B`` as (start, end)."""
    if text is None:
        return None, None
    first, dots, last = text.partition("..")
    try:
        if dots and (first.strip() or last.strip()):
            start, end = (float(one) if one.strip() else None for one in (first, last))
            if start is None or end is None or start <= end:
                return start, end
    except ValueError:
        pass
    raise BadInput(f"--time {text!r} is no interval of simulated time; give A..B, A.. or ..B, such as 10..20.")
