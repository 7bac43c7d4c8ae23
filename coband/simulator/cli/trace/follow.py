"""``coband trace follow``: the history of a message."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from coband.simulator.cli.options import JSON_LINES, AtLeast
from coband.simulator.cli.trace.common import RUN, RUNS_HELP, choice, opened
from coband.simulator.cli.trace.events import print_events

if TYPE_CHECKING:
    from coband.simulator.analysis.traces.causes import MessageHistory


@click.command(epilog=RUNS_HELP)
@RUN
@click.argument("message", metavar="MESSAGE", type=AtLeast(0))
@choice
@click.option("--effects", is_flag=True, help="Also print the events that its deliveries caused directly.")
@JSON_LINES
def follow(path: Path, message: int, label: str | None, replication: int | None, effects: bool, as_json: bool) -> None:
    """Print the history of the message with number MESSAGE (column "message" of `coband trace show`).

    On a graph this includes all sends that forward the message; MESSAGE may be the number of any of them.
    """
    with opened(path) as run:
        from coband.simulator.analysis.traces.causes import follow as history_of
        from coband.simulator.analysis.traces.reading import TraceReader, one_job

        history = history_of(TraceReader(one_job(run, label, replication)), message)
    events = sorted((*history.events, *history.effects), key=lambda event: event.seq) if effects else history.events
    print_events(events, run.labels, as_json)
    if not as_json:
        print(_sentence(history))


def _sentence(history: MessageHistory) -> str:
    origin = history.origin
    size = f"{origin.scalars} scalar{'' if origin.scalars == 1 else 's'}"
    text = f"{origin.kind}, {size}, from {origin.node} to {origin.peer}: "
    counts = {
        "delivered": history.count("deliver"),
        "lost": history.count("drop"),
        "sent again": history.count("retransmit"),
        "repeated": history.count("duplicate"),
        "given up": history.count("expire"),
    }
    over = f" over {history.hops} hops" if history.hops else ""
    copies = f"{history.copies} cop{'y' if history.copies == 1 else 'ies'}{over}"
    text += ", ".join([copies, *(f"{count} {word}" for word, count in counts.items() if count)])
    if history.first is not None:
        until = "" if history.first == history.last else f" to {history.last:.6g}"
        text += f"; {history.first:.6g}{until} time units on the way"
    return f"{text}."
