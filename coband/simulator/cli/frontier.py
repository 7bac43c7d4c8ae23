"""``coband frontier``: search for the algorithms and parameters that are not dominated."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from coband.simulator.cli import options
from coband.simulator.cli.options import AtLeast, BadInput, Request
from coband.simulator.cli.sweep import driven
from coband.simulator.terminal import progress, results, tables
from coband.simulator.terminal.output import warn_of_plugins
from coband.simulator.terminal.results import Part, TextTable

VERDICTS = {"frontier": "on the frontier", "undecided": "not distinguishable", None: "not measured yet"}


@click.command(epilog=options.SHIPPED)
@options.FILE
@options.settings()
@click.option(
    "--replications", type=AtLeast(2), help="Number of fresh replications of each finalist; at least 10 by default."
)
@options.SEED
@options.ONLY
@click.option(
    "--objectives",
    metavar="NAME,NAME",
    help="What is traded: metrics such as regret,scalars,simulated_time; by default the problem's aim and scalars.",
)
@click.option(
    "--vary",
    multiple=True,
    metavar="KEY=VALUES",
    help="What is searched: algorithms.Async.threshold=0.01..100, or values with commas; repeatable. By default the "
    "grid: of the file, or else what algorithms declare.",
)
@click.option(
    "--at-most",
    "limits",
    multiple=True,
    metavar="NAME=VALUE",
    help="Also say what to choose if a number, which is an objective then, must not be worse than this, such as "
    "scalars=1e5; repeatable.",
)
@click.option("--budget", "jobs", type=AtLeast(1), metavar="JOBS", default=400, help="Stop after this number of jobs.")
@click.option("--trials", type=AtLeast(1), default=3, help="Replications of each candidate.")
@options.placed
@options.RESUME
@options.out_directory("Where it is kept; by default runs/<name>-<number>.")
@options.JSON
@click.pass_context
def frontier(
    context: click.Context,
    /,
    file: Path,
    settings: tuple[str, ...],
    replications: int | None,
    seed: int | None,
    only: tuple[str, ...],
    objectives: str | None,
    vary: tuple[str, ...],
    limits: tuple[str, ...],
    jobs: int,
    trials: int,
    resume: bool,
    out: Path | None,
    as_json: bool,
    **place: Any,
) -> None:
    """Search for the Pareto front of regret and communication over the parameters of the algorithms in FILE.

    Candidates are compared on replications of their own. The best of them run again on fresh replications, whose means
    and intervals are shown. A point counts as dominated only where paired differences show it. --resume goes on after
    Ctrl-C with the same options.
    """
    from coband.simulator.analysis.frontier.study import Request as Asked
    from coband.simulator.analysis.frontier.study import load_search

    warn_of_plugins()
    request = Request(file, settings, seed=seed)
    names = tuple(name.strip() for name in objectives.split(",")) if objectives else ()
    bounds = _limits(limits)
    asked = Asked(names, vary, only, jobs, trials, tuple(bounds))
    study = load_search(file, request.overrides(), asked, replications=replications)
    with options.pool(**place) as found:
        report = driven(request, study, found, resume, out)
    if as_json:
        tables.show_json(report.object)
        click.echo(f"search directory: {report.directory}", err=True)
    else:
        results.show(of_search(report.object["frontier"], report.directory, bounds))
    progress.warn(report)
    context.exit(progress.exit_code(report))


def _limits(given: Sequence[str]) -> dict[str, float]:
    """The largest values that objectives may have.

    Raises:
        BadInput: a limit is not of the form NAME=VALUE.
    """
    found = {}
    for text in given:
        name, _, value = text.partition("=")
        try:
            found[name] = float(value)
        except ValueError:
            found[name] = math.nan
        if math.isnan(found[name]):
            raise BadInput(f"--at-most {text}: must be NAME=VALUE, such as scalars=1e5.")
    return found


def of_search(found: Mapping[str, Any], directory: Path, bounds: Mapping[str, float]) -> Iterator[Part]:
    """The finalists as a table, which one to choose for what, and where the search is.

    Args:
        found: the section ``frontier`` of results.json.
        directory: of the search.
        bounds: objective -> the largest value that it may have.
    """
    if found["points"]:
        yield from _points(found, bounds)
    yield f"search directory: {directory}"


def _points(found: Mapping[str, Any], bounds: Mapping[str, float]) -> Iterator[Part]:
    from coband.simulator.analysis.frontier.finalists import COMPROMISE, choose

    points = {point["label"]: point for point in found["points"]}
    names = [one["name"] for one in found["objectives"]]
    parameters = list(dict.fromkeys(name for point in points.values() for name in point["parameters"]))
    more = results.differ(found["points"])
    yield TextTable(
        ["algorithm", *parameters, "standing", *names, *["pulls"] * more],
        [
            [
                point["entry"],
                *(point["parameters"].get(name, "-") for name in parameters),
                _standing(point),
                *(_number(point["fresh"][name]) for name in names),
                *([_number(point["pulls"])] if more else []),
            ]
            for point in points.values()
        ],
        left=2 + len(parameters),
    )
    count = max(point["fresh"][name]["n"] for point in points.values() for name in names)
    tried = len(found["candidates"])
    yield f"mean ± half the width of the 95 % confidence interval on {count} fresh replications of each"
    yield from results.judged(found.get("judged", ()))
    yield f"{tried} candidates were tried on other replications"
    if absent := found["searched"].keys() - {point["entry"] for point in points.values()}:
        why = "as they broke off or make less than half of the pulls of others"
        yield f"not ranked, {why}: {', '.join(sorted(absent))}"
    yield "under this network choose"
    for choice in found["choices"]:
        what = "for a compromise" if choice["on"] == COMPROMISE else f"for the best {choice['on']}"
        yield (f"  {what}: {_sentence(points[choice['label']], names)}")
    if bounds:
        better = {one["name"]: one["better"] for one in found["objectives"]}
        limit = " and ".join(f"{name} within {tables.number(value)}" for name, value in bounds.items())
        on = next((name for name in names if name not in bounds), None)
        point = choose(found["points"], better, on, bounds)
        yield f"  with {limit}: " + ("nothing was found" if point is None else _sentence(point, names))


def _standing(point: Mapping[str, Any]) -> str:
    if point["verdict"] == "beaten":
        return f"dominated by {point['beaten_by']}"
    unranked = point["verdict"] is None and all(one["n"] for one in point["fresh"].values())
    return "not ranked: too few pulls" if unranked else VERDICTS[point["verdict"]]


def _number(found: Mapping[str, Any]) -> str:
    return tables.estimate(found["mean"], found["ci95"])


def _sentence(point: Mapping[str, Any], names: Sequence[str]) -> str:
    """A point with its numbers on fresh replications, and how it stands."""
    numbers = ", ".join(f"{name} {_number(point['fresh'][name])}" for name in names)
    return f"{point['label']} ({numbers}; {_standing(point)})"
