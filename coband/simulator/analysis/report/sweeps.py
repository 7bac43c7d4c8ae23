"""How the first measure of a sweep depends on its grid: against single parameters, and over pairs of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from coband.simulator.analysis.comparison.analysis import Analysis, combinations, named
from coband.simulator.experiments.statistics import estimates as statistics
from coband.simulator.experiments.statistics.estimates import Estimate
from coband.simulator.experiments.store.variants import variants


def estimated(found: Estimate) -> dict[str, float]:
    """``mean low high n`` of a row."""
    low, high = found.interval or (np.nan, np.nan)
    return {"mean": found.mean, "low": low, "high": high, "n": found.count}


def estimate(values: Iterable[float]) -> dict[str, float]:
    """The mean of replications, with Student's 95 % interval."""
    return estimated(statistics.estimate(list(values)))


def cells(analysis: Analysis) -> pd.DataFrame:
    """A row per variant of a sweep and environment: the first measure, and all values of the grid in ``values``.

    With tuning, its replications are used, since they cover the whole grid.
    """
    runs, measure = analysis.comparison.runs, analysis.measures[0]
    if len(runs) != 1 or not analysis.swept:
        return pd.DataFrame()
    found: dict[str, list[float]] = {}
    for job in runs[0].jobs:
        value = None if job.record is None else job.record.get(measure.name)
        if isinstance(value, (int, float)):
            found.setdefault(job.label, []).append(float(value))
    known = variants(runs[0])
    phase = "tuning" if any(one.phase == "tuning" for one in known.values()) else "fresh"
    shown = {label: one for label, one in known.items() if one.phase == phase and label in found}
    rows: list[dict[str, Any]] = [
        {
            "faced": faced,
            "chosen": one.choices,
            "label": one.entry,
            "measure": measure.heading,
            **estimate(found[label]),
        }
        for faced in combinations([one.faced for one in shown.values()])
        for label, one in shown.items()
        if one.faced.items() <= faced.items()
    ]
    order = {entry: number for number, entry in enumerate(analysis.shared.entries)}
    rows.sort(key=lambda row: order[row["label"]])
    return pd.DataFrame(rows)


def _best(analysis: Analysis, frame: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """The row with the best mean of each group, in the order of the keys' values."""
    best = frame.sort_values("mean", ascending=analysis.measures[0].better != "higher", kind="stable")
    return best.drop_duplicates(keys)


def ordered(texts: Iterable[str]) -> list[str]:
    """Values of a parameter: numbers by size, since a search proposes them in any order, others as they came."""
    found = list(dict.fromkeys(texts))
    try:
        return sorted(found, key=float)
    except ValueError:
        return found


def sensitivity(analysis: Analysis) -> pd.DataFrame:
    """Against each parameter in each environment, and against each key of the environment for each of the others."""
    base = cells(analysis)
    if base.empty:
        return base
    found = []
    for kind in ("chosen", "faced"):
        for name in dict.fromkeys(key for values in base[kind] for key in values):
            rows = base[[name in values for values in base[kind]]]
            rows = rows.assign(parameter=name, value=[values[name] for values in rows[kind]])
            rest = [{key: text for key, text in faced.items() if key != name} for faced in rows["faced"]]
            rows = rows.assign(environment=list(map(named, rest)))
            several = rows.groupby(["environment", "label"])["value"].transform("nunique") > 1
            rows = _best(analysis, rows[several], ["environment", "label", "value"])
            values = ordered(rows["value"])
            keys = {
                "environment": list(dict.fromkeys(map(named, rest))),
                "label": analysis.shared.entries,
                "value": values,
            }
            found.append(_sorted(rows, keys))
    columns = ["environment", "parameter", "label", "measure", "value", "mean", "low", "high", "n"]
    frame = pd.concat(found)[columns] if found else pd.DataFrame({"environment": []})
    return frame if frame["environment"].any() else frame.drop(columns="environment")


def _sorted(rows: pd.DataFrame, keys: dict[str, list[str]]) -> pd.DataFrame:
    """The rows in the order in which the values of each key are given."""
    places = {key: {value: place for place, value in enumerate(values)} for key, values in keys.items()}
    order = sorted(range(len(rows)), key=lambda i: [places[key][str(rows[key].iloc[i])] for key in keys])
    return rows.iloc[order]


def heat(analysis: Analysis) -> pd.DataFrame:
    """The best mean over pairs of parameters of each algorithm, in each environment."""
    base, found = cells(analysis), []
    for label, own in base.groupby("label", sort=False) if len(base) else ():
        choices = {name: ordered(one[name] for one in own["chosen"]) for name in own["chosen"].iloc[0]}
        names = [name for name, values in choices.items() if len(values) > 1]
        for down, across in ((a, b) for place, a in enumerate(names) for b in names[place + 1 :]):
            rows = own.assign(
                environment=list(map(named, own["faced"])),
                map=f"{label}: {down}, {across}",
                down=down,
                across=across,
                down_value=[one[down] for one in own["chosen"]],
                across_value=[one[across] for one in own["chosen"]],
            )
            rows = _best(analysis, rows, ["environment", "down_value", "across_value"])
            keys = {"environment": list(dict.fromkeys(map(named, own["faced"])))}
            found.append(_sorted(rows, keys | {"down_value": choices[down], "across_value": choices[across]}))
    columns = ["environment", "map", "label", "measure", "down", "down_value", "across", "across_value"]
    frame = pd.concat(found)[[*columns, "mean", "low", "high", "n"]] if found else pd.DataFrame({"environment": []})
    return frame if frame["environment"].any() else frame.drop(columns="environment")
