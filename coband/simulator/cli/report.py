"""``coband report``: an HTML report about one or several runs."""

from __future__ import annotations

from pathlib import Path

import click

from coband.simulator.cli.options import FORCE, LATEST_HELP, RUNS, BadInput, against, analysed, out_file

NAME = "report.html"
SEVERAL = "comparison.html"


@click.command(epilog=LATEST_HELP)
@RUNS
@against
@out_file(f"Output file; by default {NAME} in the run directory, or {SEVERAL} for several runs.")
@FORCE
def report(paths: tuple[Path, ...], against: str | None, out: Path | None, force: bool) -> None:
    """Write a report about one or several runs: one self-contained HTML file."""
    if out is not None and out.suffix.lower() not in ("", ".html", ".htm"):
        raise BadInput(f"--out {out}: a report is HTML; end its name with .html. `coband plot` draws its figures.")
    from coband.simulator.analysis.report.catalogue import broken
    from coband.simulator.analysis.report.page import page
    from coband.simulator.experiments.store.files import keep_file

    with analysed(paths, against) as analysis:
        text = page(analysis)
    for name, why in broken().items():
        click.echo(f"warning: the panel {name!r} of an extension is left out: {why}", err=True)
    folder = paths[0] if paths[0].is_dir() else paths[0].parent
    file = out or (Path(SEVERAL) if len(paths) > 1 else folder / NAME)
    keep_file(file, text.encode("utf-8", "backslashreplace"), force=force)
    click.echo(file)
