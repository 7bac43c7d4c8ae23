"""``coband check``: run a scenario and compare its counts with what it says to expect, or with a lock file; or
attack the privacy that it promises.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from coband.simulator.cli.options import SHIPPED, BadInput, Request, out_directory, shared
from coband.simulator.terminal import progress, tables

if TYPE_CHECKING:
    from coband.simulator.analysis.audit import Verdict
    from coband.simulator.experiments.runs.expectations import Comparison


TRIALS, FEWEST_TRIALS = 1000, 100
CONFIDENCE = 0.99
"""With which the bound on epsilon holds."""


@click.command(epilog=SHIPPED)
@shared
@click.option("--privacy", is_flag=True, help="Attack the privacy that the scenario promises instead.")
@out_directory("Run directory, new or empty; by default nothing is kept.")
@click.pass_context
def check(context: click.Context, /, privacy: bool, out: Path | None, **options: Any) -> None:
    """Run the scenario in FILE and compare its counts with its `expect:` section.

    FILE may be a lock file of `coband counts`, such as counts.lock.json, too: all its scenarios run again, and their
    counts are compared. Ends with status 1 when a count differs, or replications are too few to tell.

    With --privacy the messages of one run are sent many times (--replications, by default 1000) with fresh noise, with
    one pull more and without it, and an attack learns to tell which; without a section messages.privacy, those of
    algorithms that put noise on what they send. Ends with status 1 when epsilon is proved to be larger than what the
    accountant promises. The attack sees the contents of one run's messages, not how many there are or when.
    """
    if privacy:
        context.exit(int(_is_refuted(out, **options)))
    if options["file"].suffix == ".json":
        context.exit(int(_differ_from_lock(out, **options)))
    from coband.simulator.experiments.runs import expectations
    from coband.simulator.experiments.store.store import open_run

    request = Request(**options)
    study = request.study()
    scenario = study.variants[0].scenario
    try:
        expectations.require(scenario, request.only, study.possible_replications)
        with tempfile.TemporaryDirectory(prefix="coband-check-") as scratch, progress.Bar(study.name) as bar:
            report = request.execute(study, out or Path(scratch) / "run", bar)
            progress.warn(report)
            with open_run(report.directory) as run:
                early = study.until is not None
                comparisons = expectations.compare(scenario, report.object, early, run.series)
    except expectations.ExpectationError as error:
        raise BadInput(f"{request.file}: {error}") from error
    _show(comparisons, len(report.failures))
    for sentence in expectations.close_calls(comparisons, report.object):
        click.echo(sentence, err=True)
    differ = any(not comparison.holds for comparison in comparisons)
    context.exit(progress.exit_code(report) or int(differ))


def _differ_from_lock(
    out: Path | None, file: Path, settings: tuple[str, ...], workers: int | None, **others: Any
) -> bool:
    """Whether counts differ from those of a lock file; other options are not for that."""
    from coband.simulator.cli import counts

    _refuse({"out": out, **others}, f"{file} is a lock file of counts: with it go --set and --workers only.")
    return counts.differ(file, settings, workers or 1)


def _is_refuted(
    out: Path | None,
    file: Path,
    settings: tuple[str, ...],
    replications: int | None,
    seed: int | None,
    only: tuple[str, ...],
    **others: Any,
) -> bool:
    """Whether an attack on the messages of an algorithm proves that there is less noise than promised."""
    from coband.simulator.analysis.audit import audited
    from coband.simulator.experiments.runs.study import study_of

    _refuse({"out": out, **others}, "with --privacy go --set, --replications, --seed and --only only.")
    if (replications or TRIALS) < FEWEST_TRIALS:
        raise BadInput(f"--replications {replications}: --privacy needs at least {FEWEST_TRIALS} trials.")
    scenario = Request(file, settings, seed=seed).load()
    labels = [variant.label for variant in study_of(scenario, only).variants]
    refuted = False
    for entry in (entry for entry in scenario.algorithms if entry.label in labels):
        verdict = audited(scenario, entry, replications or TRIALS, CONFIDENCE)
        refuted = refuted or verdict.refuted
        click.echo(_of_attack(verdict))
    return refuted


def _refuse(given: Mapping[str, Any], why: str) -> None:
    if any(value not in (None, ()) for value in given.values()):
        raise BadInput(why)


def _of_attack(verdict: Verdict) -> str:
    true, false = verdict.true_positives / verdict.trials, verdict.false_positives / verdict.trials
    seen = "the noised pull" if verdict.messages == 1 else f"{verdict.messages} messages"
    gaussian = (
        f"  and at least {verdict.least_gaussian:.3g} of Gaussian noise\n" if verdict.least_gaussian is not None else ""
    )
    end = "MORE THAN ACCOUNTED: there is less noise than promised" if verdict.refuted else "as accounted"
    return (
        f"{verdict.label}: accounted epsilon {verdict.accounted:.4g}\n"
        f"  an attack that saw {seen} says yes in {true:.1%} of {verdict.trials} trials with the pull, and in "
        f"{false:.1%} without\n"
        f"  so epsilon is at least {verdict.least:.3g}, whatever the mechanism ({verdict.confidence:.0%} confidence)\n"
        f"{gaussian}  {end}"
    )


def _show(comparisons: list[Comparison], broken: int = 0) -> None:
    from coband.simulator.experiments.statistics import numerals

    rows = [
        [
            item.label,
            item.count,
            "all" if item.replication is None else str(item.replication),
            item.expected,
            tables.between(item.got, item.interval),
            numerals.evidence(item.e_value),
            item.word,
        ]
        for item in comparisons
    ]
    header = ["label", "count", "replication", "expected", "got", "e", ""]
    if all(item.e_value is None for item in comparisons):
        header, rows = [*header[:5], ""], [[*row[:5], row[6]] for row in rows]
    tables.show(header, rows, left=2)
    undecided = sum(item.open and not item.holds for item in comparisons)
    left = f"; {undecided} undecided, which more --replications would tell" if undecided else ""
    if broken:
        left += f"; jobs that broke off and are not compared: {broken}"
    click.echo(f"{sum(item.holds for item in comparisons)} of {len(rows)} counts are as expected{left}")
