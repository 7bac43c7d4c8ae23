"""``coband report``: an HTML report about one or several runs."""

from __future__ import annotations

from pathlib import Path

import click

from coband.simulator.cli.options import BadInput
from coband.simulator.cli.runs import RUNS, against, analysed, extra, write

NAME = "report.html"
SEVERAL = "comparison.html"


@click.command()
@RUNS
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help=f"The output file; by default {NAME} in the run directory, or {SEVERAL} for several runs.",
)
@against
@click.option(
    "--replication",
    "replications",
    type=click.IntRange(min=0),
    multiple=True,
    help="Put the messages of this replication into the page before those of others; repeatable.",
)
@click.option("--force", is_flag=True, help="Replace a file that differs.")
def report(
    paths: tuple[Path, ...], output: Path | None, against: str | None, replications: tuple[int, ...], force: bool
) -> None:
    """Write a report about one or several runs: one self-contained HTML file.

    RUN is a run directory or its run.sqlite.
    """
    with extra():
        from coband.simulator.experiments.report.page import page
    with analysed(paths, against) as analysis:
        known = sorted({number for one in analysis.contenders for number in one.records})
        for number in replications:
            if number not in known:
                raise BadInput(f"there is no replication {number}; there is {', '.join(map(str, known))}.")
        text = page(analysis, replications)
    file = output or _place(paths)
    write(file, text.encode("utf-8", "backslashreplace"), force)
    click.echo(file)


def _place(paths: tuple[Path, ...]) -> Path:
    if len(paths) > 1:
        return Path(SEVERAL)
    return (paths[0] if paths[0].is_dir() else paths[0].parent) / NAME
