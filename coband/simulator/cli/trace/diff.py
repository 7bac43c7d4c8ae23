"""``coband trace diff``: the first difference of two runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from coband.simulator.cli.options import JSON_LINES
from coband.simulator.cli.runs import RUNS_HELP, RunPath
from coband.simulator.cli.trace.common import LABEL, REPLICATION, opened, print_json
from coband.simulator.cli.trace.events import block, header, is_narrow, row

if TYPE_CHECKING:
    from coband.simulator.analysis.traces.difference import TraceComparison
    from coband.simulator.experiments.store.store import Event, StoredJob


@click.command(epilog=RUNS_HELP.replace("RUN is", "A and B are each"))
@click.argument("first", metavar="A", type=RunPath())
@click.argument("second", metavar="B", type=RunPath())
@LABEL
@click.option("--other-label", metavar="LABEL", help="The label in B, if it differs from the one in A.")
@REPLICATION
@JSON_LINES
@click.pass_context
def diff(
    context: click.Context,
    /,
    first: Path,
    second: Path,
    label: str | None,
    other_label: str | None,
    replication: int | None,
    as_json: bool,
) -> None:
    """Find the first event that only one of A and B has, although both have all its causes.

    The numbers of events, and the order of simultaneous events of different nodes, do not matter. The exit status is 1
    if the runs differ.
    """
    same, named = True, False
    with opened(first) as here, opened(second) as there:
        from coband.simulator.analysis.traces import difference
        from coband.simulator.analysis.traces.difference import pairs
        from coband.simulator.analysis.traces.reading import TraceReader
        from coband.simulator.experiments.runs import hardware

        computers = here.manifest.get("hardware"), there.manifest.get("hardware")
        for a, b in pairs(here, there, label, other_label, replication):
            found = difference.compare(TraceReader(a), TraceReader(b))
            same = same and found.same
            if as_json:
                unlike = [] if found.same else hardware.differences(*computers)
                print_json({**_as_json(a, b, found), "hardware": unlike})
            else:
                if not (found.same or named):
                    named = True
                    if sentence := hardware.explained(*computers, ("A", "B")):
                        print(sentence)
                _show(a, b, found, here.labels | there.labels)
    context.exit(0 if same else 1)


def _as_json(a: StoredJob, b: StoredJob, found: TraceComparison) -> dict[str, object]:
    here, there = (None if event is None else event._asdict() for event in (found.here, found.there))
    return {
        "label": a.label,
        "other_label": b.label,
        "replication": a.replication,
        "same": found.same,
        "common": found.common,
        "columns": list(found.columns),
        "a": here,
        "b": there,
    }


def _show(a: StoredJob, b: StoredJob, found: TraceComparison, algorithms: Mapping[str, str]) -> None:
    names = a.label if a.label == b.label else f"{a.label} and {b.label}"
    head = f"{names}, replication {a.replication}: "
    print(head + in_words(found, "the same", "the first difference is"))
    if not found.same:
        show_events(found, ("A", "B"), algorithms)
    if found.columns:
        print(f"differs in {', '.join(found.columns)}")


def in_words(found: TraceComparison, same: str, parted: str) -> str:
    """Where two traces part, in the words for traces that are the same and for those that are not."""
    event = found.here or found.there
    if event is None:
        return f"{same}, {found.common:,} events"
    return f"{parted} at {event.node} at time {found.time:.12g}, after {found.common:,} common events"


def show_events(found: TraceComparison, names: tuple[str, str], algorithms: Mapping[str, str]) -> None:
    """Print the two events at which traces part, under the names of the traces.

    Args:
        found: the traces.
        names: of the traces.
        algorithms: label -> algorithm.
    """
    width = max(map(len, names))
    if not is_narrow():
        print(f"{'':{width}}  {header()}")
    for name, event in zip(names, (found.here, found.there), strict=True):
        print(f"{name:{width}}  {_text(event, algorithms)}")


def _text(event: Event | None, algorithms: Mapping[str, str]) -> str:
    if event is None:
        return "       -  nothing in its place"
    return "\n   ".join(block(event, algorithms)) if is_narrow() else row(event, algorithms)
