"""``coband trace``: analyse the events of a stored run."""

from __future__ import annotations

import math
from collections import defaultdict
from heapq import nlargest
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from coband.simulator.analysis.traces import FORMATS
from coband.simulator.cli import options
from coband.simulator.cli.events import cell, print_events, print_json, print_pair
from coband.simulator.cli.lazy import Group
from coband.simulator.cli.options import RUN, RUNS_HELP, AtLeast, BadInput, RunPath, opened
from coband.simulator.terminal import tables

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from coband.simulator.analysis.traces.causes import MessageHistory
    from coband.simulator.analysis.traces.difference import TraceComparison
    from coband.simulator.analysis.traces.verification import TraceVerification
    from coband.simulator.analysis.traces.waits import LongWait
    from coband.simulator.experiments.store.store import StoredJob, StoredRun

LABEL = click.option("--label", metavar="LABEL", help="Only this label.")
REPLICATION = click.option("--replication", type=AtLeast(0), help="Only this replication, counted from 0.")
choice = options.options(LABEL, REPLICATION)
"""The options that select jobs."""


@click.group(cls=Group)
def trace() -> None:
    """Analyse the events of a run, and export them."""


@trace.command(epilog=RUNS_HELP)
@RUN
@choice
@click.option("--event", metavar="EVENT", help="Only this event, such as send.")
@click.option("--node", metavar="NODE", help='Only events at this node: "server", "agent 3" or 3.')
@click.option("--kind", metavar="KIND", help="Only messages of this kind.")
@click.option("--message", type=AtLeast(0), help="Only this message, its copies and what forwards it.")
@click.option("--time", "interval", metavar="A..B", help="Only events from time A to time B; A or B may be omitted.")
@click.option("--limit", type=AtLeast(0), help="Largest number of events to print.")
@options.JSON_LINES
def show(
    path: Path,
    label: str | None,
    replication: int | None,
    event: str | None,
    node: str | None,
    kind: str | None,
    message: int | None,
    interval: str | None,
    limit: int | None,
    as_json: bool,
) -> None:
    """Print events, in order.

    The number of a message stands in the column "message"; it belongs to one job, so that --message needs --label and
    --replication where a run has several.
    """
    start, end = parse_interval(interval)
    with opened(path) as run:
        from coband.simulator.analysis.traces import causes, reading

        jobs = reading.traced(run.select(label, replication))
        at = reading.spelled(node, jobs)
        events = run.events(label, replication, event=event, node=at, kind=kind, start=start, end=end)
        if message is not None:
            history = causes.follow(reading.TraceReader(reading.one_job(run, label, replication)), message)
            own = {one.seq for one in history.events}
            events = (one for one in events if one.seq in own)
        print_events(islice(events, limit), run, as_json)
        if message is not None and not as_json:
            print(_of_message(history, run))


def parse_interval(text: str | None) -> tuple[float | None, float | None]:
    """``A..B``, ``A..`` or ``..B`` as (start, end)."""
    if text is None:
        return None, None
    first, dots, last = text.partition("..")
    try:
        if dots and (first.strip() or last.strip()):
            start, end = (float(one) if one.strip() else None for one in (first, last))
            if start is None or end is None or start <= end:
                return start, end
    except ValueError:
        pass
    raise BadInput(f"--time {text!r} is not an interval of simulated time; give A..B, A.. or ..B, such as 10..20.")


def _of_message(history: MessageHistory, run: StoredRun) -> str:
    origin = run.named(history.origin)
    size = f"{origin.scalars} scalar{'' if origin.scalars == 1 else 's'}"
    counts = {
        "delivered": history.count("deliver"),
        "lost": history.count("drop"),
        "sent again": history.count("retransmit"),
        "repeated": history.count("duplicate"),
        "given up": history.count("expire"),
    }
    over = f" over {history.hops} hops" if history.hops else ""
    copies = f"{history.copies} cop{'y' if history.copies == 1 else 'ies'}{over}"
    text = ", ".join([copies, *(f"{count} {word}" for word, count in counts.items() if count)])
    if history.first is not None:
        until = "" if history.first == history.last else f" to {history.last:.6g}"
        text += f"; {history.first:.6g}{until} time units on the way"
    return f"{origin.kind}, {size}, from {origin.node} to {origin.peer}: {text}."


@trace.command(epilog=RUNS_HELP, short_help="Print the causes of an event, back to the turn that started the chain.")
@RUN
@click.argument("seq", metavar="SEQ", type=AtLeast(0))
@choice
@click.option("--all", "whole", is_flag=True, help="Continue beyond that turn, to its own causes.")
@options.JSON_LINES
def why(path: Path, seq: int, label: str | None, replication: int | None, whole: bool, as_json: bool) -> None:
    """Print event number SEQ, its cause, the cause of that, and so on, back to the turn that started the chain."""
    with opened(path) as run:
        from coband.simulator.analysis.traces.causes import why as chain_of
        from coband.simulator.analysis.traces.reading import TraceReader, one_job

        chain = chain_of(TraceReader(one_job(run, label, replication)), seq, whole=whole)
        print_events(chain.events, run, as_json)
        if not as_json:
            print(chain.told(run, "--all"))


@trace.command(epilog=RUNS_HELP, short_help="Print the longest waits of agents, and for whom they waited.")
@RUN
@choice
@click.option("--limit", type=AtLeast(1), default=10, show_default=True, help="Largest number of waits to print.")
@options.JSON_LINES
def waits(path: Path, label: str | None, replication: int | None, limit: int, as_json: bool) -> None:
    """Print the longest waits of agents: who waited, when, for whom, and what that one did meanwhile.

    A wait is divided along the causal chain of the event that ends it: own turns of the nodes on it, messages that they
    handled, times away, times in which they did nothing of this, and messages on the way or repeated after a loss.
    "wait" and "resume" are numbers of events; `coband trace why RUN RESUME` prints the chain. A second table ranks the
    nodes that agents waited for, by the sum of all such waits.
    """
    with opened(path) as run:
        from coband.simulator.analysis.traces import waits as waiting
        from coband.simulator.analysis.traces.reading import traced

        found, named = waiting.waits(traced(run.select(label, replication)), limit), run.names
    if as_json:
        for one in found.longest:
            print_json({**vars(one), "time": one.time})
        return
    if not found.count:
        print("No agent has waited.")
        return
    names = ("label", "replication", "agent", "from", "until", "time", "for", *waiting.DOING, "wait", "resume")
    tables.show(names, [_of_wait(one, waiting.DOING, named) for one in found.longest], left=3)
    count = f"{found.count:,} wait{'' if found.count == 1 else 's'}"
    print(f"{count}, {found.time:.6g} time units together; the longest {len(found.longest):,} are shown.")
    if any(one.resume is None for one in found.longest):
        print(
            "until never: nothing ended the wait before the agent left or the run ended, so its causes are not known."
        )
    held = defaultdict[tuple[str, str], list[float]](list)
    for node, times in found.held.items():
        held[node[0], named.get(node, node[2])] += times
    ranked = nlargest(limit, held.items(), key=lambda item: sum(item[1]))
    rows = [[*node, f"{sum(times):.6g}", f"{len(times):,}"] for node, times in ranked]
    tables.show(("label", "waited for", "time", "waits"), rows, left=2)


def _of_wait(wait: LongWait, columns: Sequence[str], named: Mapping[tuple[str, int, str | None], str]) -> list[str]:
    agent, whom = (named.get((wait.label, wait.replication, node), node) for node in (wait.agent, wait.waited_for))
    never = wait.resume is None
    parts = [f"{time:.4g}" if (time := wait.doing.get(what)) else "-" for what in columns]
    until = "never" if never else f"{wait.end:.6g}"
    numbers = (wait.wait, "-" if never else wait.resume)
    cells = (wait.label, wait.replication, agent, f"{wait.start:.6g}", until, f"{wait.time:.4g}")
    return [*map(str, (*cells, whom or "-", *parts, *numbers))]


@trace.command(epilog=RUNS_HELP, short_help="Count events, messages and scalars.")
@RUN
@choice
@click.option(
    "--by",
    metavar="COLUMN[,COLUMN]",
    default="event",
    help="Columns to group by: event, kind, node, round, or several of them.",
)
@options.JSON_LINES
def stats(path: Path, label: str | None, replication: int | None, by: str, as_json: bool) -> None:
    """Count events, messages and scalars of each label, summed over replications."""
    from coband.simulator.analysis.traces import reading

    columns = [word.strip() for word in by.split(",")]
    for word in columns:
        if word not in reading.GROUPS:
            raise BadInput(f"--by {word!r} is not one of {', '.join(map(repr, reading.GROUPS))}.")
    with opened(path) as run:
        jobs = reading.traced(run.select(label, replication))
        found = reading.tally(jobs, *columns)
        broken = sum(job.status not in ("finished", "waiting") for job in jobs)
    if broken:
        click.echo(f"note: {broken} of {len(jobs)} jobs did not finish; their events until then count", err=True)
    rows = []
    for tally in found:
        counts = {name: getattr(tally, name) for name in reading.COUNTS}
        if as_json:
            print_json({"label": tally.label, **dict(zip(columns, tally.groups, strict=True)), **counts})
        groups = ["-" if part is None else str(part) for part in tally.groups]
        rows.append([tally.label, *groups, *(f"{count:,}" for count in counts.values())])
    if not as_json:
        tables.show(["label", *columns, *reading.COUNTS], rows, left=1 + len(columns))


@trace.command(
    epilog=RUNS_HELP.replace("RUN is", "A and B are each"), short_help="Find the first event in which two runs differ."
)
@click.argument("first", metavar="A", type=RunPath())
@click.argument("second", metavar="B", type=RunPath())
@LABEL
@click.option("--other-label", metavar="LABEL", help="The label in B, if it differs from the one in A.")
@REPLICATION
@options.JSON_LINES
@click.pass_context
def diff(
    context: click.Context,
    /,
    first: Path,
    second: Path,
    label: str | None,
    other_label: str | None,
    replication: int | None,
    as_json: bool,
) -> None:
    """Find the first event that only one of A and B has, although both have all its causes.

    The numbers of events, and the order of simultaneous events of different nodes, do not matter. The exit status is 1
    if the runs differ.
    """
    same = True
    with opened(first) as here, opened(second) as there:
        from coband.simulator.analysis.traces import difference
        from coband.simulator.analysis.traces.reading import TraceReader
        from coband.simulator.experiments.runs.code_version import differences, explained

        computers = here.manifest.get("hardware"), there.manifest.get("hardware")
        for a, b in difference.pairs(here, there, label, other_label, replication):
            found = difference.compare(TraceReader(a), TraceReader(b))
            if as_json:
                unlike = [] if found.same else differences(*computers)
                print_json({**_difference(a, b, found), "hardware": unlike})
            else:
                if same and not found.same and (sentence := explained(*computers, ("A", "B"))):
                    print(sentence)
                names = a.label if a.label == b.label else f"{a.label} and {b.label}"
                print(f"{names}, replication {a.replication}: {_of_difference(found)}")
                if not found.same:
                    print_pair(("A", "B"), (found.here, found.there), here.labels | there.labels)
                if found.columns:
                    print(f"differs in {', '.join(found.columns)}")
            same = same and found.same
    context.exit(0 if same else 1)


def _difference(a: StoredJob, b: StoredJob, found: TraceComparison) -> dict[str, object]:
    here, there = (None if event is None else event._asdict() for event in (found.here, found.there))
    names = {"label": a.label, "other_label": b.label, "replication": a.replication}
    return {**names, "same": found.same, "common": found.common, "columns": list(found.columns), "a": here, "b": there}


def _of_difference(found: TraceComparison) -> str:
    event = found.here or found.there
    if event is None:
        return f"the same, {found.common:,} events"
    where = f"at {event.node} at time {found.time:.12g}"
    return f"the first difference is {where}, after {found.common:,} common events"


@trace.command(epilog=RUNS_HELP, short_help="Run a read-only SQL query.")
@RUN
@click.argument("sql", metavar="SQL")
@click.option(
    "--seconds",
    type=options.Finite(min=0, max=86_400, min_open=True),
    metavar="SECONDS",
    default=30.0,
    help="Time limit of the query.",
)
@options.JSON_LINES
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
        answer = queries.query(run.file, sql, seconds)
        if as_json:
            for row in answer.rows:
                print_json(dict(zip(answer.columns, map(_plain, row), strict=True)))
        else:
            tables.stream(answer.columns, ([cell(_digits(value)) for value in row] for row in answer.rows))


def _plain(value: object) -> object:
    """A value in a JSON type: bytes become hexadecimal digits, numbers that are not finite become null."""
    return None if isinstance(value, float) and not math.isfinite(value) else _digits(value)


def _digits(value: object) -> object:
    return value.hex() if isinstance(value, bytes) else value


@trace.command(epilog=RUNS_HELP, short_help="Write events for Perfetto, or as Parquet.")
@RUN
@choice
@click.option("--format", "form", type=click.Choice(FORMATS), required=True, help="Format of the output.")
@options.out_file("Output file, compressed if it ends with .gz; by default standard output (not for parquet).")
@options.FORCE
def export(path: Path, label: str | None, replication: int | None, form: str, out: Path | None, force: bool) -> None:
    """Write the events of a run.

    perfetto: open the file (also FILE.json.gz) at https://ui.perfetto.dev.
    parquet: one row per event, with the columns of the view `trace` (without ages).
    `coband trace show RUN --json` prints the same rows as JSON lines.
    """
    with opened(path) as run:
        from coband.simulator.analysis.traces.exporting import export as write

        write(run, run.select(label, replication), form, out, replace=force)
    if out is not None:
        click.echo(str(out))


@trace.command(epilog=RUNS_HELP, short_help="Check a trace against its fingerprint and the ledger.")
@RUN
@choice
@options.JSON_LINES
@click.pass_context
def verify(context: click.Context, /, path: Path, label: str | None, replication: int | None, as_json: bool) -> None:
    """Compute fingerprint, ledger and results of a run again from its events; exit status 1 if any of them differs.

    It also checks that traces are complete, and has SQLite check the whole store.
    """
    good = True
    with opened(path) as run:
        from coband.simulator.analysis.traces import verification

        for result in verification.verify(run, run.select(label, replication)):
            good = good and not result.differences
            names, found = {"label": result.job.label, "replication": result.job.replication}, list(result.differences)
            if as_json:
                remark = result.remark or None
                print_json({**names, "events": result.events, "remark": remark, "differences": found})
            else:
                click.echo(_of_job(result))
        for sentence in verification.of_store(run):
            good = False
            if as_json:
                print_json({"store": str(run.file), "differences": [sentence]})
            else:
                click.echo(sentence)
    context.exit(0 if good else 1)


def _of_job(result: TraceVerification) -> str:
    head = f"{result.job.label}, replication {result.job.replication}: "
    if result.differences:
        return "\n".join(f"{head}{difference}" for difference in result.differences)
    if not result.events:
        return head + (result.remark or "no events")
    finding = f"consistent as far as it goes; {result.remark}" if result.remark else "ok"
    return f"{head}{result.events:,} events, {finding}"
