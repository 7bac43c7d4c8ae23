"""``coband plot``: the figures of a report as files for a paper."""

from __future__ import annotations

from pathlib import Path

import click

from coband.simulator.cli.options import FORCE, BadInput, out_directory
from coband.simulator.cli.runs import RUNS, RUNS_HELP, against, analysed, extra, write

FORMATS = ("pdf", "svg", "png")


@click.command(epilog=RUNS_HELP)
@RUNS
@against
@click.option(
    "--figure", "names", multiple=True, metavar="NAME", help="Only this figure, such as regret or heat; repeatable."
)
@click.option(
    "--format",
    "formats",
    type=click.Choice(FORMATS),
    multiple=True,
    default=("pdf",),
    show_default=True,
    help="Format of the files; repeatable.",
)
@click.option(
    "--dpi",
    type=click.IntRange(20, 1000),
    metavar="N",
    default=200,
    show_default=True,
    help="Dots per inch of PNG files.",
)
@out_directory("Directory of the figures.", default=Path("figures"))
@FORCE
def plot(
    paths: tuple[Path, ...],
    against: str | None,
    names: tuple[str, ...],
    formats: tuple[str, ...],
    dpi: int,
    out: Path,
    force: bool,
) -> None:
    """Draw the figures of a report as PDF, SVG or PNG."""
    with extra():
        from coband.simulator.experiments.report import contents
    unknown = [name for name in names if name not in contents.NAMES]
    if unknown:
        raise BadInput(f"there is no figure {unknown[0]!r}; there is {', '.join(contents.NAMES)}.")
    with analysed(paths, against) as analysis:
        found = list(contents.figures(analysis, names or contents.NAMES))
        files = [(out / f"{one.name}.{kind}", contents.rendered(one, kind, dpi)) for one in found for kind in formats]
    missing = [name for name in names if name not in {one.name for one in found}]
    for file, content in files:
        write(file, content, force)
        click.echo(file)
    if missing:
        raise BadInput(f"these runs have nothing to draw for {', '.join(missing)}; the report says why.")
