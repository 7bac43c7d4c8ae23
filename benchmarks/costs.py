"""Measures what jobs cost, and fits the table that estimates before a run are made from.

    python -m benchmarks.costs measure FILE      # a job of every algorithm of every quick scenario, at several sizes
    python -m benchmarks.costs fit FILE          # writes simulator/experiments/runs/costs.json and prints its accuracy

A job is stopped after `MOST_SECONDS`; how far it was after each share of its time counts. The printed accuracy is
that for scenarios which the fit has not seen.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from coband.simulator.experiments.runs import costs
from coband.simulator.experiments.runs.job import Job
from coband.simulator.experiments.runs.work import Work, work
from coband.simulator.experiments.scenario.loading import BAD_INPUT
from coband.simulator.experiments.scenario.scenario import Scenario
from coband.simulator.experiments.sweep.study import load_study

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "simulator" / "experiments" / "runs" / "costs.json"
MOST_SECONDS, SHORTEST = 12.0, 0.005
SHARES = (0.25, 0.5, 1.0)
RIDGE = (3.0, 12.0, 12.0)
"""How strongly the slopes of N, d and K of single algorithms are drawn to those of all."""
GROWTHS = (1.0, 3.0)
LONG = 0.1
"""Seconds of jobs whose course is not that of their setup alone."""
SPREADS = (0.25, 1.2)
"""The smallest and the largest spread that the table has."""
Row = dict[str, Any]


class Enough(BaseException):
    """A job has run for long enough."""


def variants(file: Path) -> Iterator[tuple[str, Scenario]]:
    """The first variant of each entry of a scenario: as it is, with a trace, and with half of what costs."""
    whole = load_study(file).variants[0].scenario
    arms = getattr(whole.problem, "arms", None)
    sizes = {
        "agents.count": whole.agents.count,
        "problem.arms.dimension": getattr(arms, "dimension", None),
        "problem.arms.count": getattr(arms, "count", None),
    }
    halves = [f"{key}={size // 2}" for key, size in sizes.items() if size is not None and size >= 4]
    for trace, settings in (("off", []), ("protocol", []), *(("off", [half]) for half in halves)):
        try:
            study = load_study(file, settings, trace=trace)
        except BAD_INPUT:
            continue
        first = {variant.entry: variant for variant in reversed(study.variants)}
        for entry, variant in first.items():
            yield " ".join([entry, *settings]), variant.scenario


def measured(file: Path) -> Iterator[Row]:
    """A row for each share of each job: T, N, d, K and seconds; or, with a trace, bytes."""
    for title, scenario in variants(file):
        entry, marks, begun = scenario.algorithms[0], list[tuple[int, float]](), time.process_time()

        def pulse(pulls: int, begun: float = begun, marks: list[tuple[int, float]] = marks) -> None:
            marks.append((pulls, time.process_time() - begun))
            if marks[-1][1] > MOST_SECONDS:
                raise Enough

        size = None
        with TemporaryDirectory() as folder, suppress(Enough, *BAD_INPUT):
            store = Path(folder) / "job.sqlite"
            job = Job(0, entry.label, entry.algorithm.name, 0, scenario.seed, scenario.trace)
            outcome = work(Work(job, scenario, store), pulse).outcome
            if outcome.record is None:
                continue
            marks.append((int(outcome.record["turns"]), time.process_time() - begun))
            size = store.stat().st_size
        row = {"scenario": str(file.relative_to(ROOT)), "title": title, "algorithm": entry.algorithm.name}
        if scenario.trace != "off":
            if size is not None:
                yield row | {"known": costs.features(scenario, marks[-1][0]), "bytes": size, "whole": True}
            continue
        for share in SHARES if marks else ():
            pulls, seconds = next(mark for mark in marks if mark[1] >= share * marks[-1][1])
            known = costs.features(scenario, max(1, pulls))
            unknown = scenario.schedule.total_turns(scenario.agents.count) is None
            yield row | {"known": known, "seconds": seconds, "whole": share == 1, "open": unknown}


def measure(out: Path) -> None:
    """Measure every quick scenario whose data are there."""
    rows, calibration = list[Row](), math.inf
    for file in sorted([ROOT / "scenarios" / "quickstart.yaml", *ROOT.glob("scenarios/**/*_quick.yaml")]):
        found = list(measured(file))
        rows += found
        print(
            file.relative_to(ROOT),
            len(found),
            f"{sum(row.get('seconds', 0.0) for row in found if row['whole']):.1f} s",
            flush=True,
        )
        calibration = min(calibration, costs.calibration())
        out.write_text(json.dumps({"calibration": calibration, "rows": rows}))


def courses(rows: Sequence[Row]) -> list[Row]:
    """A row for each job: s = c + a T^b through its three points, b in `GROWTHS`, and its seconds at the end.

    (s3 - s2) / (s2 - s1) = (T3^b - T2^b) / (T2^b - T1^b) gives b whatever the setup c is.
    """
    found, grid = list[Row](), np.linspace(*GROWTHS, 41)
    for first, second, third in zip(rows[0::3], rows[1::3], rows[2::3], strict=True):
        pulls = np.exp([one["known"][0] for one in (first, second, third)])
        s = np.array([one["seconds"] for one in (first, second, third)])
        steps = np.maximum(np.diff(s), 1e-6)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = (pulls[2] ** grid - pulls[1] ** grid) / (pulls[1] ** grid - pulls[0] ** grid)
        usable = len(set(pulls.tolist())) == 3
        b = float(grid[np.argmin(abs(np.log(ratios) - np.log(steps[1] / steps[0])))]) if usable else None
        found.append({**third, "growth": b, "long": s[2] >= LONG})
    return found


def fitted(rows: Sequence[Row], what: str, means: Sequence[float]) -> dict[str, list[Any]]:
    """Algorithm -> intercept and slopes; "" for one that is not measured.

    The slope of T is the median growth of the algorithm's longer jobs, the others are least squares, drawn to those of
    all by a ridge. Slopes of d and K below 0 count as 0.
    """
    names = sorted({row["algorithm"] for row in rows})
    everywhere = np.median([row["growth"] for row in rows if row.get("growth") and row["long"]] or [1.0])
    growths = {
        name: float(np.median([*own, *[everywhere] * 2]))
        for name in names
        for own in [[row["growth"] for row in rows if row["algorithm"] == name and row.get("growth") and row["long"]]]
    }
    filled = [[m if v is None else v for v, m in zip(row["known"], means, strict=True)] for row in rows]
    x, y = np.array(filled) - np.array(means), np.log([row[what] for row in rows])
    own = np.array([names.index(row["algorithm"]) for row in rows])
    y = y - np.array([growths[row["algorithm"]] for row in rows]) * x[:, 0]
    one = np.hstack([np.ones((len(rows), 1)), x[:, 1:]])
    columns = np.zeros((len(rows), 4 * (1 + len(names))))
    columns[:, :4] = one
    for index, place in enumerate(own):
        columns[index, 4 * (1 + place) : 4 * (2 + place)] = one[index]
    penalty = np.array([1e-6, 0.1, 0.1, 0.1, *[0.05, *RIDGE] * len(names)])
    solved = np.linalg.solve(columns.T @ columns + np.diag(penalty), columns.T @ y).reshape(-1, 4)
    found: dict[str, list[Any]] = {}
    for place, name in enumerate(["", *names]):
        slopes = solved[0, 1:] + (solved[place, 1:] if name else 0.0)
        slopes = np.array([growths.get(name, everywhere), slopes[0], *np.maximum(slopes[1:], 0.0)])
        mine = own == place - 1 if name else np.ones(len(rows), dtype=bool)
        level = float(np.mean(y[mine] - x[mine, 1:] @ slopes[1:])) - float(slopes @ np.array(means))
        found[name] = [round(level, 3), [round(float(slope), 3) for slope in slopes]]
    return found


def wholes(rows: Sequence[Row]) -> dict[str, list[float]]:
    """Algorithm -> mean and spread of log seconds of jobs whose pulls nobody knows before."""
    logs: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        logs[row["algorithm"]].append(math.log(row["seconds"]))
    spreads = {name: float(np.clip(np.std(own), *SPREADS)) for name, own in logs.items()}
    return {name: [round(float(np.mean(own)), 3), round(spreads[name], 2)] for name, own in sorted(logs.items())}


def predicted(row: Row, found: dict[str, list[Any]], means: Sequence[float]) -> float:
    """log of the cost of a row."""
    a, slopes = found.get(row["algorithm"], found[""])
    filled = [mean if value is None else value for value, mean in zip(row["known"], means, strict=True)]
    return float(a + np.dot(slopes, filled))


def unseen(rows: Sequence[Row], what: str, means: Sequence[float]) -> dict[str, list[float]]:
    """Algorithm -> errors, log of real cost / estimate, at jobs of scenarios that were left out of the fit."""
    errors: dict[str, list[float]] = defaultdict(list)
    for scenario in sorted({row["scenario"] for row in rows}):
        found = fitted([row for row in rows if row["scenario"] != scenario], what, means)
        for row in rows:
            if row["scenario"] == scenario:
                errors[row["algorithm"]].append(float(np.log(row[what])) - predicted(row, found, means))
    return errors


def fit(measurements: Path) -> None:
    """Fit the table, and print how far estimates are from what unseen scenarios take."""
    read = json.loads(measurements.read_text())
    timed = courses([row for row in read["rows"] if "seconds" in row])
    kept = {
        "seconds": [row for row in timed if row["seconds"] >= SHORTEST],
        "bytes": [row for row in read["rows"] if "bytes" in row],
    }
    rows = kept["seconds"]
    means = [float(np.mean([row["known"][i] for row in rows if row["known"][i] is not None])) for i in range(4)]
    table: dict[str, Any] = {"calibration": round(read["calibration"], 6), "means": [round(one, 3) for one in means]}
    table["whole"] = wholes([row for row in timed if row["open"]])
    for what, several in kept.items():
        found, errors = fitted(several, what, means), unseen(several, what, means)
        every = np.array([one for some in errors.values() for one in some])
        overall = float(np.sqrt(np.mean(np.clip(every, -2, 2) ** 2)))
        for name, values in found.items():
            own = errors.get(name, [])
            spread = math.sqrt((sum(one**2 for one in own) + 4 * overall**2) / (len(own) + 4))
            values.append(round(float(np.clip(spread if name else 2 * overall, *SPREADS)), 2))
        inside = [abs(one) <= 1.28 * found[name][2] for name, some in errors.items() for one in some]
        print(f"{np.mean(inside):.0%} of unseen scenarios are within 1.28 spreads; largest {max(abs(every)):.1f}")
        quantiles = np.exp(np.quantile(every, [0.1, 0.5, 0.9]))
        print(what, len(several), "jobs; real / estimate of unseen scenarios at 10, 50, 90 %:", quantiles.round(2))
        table[what] = {"others": found.pop(""), "algorithms": found}
    TABLE.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    {"measure": measure, "fit": fit}[sys.argv[1]](Path(sys.argv[2]))
