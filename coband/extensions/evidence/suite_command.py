"""``coband suite``: algorithms compared on frozen scenarios."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from coband.extending import Group, options, progress, tables, warn_of_plugins

if TYPE_CHECKING:
    from coband.extensions.evidence.suite.submission import Submission
    from coband.extensions.evidence.suite.suites import Size, Suite

OUT = Path("runs/suite")
FEW = 5
"""For so few algorithms the output says where they do not fit."""
SUITE = click.option("--suite", "name", metavar="NAME", default="core-1", show_default=True, help="Which suite.")
ALONE = click.option("--alone", is_flag=True, help="Without the results of the algorithms that come with coband.")
RESULTS = click.argument("files", metavar="[FILE]...", nargs=-1, type=options.Place(path_type=Path))


@click.group(cls=Group)
def suite() -> None:
    """Compare algorithms on frozen scenarios, tuned alike, with ranks as far as they are known.

    `run` writes a results file; `rank` compares several results files; `verify` runs a sample of
    somebody's results again.
    """
    warn_of_plugins()


@suite.command("list")
@options.JSON
def list_(as_json: bool) -> None:
    """The suites and their scenarios."""
    from coband.extensions.evidence.suite import suites

    found = [suites.suite(name) for name in suites.suites()]
    if as_json:
        tables.show_json([one.definition.model_dump(mode="json") for one in found])
        return
    for one in found:
        one.check()
        rows = [[name, one.world(name).metric, one.header(name)] for name in one.definition.scenarios]
        click.echo(f"{one.name}, digest {one.digest[:16]}")
        tables.show(["scenario", "compares", "asks"], rows, left=3)


@suite.command()
@SUITE
@click.option(
    "--algorithm", "algorithms", multiple=True, metavar="NAME", help="What is compared; repeatable. By default all."
)
@click.option(
    "--scenario", "scenarios", multiple=True, metavar="NAME", help="Where; repeatable. By default in all scenarios."
)
@click.option("--quick", is_flag=True, help="Scaled-down scenarios, and fewer replications.")
@options.placed
@options.out_directory("Where finished jobs and the results file are kept; a run goes on there.", default=OUT)
@options.FORCE
@click.pass_context
def run(
    context: click.Context,
    /,
    name: str,
    algorithms: tuple[str, ...],
    scenarios: tuple[str, ...],
    quick: bool,
    out: Path,
    force: bool,
    **place: Any,
) -> None:
    """Tune and test algorithms, and write a results file.

    Every algorithm tries the same number of settings on public seeds. The seeds of the test follow from the code and
    the settings that were chosen. Ctrl-C keeps what is finished; the same command goes on. It ends with status 1 where
    an algorithm broke off.
    """
    from coband.extending import Registry
    from coband.extensions.evidence.suite import suites
    from coband.extensions.evidence.suite.submission import Runner

    found, known = suites.suite(name), list(Registry.installed().algorithms)
    for one in algorithms:
        if one not in known:
            near = ", ".join(difflib.get_close_matches(one, known, n=3, cutoff=0.0))
            advice = "a plugin has to be installed in this environment, as by `pip install -e DIR`"
            raise options.BadInput(f"no algorithm {one!r} is installed; the nearest names are {near}; {advice}")
    size: Size = "quick" if quick else "full"
    chosen, where = list(dict.fromkeys(algorithms)) or known, _scenarios(found, scenarios)
    named = [name, size, chosen[0] if len(chosen) == 1 else str(len(chosen))]
    file = out / f"{'-'.join(named if len(where) == len(found.definition.scenarios) else named + where)}.json"
    if file.exists() and not force:
        raise options.BadInput(f"{file} is there already; give --force to replace it, or another --out DIR.")
    with options.pool(**place) as workers:
        try:
            submission = Runner(found, chosen, where, size, out, workers, progress.Bar).run()
        except KeyboardInterrupt:
            click.echo(f"what is finished is kept in {out}, and the same command goes on", err=True)
            raise
    submission.write(file)
    _show(found, [submission], as_json=False)
    click.echo(f"results file: {file}")
    context.exit(int(any(test.failure for tests in submission.tests.values() for test in tests.values())))


@suite.command()
@RESULTS
@ALONE
@options.JSON
def rank(files: tuple[Path, ...], alone: bool, as_json: bool) -> None:
    """Print scores and places of results files.

    The algorithms that come with coband are ranked with them; without FILE, only they are.
    """
    if not files:
        from coband.extensions.evidence.suite import shipped, suites

        own = [one for one in shipped.shipped("core-1") if one.size == "full"]
        _show(suites.suite("core-1"), own, as_json)
        return
    found, submissions = _read(files, alone)
    _show(found, submissions, as_json)


@suite.command()
@click.argument("file", metavar="FILE", type=options.Place(path_type=Path))
@click.option(
    "--replications",
    type=options.AtLeast(1),
    help="Number of results that run again, half of them of tuning; 20 by default.",
)
@click.option("--seed", type=options.AtLeast(0), help="Seed of the sample; by default another one each time.")
@options.placed
@click.pass_context
def verify(context: click.Context, /, file: Path, replications: int | None, seed: int | None, **place: Any) -> None:
    """Run a sample of the results behind FILE again.

    Half of it are replications of the test, half are settings that tuning tried. Fingerprints and numbers are compared;
    what is wrong with the file itself is said first.
    """
    import secrets
    from tempfile import TemporaryDirectory

    from coband.extensions.evidence.suite import verification

    found, (submission,) = _read([file], alone=True)
    found.can_run(submission.tests, submission.size)
    wrong = list(verification.contradictions(found, submission))
    for sentence in [*wrong, *verification.differences(found, submission)]:
        click.echo(sentence, err=True)
    drawn = secrets.randbits(32) if seed is None else seed
    with TemporaryDirectory(prefix="coband-suite-") as place_, options.pool(**place) as workers:
        checked = verification.verify(found, submission, replications or 20, Path(place_), workers, drawn)
    rows = [[one.scenario, one.label, one.part, "same" if one.same else "DIFFERS"] for one in checked]
    tables.show(["scenario", "algorithm", "part", "fingerprint"], rows, left=3)
    different = sum(not one.same for one in checked)
    counts = f"{len(checked) - different} the same, {different} different"
    click.echo(f"{len(checked)} results again (--seed {drawn}): {counts}")
    context.exit(int(bool(different or wrong)))


def _scenarios(found: Suite, names: Sequence[str]) -> list[str]:
    """Those that are named, in the order of the suite; all if none is.

    Raises:
        BadInput: the suite has no such scenario.
    """
    known = list(found.definition.scenarios)
    for name in (one for one in names if one not in known):
        raise options.BadInput(f"{found.name} has no scenario {name!r}; there are {', '.join(known)}.")
    return [one for one in known if one in names] or known


def _read(files: Sequence[Path], alone: bool) -> tuple[Suite, list[Submission]]:
    """The results files, all of one suite and size, and those that come with coband unless they stand alone.

    Raises:
        BadInput: they are of several, or something is missing in one.
    """
    from coband.extensions.evidence.suite import suites
    from coband.extensions.evidence.suite.shipped import compact, shipped
    from coband.extensions.evidence.suite.submission import read

    submissions = [read(file) for file in files]
    kinds = {(one.suite, one.sha256, one.size) for one in submissions}
    if len(kinds) > 1:
        named = zip(files, submissions, strict=True)
        said = "; ".join(f"{file}: {one.suite} {one.size}, digest {one.sha256[:16]}" for file, one in named)
        raise options.BadInput(f"only results of one version and one size of a suite can be compared: {said}.")
    found = suites.suite(submissions[0].suite)
    for file, one in zip(files, submissions, strict=True):
        if gap := one.gap(found):
            raise options.BadInput(f"{file} is not a whole results file of `coband suite run`: {gap}.")
    known, size = list(map(compact, submissions)), submissions[0].size
    own = [] if alone else [one for one in shipped(found.name) if (one.size, one.sha256) == (size, found.digest)]
    return found, submissions + [one for one in own if one not in known]


def _show(found: Suite, submissions: Sequence[Submission], as_json: bool) -> None:
    """Tables of all scenarios that were run, or the same as JSON."""
    from dataclasses import asdict

    from coband.extensions.evidence.suite.scores import misfit, present, table

    result = {name: table(found, name, submissions) for name in present(found, submissions)}
    if as_json:
        tables.show_json({name: [asdict(row) for row in rows] for name, rows in result.items()})
        return
    for name, rows in result.items():
        click.echo(f"\n{name}: {found.header(name)}")
        cells = [
            [
                row.name,
                row.score_text,
                row.place,
                *(tables.number(one) for one in (row.metric, row.means["bits"], row.means["simulated_time"])),
                row.settings,
                row.remark or ("Pareto front" if row.pareto else ""),
            ]
            for row in rows
            if row.metric is not None
        ]
        metric = found.world(name).metric
        tables.show(["algorithm", "score", "place", metric, "bits", "time", "settings", "remark"], cells)
        for row in rows:
            if row.remark.startswith("broke off"):
                click.echo(f"{row.name} {row.remark}")
    missing: dict[str, list[str]] = {}
    for one in submissions:
        for scenario, reasons in one.unfit.items() if len(one.algorithms) <= FEW else ():
            for name, reason in reasons.items():
                missing.setdefault(f"{name} {misfit(name, reason)}", []).append(scenario)
    for sentence, scenarios in missing.items():
        click.echo(f"\n{sentence} ({', '.join(scenarios)})")
