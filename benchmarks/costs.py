"""Measures what jobs cost, and fits the table that estimates before a run are made from.

    python -m benchmarks.costs measure FILE      # a job of every algorithm of every quick scenario, at several sizes
    python -m benchmarks.costs fit FILE          # writes simulator/experiments/runs/costs.json, and prints how good it is

A job is stopped after `MOST_SECONDS`; how far it was after each share of its time counts. The printed accuracy is that
for scenarios which the fit has not seen.
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
import numpy.typing as npt

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
QUANTITIES = ("T", "N", "d", "K")
RIDGE = (3.0, 6.0, 12.0, 12.0)
"""How strongly the slopes of single algorithms are drawn to those of all."""
LEAST_SPREAD = 0.2
Row = dict[str, Any]
FloatArray = npt.NDArray[np.float64]


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
            yield row | {"known": known, "seconds": seconds, "whole": share == 1}


def measure(out: Path) -> None:
    """Measure every quick scenario whose data are there."""
    rows, calibration = list[Row](), math.inf
    for file in sorted([ROOT / "scenarios" / "quickstart.yaml", *ROOT.glob("scenarios/**/*_quick.yaml")]):
        found = list(measured(file))
        rows += found
        print(file.relative_to(ROOT), len(found), f"{sum(row.get('seconds', 0.0) for row in found if row['whole']):.1f} s", flush=True)
        calibration = min(calibration, costs.calibration())
        out.write_text(json.dumps({"calibration": calibration, "rows": rows}))


def design(rows: Sequence[Row], means: Sequence[float]) -> FloatArray:
    """log T, log N, log d and log K of each row, without the means; (rows, 4)."""
    filled = [[mean if v is None else v for v, mean in zip(row["known"], means, strict=True)] for row in rows]
    return np.array(filled) - np.array(means)


def fitted(rows: Sequence[Row], what: str, means: Sequence[float]) -> tuple[list[Any], dict[str, list[Any]]]:
    """Intercept and slopes of all algorithms together, and those of each one: least squares with a ridge.

    Slopes below 0 count as 0, so that nothing gets cheaper as it grows. Rows count the less, the more their algorithm has.
    """
    names = sorted({row["algorithm"] for row in rows})
    x, y = design(rows, means), np.log([row[what] for row in rows])
    place = {name: number for number, name in enumerate(names)}
    owner = np.array([place[row["algorithm"]] for row in rows])
    width = 1 + len(QUANTITIES)
    columns = np.zeros((len(rows), width * (1 + len(names))))
    one = np.hstack([np.ones((len(rows), 1)), x])
    columns[:, :width] = one
    for index, own in enumerate(owner):
        columns[index, width * (1 + own) : width * (2 + own)] = one[index]
    weights = (1.0 / np.sqrt(np.bincount(owner)))[owner] * 3
    penalty = np.tile([0.05, *RIDGE], 1 + len(names))
    penalty[:width] = [1e-6, 0.1, 0.1, 0.1, 0.1]
    weighted = columns * weights[:, None]
    solved = np.linalg.solve(weighted.T @ weighted + np.diag(penalty), weighted.T @ (weights * y))
    shared, own = solved[:width], solved[width:].reshape(len(names), width)
    found: dict[str, list[Any]] = {}
    for name in names:
        mine = owner == place[name]
        slopes = np.maximum(shared[1:] + own[place[name]][1:], 0.0)
        intercept = float(np.mean(y[mine] - x[mine] @ slopes))
        found[name] = [round(intercept - float(slopes @ np.array(means)), 3), [round(float(one), 3) for one in slopes]]
    slopes = np.maximum(shared[1:], 0.0)
    everybody = float(np.mean([values[0] + np.dot(values[1], means) for values in found.values()]))
    others = [round(everybody - float(slopes @ np.array(means)), 3), [round(float(one), 3) for one in slopes]]
    return others, found


def predicted(row: Row, others: list[Any], found: dict[str, list[Any]], means: Sequence[float]) -> float:
    """log of the cost of a row."""
    a, slopes = found.get(row["algorithm"], others)
    filled = [mean if value is None else value for value, mean in zip(row["known"], means, strict=True)]
    return float(a + np.dot(slopes, filled))


def unseen(rows: Sequence[Row], what: str, means: Sequence[float]) -> dict[str, list[float]]:
    """Algorithm -> errors (log of real cost / estimate) at whole jobs of scenarios that were left out of the fit."""
    errors: dict[str, list[float]] = defaultdict(list)
    for scenario in sorted({row["scenario"] for row in rows}):
        others, found = fitted([row for row in rows if row["scenario"] != scenario], what, means)
        for row in rows:
            if row["scenario"] == scenario and row["whole"]:
                errors[row["algorithm"]].append(float(np.log(row[what])) - predicted(row, others, found, means))
    return errors


def fit(measurements: Path) -> None:
    """Fit the table, and print how far estimates are from what unseen scenarios take."""
    read = json.loads(measurements.read_text())
    rows = [row for row in read["rows"] if row.get("seconds", 1.0) >= SHORTEST]
    means = [float(np.mean([row["known"][i] for row in rows if row["known"][i] is not None])) for i in range(4)]
    table: dict[str, Any] = {"calibration": round(read["calibration"], 6), "means": [round(one, 3) for one in means]}
    for what in ("seconds", "bytes"):
        kept = [row for row in rows if what in row]
        others, found = fitted(kept, what, means)
        errors = unseen(kept, what, means)
        every = np.array([one for several in errors.values() for one in several])
        overall = float(np.sqrt(np.mean(every**2)))
        for name, values in found.items():
            own = errors[name]
            spread = math.sqrt((sum(one**2 for one in own) + 4 * overall**2) / (len(own) + 4))
            values.append(round(max(LEAST_SPREAD, spread), 2))
        table[what] = {"others": [*others, round(2 * overall, 2)], "algorithms": found}
        quantiles = np.exp(np.quantile(every, [0.1, 0.5, 0.9]))
        print(what, len(kept), "rows; real / estimate of unseen scenarios at 10, 50, 90 %:", quantiles.round(2))
    TABLE.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    {"measure": measure, "fit": fit}[sys.argv[1]](Path(sys.argv[2]))
