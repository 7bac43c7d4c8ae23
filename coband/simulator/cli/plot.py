"""``coband plot``: the figures of a report as files for a paper."""

from __future__ import annotations

from pathlib import Path

import click

from coband.simulator.cli.options import FORCE, BadInput, Finite, Out
from coband.simulator.cli.runs import LATEST_HELP, RUNS, against, analysed

FORMATS = ("pdf", "svg", "png")
SIZE = (3.3, 2.2)
INCHES = Finite(0.5, 60)


def places(output: Path, formats: tuple[str, ...], names: list[str]) -> list[list[tuple[Path, str]]]:
    """For each name of a drawing its files with their formats.

    Raises:
        BadInput: the output has another ending, or is one file for several drawings.
    """
    ending = output.suffix[1:]
    if not ending or output.is_dir():
        return [[(output / f"{name}.{form}", form) for form in formats] for name in names]
    if ending not in FORMATS:
        raise BadInput(f"{output}: a drawing is {', '.join(FORMATS)}, by the ending of its file.")
    if len(names) > 1:
        raise BadInput(f"{output} is one file for {len(names)} drawings: {', '.join(names)}. Name one, or a directory.")
    return [[(output, ending)] for _ in names]


@click.command(epilog=LATEST_HELP)
@RUNS
@against
@click.option(
    "--figure", "names", multiple=True, metavar="NAME", help="Only this figure, such as regret or heat; repeatable."
)
@click.option(
    "--panel",
    "panels",
    multiple=True,
    metavar="NAME",
    help="Only this panel of a figure, such as regret-time or results-scalars, in the size given; repeatable.",
)
@click.option(
    "--environment", metavar="VALUES", help="The environment of a sweep that a panel shows, such as noise=0.1."
)
@click.option("--width", type=INCHES, metavar="INCHES", help=f"Width of a panel; by default {SIZE[0]}.")
@click.option("--height", type=INCHES, metavar="INCHES", help=f"Height of a panel; by default {SIZE[1]}.")
@click.option(
    "--format",
    "formats",
    type=click.Choice(FORMATS),
    multiple=True,
    default=("pdf",),
    help="Format of the files; repeatable.",
)
@click.option("--dpi", type=click.IntRange(20, 1000), metavar="N", default=200, help="Dots per inch of PNG files.")
@click.option(
    "--out",
    type=Out(path_type=Path),
    metavar="DIR|FILE",
    default=Path("figures"),
    help="Directory of the figures; for one figure or panel also a file, whose ending is its format.",
)
@FORCE
def plot(
    paths: tuple[Path, ...],
    against: str | None,
    names: tuple[str, ...],
    panels: tuple[str, ...],
    environment: str | None,
    width: float | None,
    height: float | None,
    formats: tuple[str, ...],
    dpi: int,
    out: Path,
    force: bool,
) -> None:
    """Draw figures of a report as PDF, SVG or PNG, or panels in any size."""
    from coband.simulator.analysis.report import contents
    from coband.simulator.analysis.report import panels as single
    from coband.simulator.experiments.store.files import keep_file

    if panels and names:
        raise BadInput("give either --figure or --panel.")
    if not panels and (width or height or environment):
        raise BadInput("--width, --height and --environment are for single panels; name one with --panel.")
    unknown = [name for name in names if name not in contents.NAMES]
    if unknown:
        raise BadInput(f"there is no figure {unknown[0]!r}; there is {', '.join(contents.NAMES)}.")
    with analysed(paths, against) as analysis:
        if panels:
            chosen, size = single.environment(analysis, environment), (width or SIZE[0], height or SIZE[1])
            found = [single.panel_figure(chosen, name, size) for name in panels]
        else:
            found = list(contents.figures(analysis, names or contents.NAMES))
        stems = list(panels) or [one.file for one in found]
        files = [
            (file, contents.rendered(one, kind, dpi))
            for one, of in zip(found, places(out, formats, stems), strict=True)
            for file, kind in of
        ]
    missing = [name for name in names if name not in {one.name for one in found}]
    for file, content in files:
        keep_file(file, content, force=force)
        click.echo(file)
    if missing:
        titles = {one.name: one.title for one in contents.DRAWINGS}
        raise BadInput(
            "\n".join(f"these runs have nothing to draw for {name}. It shows: {titles[name]}" for name in missing)
        )
