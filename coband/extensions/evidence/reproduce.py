"""``coband reproduce``: what papers claim, tried on our own runs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from coband.extending import options, progress, tables

if TYPE_CHECKING:
    from coband.extending import executor
    from coband.extensions.evidence.claims.claim import PlacedClaim, Size
    from coband.extensions.evidence.claims.outcome import Outcome, Verdict
    from coband.extensions.evidence.claims.reproduction import Reproduction

OUT = Path("runs/reproduce")
SAMPLE_SEED = 1
INTERRUPTED = 130
LOWEST = 19
"""Of priorities."""


@click.command(
    epilog="A claim is a file below extensions/evidence/papers; give its paper, its name, the file, or nothing for all."
)
@click.argument("names", metavar="[PAPER|CLAIM]...", nargs=-1)
@click.option("--list", "listing", is_flag=True, help="List the claims, and do nothing else.")
@click.option("--quick", is_flag=True, help="Scaled-down studies: the mechanics, not the papers' sizes.")
@click.option("--full", is_flag=True, help="The papers' sizes; the default.")
@click.option("--seed", type=options.AtLeast(0), help="Seed of all studies, instead of their own.")
@click.option(
    "--budget", type=options.Hours(0, 100_000, min_open=True), metavar="HOURS", help="Stop after this time: 3h, 90m."
)
@click.option("--nice", is_flag=True, help="At the lowest priority, beside other work.")
@options.placed
@click.option(
    "--results", type=options.FOLDER, help="Directory of the results files; by default results in that of --out."
)
@click.option(
    "--pages",
    type=options.FOLDER,
    help="Write pages about the claims that come with coband there; without names nothing runs.",
)
@click.option(
    "--verify",
    type=options.AtLeast(1),
    metavar="JOBS",
    help="Run so many of the jobs behind the results files again, and compare fingerprints.",
)
@options.RESUME
@options.out_directory("Directory of the finished jobs.", default=OUT)
@options.JSON
@click.pass_context
def reproduce(
    context: click.Context,
    /,
    names: tuple[str, ...],
    listing: bool,
    quick: bool,
    full: bool,
    seed: int | None,
    budget: float | None,
    nice: bool,
    results: Path | None,
    pages: Path | None,
    verify: int | None,
    resume: bool,
    out: Path,
    as_json: bool,
    **place: Any,
) -> None:
    """Try what papers claim on our own runs, with intervals and verdicts.

    Replications go where they decide: to the claim that seems to need the least time. Every step is saved, and any
    look is allowed: a claim ends when it is decided, or would take longer than the budget. Claims share jobs. The
    verdicts of several claims have a false discovery rate of at most 5 %.
    """
    from coband.extensions.evidence.claims.figures import of_papers
    from coband.extensions.evidence.claims.jobs import JOBS
    from coband.extensions.evidence.claims.reproduction import Reproduction
    from coband.extensions.evidence.claims.results import origin, write

    if quick and full:
        raise options.BadInput("give --quick or --full, not both.")
    claims = _seeded(names, seed)
    where = results or out / "results"
    size: Size = "quick" if quick else "full"
    if listing:
        _list(claims, as_json)
    elif verify is not None:
        with options.pool(**place) as workers:
            context.exit(_verify(claims, where, verify, seed, workers, as_json))
    elif pages is not None and not (names or quick or full or budget or resume or seed is not None):
        _pages(where, pages)
    else:
        if (out / JOBS).is_dir() and not resume:
            raise options.BadInput(
                f"{out} has finished jobs already; go on with --resume, or choose another --out DIR."
            )
        earlier = _earlier(claims, where, size, seed, resume)
        if nice:
            os.nice(LOWEST)
        with options.pool(**place) as workers:
            how: dict[str, Any] = {"size": size, "budget": budget, "origin": origin(seed), "listener": progress.Bar}
            reproduction = Reproduction(claims, out, workers, **how, earlier=earlier)
            status = _run(reproduction, where)
            outcomes, drawn = reproduction.outcomes(), of_papers({one.paper for one in claims}, out, size, seed)
            written = write(where, outcomes, drawn)
        _show(outcomes, as_json)
        for path in written:
            click.echo(f"results file: {path}", err=as_json)
        if pages is not None:
            _pages(where, pages)
        context.exit(status)


def _seeded(names: Sequence[str], seed: int | None) -> list[PlacedClaim]:
    """The claims with these names, or all, on a seed of their own or the given one."""
    from coband.extensions.evidence.claims.reading import ALL, chosen

    claims = [one.seeded(seed) for one in chosen(names or [ALL])]
    if seed is not None and any(one.claim.tuning.seed == seed for one in claims):
        raise options.BadInput(
            f"--seed {seed} is the seed on which settings are chosen, which tests nothing; give another one."
        )
    return claims


def _run(reproduction: Reproduction, where: Path) -> int:
    """Run to the end or until Ctrl-C, and write what is found after each step; returns the exit status."""
    from coband.extensions.evidence.claims.jobs import Stopped
    from coband.extensions.evidence.claims.results import write

    try:
        reproduction.run(_told, lambda outcomes: write(where, outcomes, {}))
    except Stopped:
        return INTERRUPTED
    return 0


def _earlier(
    claims: Sequence[PlacedClaim], where: Path, size: Size, seed: int | None, resume: bool
) -> Mapping[str, Outcome] | None:
    """The results to go on from, if any are.

    Raises:
        BadInput: there are some that these would replace, or not go on from.
    """
    from coband.extensions.evidence.claims.results import read

    known = read(where)
    results = [known[one.key] for one in claims if one.key in known and known[one.key].replications]
    if results and not resume:
        raise options.BadInput(
            f"{where} has results of {results[0].claim} already; go on from them with --resume, or choose another "
            "--results DIR."
        )
    for one in results:
        if (one.size, one.origin.get("seed")) != (size, seed):
            own = "the claims' own seeds" if one.origin.get("seed") is None else f"seed {one.origin['seed']}"
            raise options.BadInput(
                f"{where} has results of {one.claim} at {one.size} size with {own}, which these would replace; choose "
                "another --results DIR."
            )
    return known if resume else None


def _list(claims: Sequence[PlacedClaim], as_json: bool) -> None:
    header, rows = ["claim", "where", "what"], [[one.key, one.claim.where, one.claim.title] for one in claims]
    if as_json:
        tables.show_json([dict(zip(header, row, strict=True)) for row in rows])
    else:
        tables.show(header, rows, left=3)
        click.echo(f"{len(claims)} claims")


def _told(outcome: Outcome) -> None:
    from coband.extensions.evidence.claims.outcome import verdicts

    click.echo(f"{outcome.claim}: {verdicts([outcome])[0]}, {outcome.replications} replications", err=True)


def _show(outcomes: Sequence[Outcome], as_json: bool) -> None:
    from coband.extensions.evidence.claims.outcome import verdicts

    found = verdicts(outcomes)
    if as_json:
        entries = [{**asdict(one), "verdict": verdict} for one, verdict in zip(outcomes, found, strict=True)]
        tables.show_json({"claims": entries})
        return
    rows = [
        [one.claim, verdict, str(one.replications), f"{one.cpu_hours:.2g}", remark(one, verdict)]
        for one, verdict in zip(outcomes, found, strict=True)
    ]
    tables.show(["claim", "verdict", "n", "CPU hours", "remark"], rows, left=2)
    counts = ", ".join(f"{found.count(one)} {one}" for one in dict.fromkeys(found))
    click.echo(
        f"{len(found)} claim{'' if len(found) == 1 else 's'}: {counts}; "
        "at most 5 % of the verdicts on claims of this table are expected to be wrong (closed e-BH)"
    )


def remark(outcome: Outcome, verdict: Verdict) -> str:
    """Why a claim is open, and what would decide it."""
    parts = [outcome.reason] if outcome.reason else []
    if verdict == "undecided" and outcome.missing is not None:
        cost = "" if outcome.cost_hours is None else f", about {outcome.cost_hours:.2g} CPU hours"
        parts.append(f"about {max(1, outcome.missing)} more replications seem to decide it{cost}")
    return "; ".join(parts)


def _verify(
    claims: Sequence[PlacedClaim],
    where: Path,
    count: int,
    seed: int | None,
    workers: executor.JobExecutor,
    as_json: bool,
) -> int:
    from tempfile import TemporaryDirectory

    from coband.extensions.evidence.claims import results, verification

    outcomes = results.read(where)
    if seed is None:  # that of the results files
        claims = [one.seeded(outcomes[one.key].origin.get("seed")) for one in claims if one.key in outcomes]
    jobs = verification.sample(claims, outcomes, count, SAMPLE_SEED)
    if not jobs:
        raise options.BadInput(f"{where} has no results of these claims.")
    with TemporaryDirectory(prefix="coband-verify-") as place:
        found = verification.verify(jobs, Path(place), workers)
        wrong = list(verification.disagreements(claims, outcomes, jobs, Path(place)))
    same, lost = sum(one.same for one in found), [one for one in found if one.missing]
    different, status = len(found) - same - len(lost), int(same < len(found) or bool(wrong))
    if different:
        _name_hardware([outcomes[one.key] for one in claims if one.key in outcomes])
    bare = verification.without_numbers(claims, outcomes)
    if as_json:
        jobs_run = [{**asdict(one), "comparison": one.comparison} for one in found]
        tables.show_json({"jobs": jobs_run, "disagreements": wrong, "without_numbers": bare})
        return status
    rows = [[one.study, one.variant, str(one.replication), one.comparison] for one in found]
    tables.show(["study", "variant", "replication", "fingerprint"], rows, left=2)
    for why in dict.fromkeys(one.missing for one in lost):
        click.echo(f"no fingerprint: {why}", err=True)
    for sentence in wrong:
        click.echo(sentence, err=True)
    if bare:
        all_, names = sum(one.key in outcomes for one in claims), ", ".join(bare)
        unknown = "claims have no numbers of their replications on file, so that no verdict follows from them"
        click.echo(f"{len(bare)} of {all_} {unknown}: {names}", err=True)
    without = f", {len(lost)} without a fingerprint" if lost else ""
    click.echo(f"{len(found)} jobs run again: {same} the same, {different} different{without}")
    return status


def _name_hardware(outcomes: Sequence[Outcome]) -> None:
    """Say in what way the computers that computed outcomes differ from this one, before results are said to differ."""
    from coband.extending import code_version

    here, whose = code_version.hardware(), ("results on file", "those of now")
    stored = [one.origin.get("hardware") for one in outcomes]
    sentences = [code_version.explained(computer, here, whose) for computer in stored if computer]
    for sentence in dict.fromkeys(text for text in sentences if text):
        click.echo(sentence, err=True)
    if not all(stored):
        click.echo(
            "Some results on file do not say what computed them; the last bits of other hardware or libraries "
            "differ, and with them close decisions.",
            err=True,
        )


def _pages(where: Path, pages: Path) -> None:
    from coband.extensions.evidence.claims import pages as writing

    for path in writing.write(where, pages):
        click.echo(f"page: {path}")
    click.echo(writing.badge(where))
