"""``coband trace follow``: the life of a message."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from coband.simulator.cli.trace.common import JSON, RUN, choice, opened, print_events

if TYPE_CHECKING:
    from coband.simulator.experiments.traces.lives import Life


@click.command()
@RUN
@click.argument("message", type=click.IntRange(min=0))
@choice
@click.option("--effects", is_flag=True, help="Print also what its deliveries led to directly.")
@JSON
def follow(path: Path, message: int, label: str | None, replication: int | None, effects: bool, as_json: bool) -> None:
    """Print what became of the message of number MESSAGE (column "message" of `coband trace show`).

    On a graph this includes the sends that pass the message on, whichever of them is named.
    """
    with opened(path) as run:
        from coband.simulator.experiments.traces.lives import follow as life_of
        from coband.simulator.experiments.traces.reading import TraceReader, one_job

        life = life_of(TraceReader(one_job(run, label, replication)), message)
    events = sorted((*life.events, *life.effects), key=lambda event: event.seq) if effects else life.events
    print_events(events, as_json)
    if not as_json:
        print(_sentence(life))


def _sentence(life: Life) -> str:
    origin = life.origin
    size = f"{origin.scalars} scalar{'' if origin.scalars == 1 else 's'}"
    text = f"{origin.kind}, {size}, from {origin.node} to {origin.peer}: "
    counts = {
        "delivered": life.count("deliver"),
        "lost": life.count("drop"),
        "sent again": life.count("retransmit"),
        "repeated": life.count("duplicate"),
        "given up": life.count("expire"),
    }
    copies = (
        f"{life.copies} cop{'y' if life.copies == 1 else 'ies'} over {life.hops} hops"
        if life.hops
        else f"{life.copies} cop{'y' if life.copies == 1 else 'ies'}"
    )
    text += ", ".join([copies, *(f"{count} {word}" for word, count in counts.items() if count)])
    if life.first is not None:
        until = "" if life.first == life.last else f" to {life.last:.6g}"
        text += f"; {life.first:.6g}{until} time units on the way"
    return f"{text}."
