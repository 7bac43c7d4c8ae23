"""The tables of results: what ``coband run`` and ``coband sweep`` end with; ``coband show`` and Python repeat them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from coband.simulator.terminal import tables

if TYPE_CHECKING:
    from coband.simulator.experiments.runs.footing import Snapshot
    from coband.simulator.experiments.runs.results import Entry, Results
    from coband.simulator.experiments.store.store import StoredRun
    from coband.simulator.metrics import Metric

WITH_SERVER = {
    "regret": "regret",
    "uplink_scalars": "uplink",
    "downlink_scalars": "downlink",
    "scalars": "scalars",
    "rounds": "rounds",
    "simulated_time": "simulated time",
}
ON_A_GRAPH = {
    "regret": "group regret",
    "deliveries": "deliveries",
    "transmissions": "transmissions",
    "scalars": "scalars",
    "simulated_time": "simulated time",
}
MOST_ROWS = 60
MOST_BROKEN = 6
COLUMNS = {"regret": "regret", "scalars": "scalars", "rounds": "rounds", "simulated_time": "simulated time"}
PER_AGENT = {"regret_per_agent": "regret per agent"}
"""Beside these where numbers of agents are compared."""
MEANING = "mean ± half the width of the 95 % confidence interval (Student t over n replications)"


@dataclass(frozen=True)
class TextTable:
    """A table of texts; see `tables.show` for its parts."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int = 1


Part = TextTable | str


def show(parts: Iterable[Part]) -> None:
    """Print tables and sentences."""
    for part in parts:
        if isinstance(part, TextTable):
            tables.show(part.header, part.rows, part.left)
        else:
            click.echo(part)


def of_stored(run: StoredRun, path: Path) -> Iterator[Part]:
    """What the command that made a stored run or sweep printed at its end."""
    from coband.simulator.experiments.store.files import RUN
    from coband.simulator.experiments.store.variants import summary

    found = summary(run)
    if run.kind == RUN:
        yield from of_run(found, run.metrics, path)
        return
    query = "SELECT count(DISTINCT text) FROM parameters WHERE key = 'agents.count'"
    yield from of_sweep(found, path, several_sizes=run.connection.execute(query).fetchone()[0] > 1)


def of_run(found: Results, metrics: Mapping[str, Metric], directory: Path) -> Iterator[Part]:
    """The results of a run: a row for each label, what each has reached at the same times, and where the run is.

    Args:
        found: what results.json holds.
        metrics: what results can have, by name.
        directory: of the run.
    """
    entries = [entry for entry in found["results"] if entry["replications"]]
    if entries:
        columns = WITH_SERVER if entries[0]["mean"].get("deliveries") is None else ON_A_GRAPH
        made = {"turns": "turns"} if len({entry["mean"]["turns"] for entry in entries}) > 1 else {}
        columns = made | columns | _declared(metrics, entries)
        rows = [[entry["label"], *_cells(entry, columns)] for entry in entries]
        yield TextTable(["label", "n", *columns.values(), "wall seconds"], rows)
    if any(len(entry["replications"]) > 1 for entry in entries):
        yield MEANING
    if len({entry["mean"]["simulated_time"] for entry in entries}) > 1:
        yield from _timeline(directory, [entry["label"] for entry in entries])
    for entry in entries:
        yield from _closest(entry)
    yield from _broken(found)
    yield f"run directory: {directory}"


def _declared(metrics: Mapping[str, Metric], entries: Iterable[Entry]) -> dict[str, str]:
    """Key -> title of the numbers that problem and algorithms declare to be better low or high, and privacy."""
    return {
        name: metric.heading
        for name, metric in metrics.items()
        if (metric.better or name == "epsilon")
        and name not in (*WITH_SERVER, *ON_A_GRAPH, "messages", "mean_age")
        and any(name in entry["mean"] for entry in entries)
    }


def _closest(entry: Entry) -> Iterator[Part]:
    """Say so where rounding may have decided which arm was pulled."""
    from coband.simulator.experiments.runs.expectations import ROUNDING, in_words
    from coband.simulator.experiments.runs.results import numbers

    gaps = numbers("closest_decision", entry["replications"])
    if close := [gap for gap in gaps if gap < ROUNDING]:
        others = f" in {len(close)} of {len(gaps)} replications" if len(gaps) > 1 else ""
        yield f"{entry['label']}: {in_words(min(close))}{others}; other processors may give other results"


def _timeline(directory: Path, labels: list[str]) -> Iterator[Part]:
    """What each algorithm has reached at the same simulated times."""
    from coband.simulator.experiments.runs.footing import snapshots
    from coband.simulator.experiments.store.store import open_run

    with open_run(directory) as stored:
        yield from of_snapshots(list(snapshots({label: stored.series(label) for label in labels})))


def of_snapshots(found: Sequence[Snapshot]) -> Iterator[Part]:
    """A table of what labels have reached at the same simulated times, with the verdict at each of them."""
    from coband.simulator.experiments.statistics.numerals import between, column

    columns = [
        column([at.time for at in found], digits=5),
        [at.label for at in found],
        *([between(getattr(at, key), at.ci95[key]) for at in found] for key in ("turns", "regret", "reward")),
        column([at.regret_per_turn for at in found]),
        [f"{at.scalars:,.0f}" for at in found],
        [at.verdict for at in found],
    ]
    yield "at the same simulated time (mean ± half the width of the 95 % interval):"
    header = ["time", "label", "turns", "regret", "reward", "regret/turn", "scalars", ""]
    rows = dict.fromkeys(zip(*columns, strict=True))  # times may differ by less than is shown
    yield TextTable(header, list(rows), left=2)


def _cells(entry: Entry, columns: Iterable[str]) -> list[str]:
    mean, bounds = entry["mean"], entry["ci95"]
    cells = [tables.estimate(mean.get(key), bounds.get(key)) for key in columns]
    return [str(len(entry["replications"])), *cells, f"{mean['wall_seconds']:.2f}"]


def of_sweep(found: Results, directory: Path, *, several_sizes: bool) -> Iterator[Part]:
    """The results of a sweep: the best parameters where they were looked for, otherwise a row for each variant.

    Args:
        found: what results.json holds.
        directory: of the sweep.
        several_sizes: whether its variants have different numbers of agents.
    """
    if "best" in found:
        yield from _best(found["best"])
    else:
        yield from _variants(found["results"], COLUMNS | (PER_AGENT if several_sizes else {}))
    yield from _broken(found)
    yield f"sweep directory: {directory}"


def _broken(found: Results) -> Iterator[Part]:
    """Say beside the results of the others which labels broke off, and how often; errors stand where they happened."""
    broken = Counter(failure["label"] for failure in found["failures"])
    done = Counter({entry["label"]: len(entry["replications"]) for entry in found["results"]})
    if broken and done.total():
        parts = [f"{label} ({count} of {count + done[label]})" for label, count in broken.items()]
        more = f" and {len(parts) - MOST_BROKEN} more" if len(parts) > MOST_BROKEN else ""
        yield f"broke off, and missing above: {', '.join(parts[:MOST_BROKEN])}{more}; results.json says why"


def _best(lines: Sequence[Mapping[str, Any]]) -> Iterator[Part]:
    contexts = list(dict.fromkeys(name for line in lines for name in line["context"]))
    rows, more = list[list[str]](), ["pulls"] * differ(lines)
    for line in lines:
        context = [line["context"].get(name, "-") for name in contexts]
        chosen = "-" if line["chosen"] is None else ", ".join(f"{name}={text}" for name, text in line["chosen"].items())
        rows.append(
            [
                line["entry"],
                *context,
                chosen or "(the only one)",
                str(line["candidates"]),
                _estimate(line["tuning"]),
                _estimate(line["fresh"]),
                *([_estimate(line["pulls"])] if more else []),
            ]
        )
    if not rows:
        return
    key = lines[0]["on"]
    header = ["algorithm", *contexts, "best parameters", "of", f"{key} when tuned", f"{key} on fresh seeds", *more]
    yield TextTable(header, rows, left=len(contexts) + 2)
    yield "mean ± half the width of the 95 % confidence interval (number of replications)"
    yield from judged(line.get("judged", "") for line in lines)
    yield "the best of many looks better on the seeds that chose it than it is; compare fresh seeds"


def differ(lines: Sequence[Mapping[str, Any]]) -> bool:
    """Whether lines have different numbers of pulls."""
    return len({one["mean"] for line in lines if (one := line.get("pulls"))}) > 1


def judged(texts: Iterable[str]) -> Iterator[Part]:
    """What candidates were compared by, where they make different numbers of pulls."""
    if found := list(dict.fromkeys(filter(None, texts))):
        yield f"numbers of pulls differ; means are of whole runs, but compared is {' and '.join(found)}"


def _estimate(found: Mapping[str, Any] | None) -> str:
    return "-" if found is None else f"{tables.estimate(found['mean'], found['ci95'])} ({found['n']})"


def _variants(entries: Sequence[Entry], columns: Mapping[str, str]) -> Iterator[Part]:
    names = list(dict.fromkeys(name for entry in entries for name in entry["parameters"]))
    rows = []
    for entry in entries:
        cells = [entry["parameters"].get(name, "-") for name in names]
        numbers = [tables.estimate(entry["mean"].get(key), entry["ci95"].get(key)) for key in columns]
        rows.append([entry["entry"], *cells, str(len(entry["replications"])), *numbers])
    shown = rows[:MOST_ROWS]
    if shown:
        yield TextTable(["algorithm", *names, "n", *columns.values()], shown, left=1)
        yield MEANING
    if len(rows) > len(shown):
        yield f"... and {len(rows) - len(shown)} more variants; results.json and run.sqlite have them all"
