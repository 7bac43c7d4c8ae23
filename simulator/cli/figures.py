"""``coband figures``: the figures of papers, run at the papers' sizes by one command."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from coband.simulator.cli import progress, sweep_view, tables
from coband.simulator.cli.options import BadInput, Request, out_directory
from coband.simulator.cli.plot import FORMATS
from coband.simulator.cli.runs import analysed, extra
from coband.simulator.cli.workers import placed, pool

if TYPE_CHECKING:
    from coband.simulator.experiments.runs.reporting import Report
    from coband.simulator.experiments.runs.workers import WorkerPool
    from coband.simulator.experiments.sweep.study import Sweep

PAPERS = ("async_kernel_ucb", "duets", "fn_ucb", "cope_kb", "coop_kernel_ucb")
QUICK = "_quick"


@click.command()
@click.argument("names", metavar="[PAPER|FIGURE]...", nargs=-1)
@click.option("--list", "listed", is_flag=True, help="List the figures with what they take, and do nothing else.")
@click.option("--quick", is_flag=True, help="Scaled-down studies instead of the papers' sizes.")
@click.option("--format", "form", type=click.Choice(FORMATS), default="pdf", help="Format of the figures.")
@placed
@out_directory("Directory; what is finished there does not run again.", default=Path("runs/figures"))
@click.pass_context
def figures(
    context: click.Context, /, names: tuple[str, ...], listed: bool, quick: bool, form: str, out: Path, **place: Any
) -> None:
    """Run the scenarios behind the figures of the papers, and draw them.

    A FIGURE is a shipped scenario, such as duets/h1; a PAPER is its folder. Each has a directory below --out with its
    runs, report.html and drawings. Where data are missing it is left out with the reason. Ctrl-C keeps what is
    finished; the same command goes on.
    """
    ready, left_out = _studies(_chosen(names, quick))
    if listed:
        _show_costs(ready)
        _show_left_out(left_out)
        return
    with extra():
        from coband.simulator.analysis.report import contents  # noqa: F401 - without it nothing could be drawn later
    from coband.simulator.experiments.store.files import replace_bytes

    done = list[list[str]]()
    with pool(**place) as workers:
        for number, (name, study) in enumerate(ready.items(), start=1):
            click.echo(f"{name}, {number} of {len(ready)}", err=True)
            report = _run(name, study, workers, out / name)
            progress.warn_of_end(report)
            if report.interrupted:
                context.exit(progress.exit_code(report))
            results = report.object["results"]
            seconds = sum(len(one["replications"]) * (one["mean"]["cpu_seconds"] or 0.0) for one in results)
            done.append([name, progress.duration(seconds), f"{report.status.failed:,}", str(out / name)])
            for file, content in _files(out / name, form):
                replace_bytes(file, content)
    tables.show(["figure", "computing", "broken off", "directory"], done, left=1)
    _show_left_out(left_out)
    context.exit(int(any(row[2] != "0" for row in done)))


def _chosen(names: Sequence[str], quick: bool) -> list[str]:
    """The scenarios that are meant, by name, in the order of the papers.

    Raises:
        BadInput: a name is neither a paper nor a figure.
    """
    from coband.simulator.experiments.scenario.input_problems import did_you_mean
    from coband.simulator.experiments.scenario.shipped import paths

    of_size = [name for name in paths() if name.endswith(QUICK) == quick]
    known = {paper: [name for name in of_size if name.startswith(f"{paper}/")] for paper in PAPERS}
    known |= {name.removesuffix(QUICK): [name] for found in list(known.values()) for name in found}
    for name in names:
        if name not in known:
            raise BadInput(f"there is no paper or figure {name!r}{did_you_mean(name, list(known)) or ';'} see --list.")
    return list(dict.fromkeys(found for name in names or PAPERS for found in known[name]))


def _studies(names: Sequence[str]) -> tuple[dict[str, Sweep], dict[str, str]]:
    """The studies that can run here, and why others cannot."""
    from coband.simulator.experiments.runs.preflight import preflight
    from coband.simulator.experiments.sweep.study import load_study

    ready: dict[str, Sweep] = {}
    left_out: dict[str, str] = {}
    for name in names:
        study = load_study(Path(name), ())
        problems = preflight(Path(name), (), study).problems
        if problems:
            left_out[name] = problems[0].message
        else:
            ready[name] = study
    return ready, left_out


def _show_costs(ready: dict[str, Sweep]) -> None:
    """A row for each figure."""
    tables.show(["figure", "jobs"], [[name, f"{study.jobs:,}"] for name, study in ready.items()], left=1)


def _show_left_out(left_out: dict[str, str]) -> None:
    for name, why in left_out.items():
        click.echo(f"\nleft out: {name}: {why}")


def _run(name: str, study: Sweep, workers: WorkerPool, where: Path) -> Report:
    from coband.simulator.experiments.runs.driver import drive
    from coband.simulator.experiments.runs.reporting import Commands
    from coband.simulator.experiments.sweep import directory

    progress.announce(study)
    place = directory.earlier(study.name, where)
    commands = Commands(Request(Path(name)).replay(), sys.argv, f"coband figures {name} --out {where}")
    with sweep_view.View(study.name) as view:
        return drive(study, place, workers=workers, commands=commands, listener=view)


def _files(where: Path, form: str) -> Iterator[tuple[Path, bytes]]:
    """The report, and all its figures as files of their own."""
    from coband.simulator.analysis.report import contents
    from coband.simulator.analysis.report.page import page

    with analysed((where,), None) as analysis:
        yield where / "report.html", page(analysis, ()).encode("utf-8", "backslashreplace")
        for one in contents.figures(analysis, contents.NAMES):
            yield where / f"{one.file}.{form}", contents.rendered(one, form, 200)
