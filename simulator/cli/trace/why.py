"""``coband trace why``: the causes of an event."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from coband.simulator.cli.trace.common import JSON, RUN, choice, opened, print_events

if TYPE_CHECKING:
    from coband.simulator.experiments.traces.causes import Chain


@click.command()
@RUN
@click.argument("seq", type=click.IntRange(min=0))
@choice
@click.option("--all", "whole", is_flag=True, help="Continue beyond that turn, to its own causes.")
@JSON
def why(path: Path, seq: int, label: str | None, replication: int | None, whole: bool, as_json: bool) -> None:
    """Print event number SEQ, its cause, the cause of that, and so on, back to the turn that started the chain."""
    with opened(path) as run:
        from coband.simulator.experiments.traces.causes import why as chain_of
        from coband.simulator.experiments.traces.reading import TraceReader, one_job

        chain = chain_of(TraceReader(one_job(run, label, replication)), seq, whole=whole)
    print_events(chain.events, as_json)
    if not as_json:
        print(_sentence(chain))


def _sentence(chain: Chain) -> str:
    event, origin = chain.events[0], chain.origin
    if origin.event == "turn":
        began = f"turn {origin.value:g} of {origin.node}"
    else:
        began = f"{origin.event} at {origin.node}, which nothing in the run led to"
    messages = f"{chain.messages} message{'' if chain.messages == 1 else 's'}"
    text = f"event {event.seq} goes back to {began}: {messages} and {chain.delay:.6g} time units before."
    if origin.cause is not None:
        text += f" That turn could begin because of event {origin.cause}; --all continues."
    return text
