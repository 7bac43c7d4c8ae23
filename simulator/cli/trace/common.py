"""Shared by the subcommands of ``coband trace``: opening a run, selecting jobs, and printing events."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from coband.simulator.cli.options import BadInput, options
from coband.simulator.cli.runs import RUN as RUN
from coband.simulator.cli.runs import RUNS_HELP as RUNS_HELP
from coband.simulator.cli.types import AtLeast

if TYPE_CHECKING:
    from coband.simulator.experiments.store.store import StoredJob, StoredRun

LABEL = click.option("--label", metavar="LABEL", help="Only this label.")
REPLICATION = click.option("--replication", type=AtLeast(0), help="Only this replication, counted from 0.")


choice = options(LABEL, REPLICATION)
"""The options that select jobs."""


def opened(path: Path, *, changed: bool = False) -> StoredRun:
    """Open a run for reading; ``changed``: also one whose store was changed after it had ended."""
    from coband.simulator.experiments.store.store import open_run

    return open_run(path, changed=changed)


def print_json(item: Mapping[str, Any]) -> None:
    """Print one line of JSON."""
    print(json.dumps(item, allow_nan=False))


def cell(value: Any) -> str:
    """A value in a table; "." for None."""
    if value is None:
        return "."
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def spell_node(text: str | None, jobs: Sequence[StoredJob]) -> str | None:
    """The store's name of a node that the user names as "server", "agent 3" or "3".

    Args:
        text: as the user names it; None for any node.
        jobs: where it is to occur.

    Raises:
        BadInput: it has no event in any of them.
    """
    if text is None:
        return text
    from coband.simulator.analysis.traces.reading import nodes
    from coband.simulator.experiments.store import schema

    match = re.fullmatch(r"(?:agent\s*)?(\d+)", text.strip())
    name = text.strip() if match is None else f"agent {int(match[1])}"
    query = f"{schema.TRACE} SELECT 1 FROM trace WHERE job = ? AND node = ? LIMIT 1"
    if any(job.part.execute(query, (job.id, name)).fetchone() for job in jobs):
        return name
    raise BadInput(f"--node {text!r} is no node of this run; there is {_listed(nodes(jobs))}.")


def _listed(nodes: Sequence[str]) -> str:
    """Nodes in words; agents that follow each other as the first and the last of them."""
    agents = sorted(int(name.split()[1]) for name in nodes if name.startswith("agent "))
    words = [name for name in nodes if not name.startswith("agent ")]
    if len(agents) > 2 and agents[-1] - agents[0] == len(agents) - 1:
        words.append(f"agent {agents[0]} to agent {agents[-1]}")
    else:
        words += [f"agent {number}" for number in agents]
    return ", ".join(words)


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
