"""``coband trace query``: SQL queries."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

import click

from coband.simulator.cli.options import JSON_LINES, BadInput, Finite
from coband.simulator.cli.trace.common import RUN, RUNS_HELP, cell, opened, print_json
from coband.simulator.terminal import tables

GRACE_SECONDS = 5.0
MOST_SECONDS = 86_400.0


@click.command(epilog=RUNS_HELP)
@RUN
@click.argument("sql", metavar="SQL")
@click.option(
    "--seconds",
    type=Finite(min=0, max=MOST_SECONDS, min_open=True),
    metavar="SECONDS",
    default=30.0,
    help="Time limit of the query.",
)
@JSON_LINES
def query(path: Path, sql: str, seconds: float, as_json: bool) -> None:
    """Run one SELECT. docs/store.md describes the tables; `trace` is the view with names in place of codes.

    The query cannot write anything, attach a database or change a setting.
    """
    with opened(path) as run:
        from coband.simulator.analysis.traces import query as queries

        if waiting := len(run.uncollected):
            click.echo(
                f"warning: {waiting} jobs are not collected yet and left out; ask for their files in {path / 'jobs'}",
                err=True,
            )
        with _ended_after(seconds + GRACE_SECONDS):
            answer = queries.query(run.file, sql, seconds)
            if as_json:
                for row in answer.rows:
                    print_json(dict(zip(answer.columns, map(_plain, row), strict=True)))
            else:
                tables.stream(answer.columns, ([cell(_digits(value)) for value in row] for row in answer.rows))


@contextmanager
def _ended_after(seconds: float) -> Iterator[None]:
    """End this process after some time: SQLite looks at its time limit between instructions, and one may take hours."""

    def end() -> None:
        os.write(
            2, b"coband: the query is stuck in a single step of SQLite, so it was broken off. Use shorter texts.\n"
        )
        os._exit(BadInput.exit_code)

    timer = Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _plain(value: object) -> object:
    """A value in a JSON type: bytes become hexadecimal digits, numbers that are not finite become null."""
    return None if isinstance(value, float) and not math.isfinite(value) else _digits(value)


def _digits(value: object) -> object:
    return value.hex() if isinstance(value, bytes) else value
