"""Statistics once more, in plain loops from single results, beside those that are shown; they share no code."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from coband.simulator.analysis.report import comparison, data
from coband.simulator.analysis.report.analysis import MAX_PAIRED, Analysis
from coband.simulator.experiments.store.store import StoredRun
from coband.simulator.metrics import Metric

Numbers = Sequence[float]
Interval = tuple[float, float] | None
PRECISION = 1e-9
"""What two ways to compute a statistic may differ by, as a share of the largest number there."""
LEVEL = 0.975
"""Of the quantiles that bound intervals of 95 %."""


def in_results(found: Mapping[str, Any], metrics: Mapping[str, Metric]) -> Iterator[str]:
    """What is wrong with means and intervals in results.json, a sentence each.

    Args:
        metrics: by name; the intervals of proportions are Wilson's.
    """
    samples: dict[str, list[Mapping[str, Any]]] = {}
    for entry in found["results"]:
        samples[entry["label"]] = entry["replications"]
        for key, mean in entry["mean"].items():
            values = [record.get(key) for record in entry["replications"]]
            known = [] if any(not isinstance(value, (int, float)) for value in values) else values
            form = _form(metrics.get(key))
            yield from _wrong(f"{key} of {entry['label']}", (mean, entry["ci95"][key]), known, form)
    for label, key, shown in _estimates(found):
        values = [record[key] for record in samples.get(label, ()) if isinstance(record.get(key), (int, float))]
        if shown["n"] != len(values):
            yield f"{key} of {label} is said to be of {shown['n']} replications, and there are {len(values)}"
        yield from _wrong(f"{key} of {label}", (shown["mean"], shown["ci95"]), values, _form(metrics.get(key)))


def _form(metric: Metric | None) -> Callable[[Numbers], Interval]:
    return _wilson if metric is not None and metric.proportion else _student


def _estimates(found: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Label, key and statistics of the best of a sweep, and of candidates and finalists of a frontier."""
    titles = {"fresh": "{}", "search": "{} (tuning)", "tuning": "{} (tuning)"}
    search = found.get("frontier", {"candidates": (), "points": ()})
    lines = [
        (line, {line["on"]: line[phase]}, phase) for line in found.get("best", ()) for phase in ("tuning", "fresh")
    ]
    lines += [(one, one["search"], "search") for one in (*search["candidates"], *search["points"])]
    lines += [(one, one["fresh"], "fresh") for one in search["points"]]
    for one, numbers, phase in lines:
        for key, shown in numbers.items():
            if shown is not None:
                yield titles[phase].format(one["label"]), key, shown


def in_comparisons(run: StoredRun) -> Iterator[str]:
    """What is wrong with the numbers by which ``coband compare`` and reports compare labels, a sentence each.

    Of each environment of a sweep the first labels are looked at, as many as are compared in pairs.
    """
    try:
        analysis = Analysis(data.load([run]))
    except data.ReportError:
        return  # no job has finished
    records: dict[str, dict[int, Mapping[str, Any]]] = {}
    for job in run.jobs:
        if job.record is not None:
            records.setdefault(job.label, {})[job.replication] = job.record
    for each in analysis.within:
        few = replace(each.comparison, contenders=each.contenders[:MAX_PAIRED])
        for measure in analysis.measures:
            found = {one.label: _values(records[one.own], measure.name) for one in each.contenders}
            form = _form(measure)
            for label, shown in zip(each.labels, each.estimates(measure), strict=True):
                numbers = list(found[label].values())
                yield from _wrong(f"{measure.name} of {label}", (shown.mean, shown.interval), numbers, form)
            for one in comparison.differences(few, measure):
                first, second = found[one.first], found[one.second]
                pairs = [value - second[number] for number, value in first.items() if number in second]
                what = f"{measure.name} of {one.first} minus {one.second}"
                yield from _wrong(what, (one.mean, one.student), pairs, _student) if one.paired else ()


def _values(records: Mapping[int, Mapping[str, Any]], key: str) -> dict[int, float]:
    """Replication -> number."""
    numbers = {number: record.get(key) for number, record in records.items()}
    return {number: float(value) for number, value in numbers.items() if isinstance(value, (int, float))}


def _wrong(
    what: str, shown: tuple[float | None, Iterable[float] | None], values: Numbers, form: Callable[[Numbers], Interval]
) -> Iterator[str]:
    mean = math.fsum(values) / len(values) if values else None
    interval = form(values) if values else None
    slack = PRECISION * max(map(abs, (*values, *(interval or ()))), default=0.0)
    if not _equal(shown[0], mean, slack):
        yield f"the mean {what} is shown as {shown[0]}, and the single results give {mean}"
    ends = None if shown[1] is None else tuple(shown[1])
    if (ends is None) != (interval is None) or not all(
        _equal(one, other, slack) for one, other in zip(ends or (), interval or (), strict=True)
    ):
        yield f"the 95 % interval of {what} is shown as {ends}, and the single results give {interval}"


def _equal(one: float | None, other: float | None, slack: float) -> bool:
    return one is other if one is None or other is None else abs(one - other) <= slack


def _student(values: Numbers) -> Interval:
    """Mean and half a width on either side: t s / sqrt(n)."""
    n = len(values)
    if n < 2:
        return None
    mean = math.fsum(values) / n
    half = _t(n - 1) * math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1) / n)
    return mean - half, mean + half


def _wilson(values: Numbers) -> Interval:
    """The shares q that are not too far from that of the sample, p: (p - q)^2 <= z^2 q (1 - q) / n."""
    n, p = len(values), math.fsum(values) / len(values)
    z = _inverse(lambda x: 0.5 * math.erfc(-x / math.sqrt(2.0)))
    a, b, c = 1 + z * z / n, 2 * p + z * z / n, p * p
    root = math.sqrt(max(0.0, b * b - 4 * a * c))
    return (b - root) / (2 * a), (b + root) / (2 * a)


@cache
def _t(freedom: int) -> float:
    """Quantile of Student's distribution, from its distribution function."""
    from scipy.special import betainc

    return _inverse(lambda x: 1.0 - 0.5 * float(betainc(0.5 * freedom, 0.5, freedom / (freedom + x * x))))


def _inverse(distribution: Callable[[float], float]) -> float:
    """Where a distribution function reaches LEVEL, by bisection."""
    low, high = 0.0, 100.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if distribution(middle) < LEVEL else (low, middle)
    return high
