"""``coband plot``: the panels of a report as files for a paper."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from coband.simulator.cli import options
from coband.simulator.cli.options import LATEST_HELP, BadInput, RunPath, analysed, or_latest

FORMATS = ("pdf", "svg", "png", "csv")
INCHES = options.Finite(0.5, 60)


def places(output: Path, formats: tuple[str, ...], names: list[str]) -> list[list[tuple[Path, str]]]:
    """For each panel its files with their formats.

    Raises:
        BadInput: the output has another ending, or is one file for several panels.
    """
    ending = output.suffix[1:]
    if not ending or output.is_dir():
        return [[(output / f"{name}.{form}", form) for form in formats] for name in names]
    if ending not in FORMATS:
        raise BadInput(f"{output}: a drawing is {', '.join(FORMATS)}, by the ending of its file.")
    if len(names) > 1:
        raise BadInput(f"{output} is one file for {len(names)} panels: {', '.join(names)}. Name one, or a directory.")
    return [[(output, ending)] for _ in names]


@click.command(epilog=LATEST_HELP)
@click.argument("words", metavar="[RUN|NAME]...", nargs=-1)
@options.against
@click.option(
    "--where",
    "only",
    multiple=True,
    metavar="COLUMN=VALUE",
    help="Only rows with this value, such as x=time; repeatable.",
)
@click.option("--width", type=INCHES, metavar="INCHES", help="Width of a figure; by default 3.3 for each drawing.")
@click.option("--height", type=INCHES, metavar="INCHES", help="Height of each line of drawings; by default 2.2.")
@click.option(
    "--format",
    "formats",
    type=click.Choice(FORMATS),
    multiple=True,
    default=("pdf",),
    help="Format of the files, csv for the numbers; repeatable.",
)
@click.option("--dpi", type=click.IntRange(20, 1000), metavar="N", default=200, help="Dots per inch of PNG files.")
@click.option(
    "--out",
    type=options.Place(path_type=Path),
    metavar="DIR|FILE",
    default=Path("figures"),
    help="Directory of the figures; for one also a file, whose ending is its format.",
)
@options.FORCE
@click.pass_context
def plot(
    context: click.Context,
    words: tuple[str, ...],
    against: str | None,
    only: tuple[str, ...],
    width: float | None,
    height: float | None,
    formats: tuple[str, ...],
    dpi: int,
    out: Path,
    force: bool,
) -> None:
    """Draw panels of a report as PDF, SVG or PNG, or write their numbers as CSV.

    NAME is a panel, such as regret or trade_off; by default all that these runs have.
    """
    from coband.simulator.analysis.report.catalogue import broken, panel, panels
    from coband.simulator.analysis.report.drawing import file_figure, rendered
    from coband.simulator.analysis.report.style import Styles
    from coband.simulator.experiments.store.files import keep_file

    known = panels()
    names = [word for word in words if word in known and not Path(word).exists()]
    for word in words:
        if word in broken() and not Path(word).exists():
            panel(word)  # says why it does not work
        if word not in names and word != "latest" and not Path(word).exists():
            raise BadInput(f"{word} is neither a run nor a panel; panels are {', '.join(known)}.")
    place = RunPath()
    paths = or_latest(context, None, tuple(place.convert(word, None, context) for word in words if word not in names))
    chosen = {column: value for column, _, value in (one.partition("=") for one in only)}
    with analysed(paths, against) as analysis:
        styles, found, empty = Styles(analysis), dict[str, Any](), list[str]()
        for name in names or known:
            one = known[name]
            frame = one.numbers(analysis, **chosen) if names else one.numbers(analysis)
            if frame.empty and names:
                empty.append(f"these runs have nothing to draw for {name}. It shows: {one.caption}")
            elif not frame.empty and (names or one.draw is not None):
                found[name] = frame
        files = []
        for (name, frame), of in zip(found.items(), places(out, formats, list(found)), strict=True):
            drawn = None
            for file, kind in of:
                if kind == "csv":
                    files.append((file, frame.to_csv(index=False).encode()))
                    continue
                drawn = drawn or file_figure(known[name], frame, styles, width, height)
                files.append((file, rendered(drawn, kind, dpi)))
    for file, content in files:
        keep_file(file, content, force=force)
        click.echo(file)
    if empty:
        raise BadInput("\n".join(empty))
