"""The table of theorems beside a run, for the report, the terminal and JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

from coband.simulator.analysis.report.tables import ReportTable
from coband.simulator.analysis.theory.growth import SHARE, Growth
from coband.simulator.experiments.statistics.estimates import Estimate
from coband.simulator.experiments.statistics.numerals import between, number

MOST_NAMED = 3
"""Largest number of labels that a sentence about several names."""


def growth_table(found: Sequence[Growth]) -> ReportTable:
    """The bounds with both slopes, and what does not apply."""
    rows = tuple(
        (
            one.label,
            one.bound.count,
            f"{one.bound.source}{', up to constants and logarithms' if one.bound.order else ''}",
            _shown(one.slope),
            _shown(one.limit),
            _value(one),
            one.verdict,
        )
        for one in found
    )
    caption = (
        f"Growth with the number of pulls t: slopes of log y against log t over the last {100 * (1 - SHARE):.0f} % of "
        "the pulls, mean over replications ± half the width of the 95 % interval. A number that grows faster than its "
        "bound for ever would pass it; where an assumption does not hold, the theorem says nothing."
    )
    header = ("label", "number", "theorem", "slope", "slope of the bound", "bound at the end", "verdict")
    return ReportTable(caption, header, rows, texts=3)


def assumptions(found: Sequence[Growth], environments: Sequence[str] = ()) -> list[str]:
    """A sentence for all bounds of which the same does not hold, or cannot be told.

    Args:
        environments: the environment of each bound; none in a single one.
    """
    shared: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for one, environment in zip(found, environments or [""] * len(found), strict=True):
        parts = []
        if one.broken:
            parts.append(f"assumes what does not hold here: {'; '.join(one.broken)}")
        if one.unchecked:
            parts.append(f"assumes what this run cannot tell: {'; '.join(one.unchecked)}")
        if parts:
            words = f"{one.bound.source} {', and '.join(parts)}."
            shared.setdefault((one.bound.count, words), []).append((one.label, environment))
    everywhere = set(environments or [""])
    return [f"{_who(places, everywhere)}, {count}: {words}" for (count, words), places in shared.items()]


def _who(places: Sequence[tuple[str, str]], everywhere: Set[str]) -> str:
    """The labels, with their environments unless these are all."""
    labels, environments = (list(dict.fromkeys(names)) for names in zip(*places, strict=True))
    words = ", ".join(labels[:MOST_NAMED])
    if len(labels) > MOST_NAMED:
        words += f" and {len(labels) - MOST_NAMED} more"
    return words if set(environments) == everywhere else f"{words} in {' and in '.join(environments)}"


def _shown(found: Estimate | None) -> str:
    return "-" if found is None else between(found.mean, found.interval)


def _value(one: Growth) -> str:
    """The bound after the last pull, if it has all its constants."""
    return "-" if one.bound.order or not len(one.bounded) else number(float(f"{one.bounded[-1]:.3g}"))


def listed(found: Sequence[Growth]) -> list[Mapping[str, Any]]:
    """The same for ``coband compare --json``."""
    return [
        {
            "label": one.label,
            "number": one.bound.count,
            "theorem": one.bound.source,
            "formula": one.bound.formula,
            "order": one.bound.order,
            "slope": _plain(one.slope),
            "bound_slope": _plain(one.limit),
            "difference": _plain(one.difference),
            "verdict": one.verdict,
            "does_not_hold": list(one.broken),
            "cannot_be_told": list(one.unchecked),
        }
        for one in found
    ]


def _plain(found: Estimate | None) -> Mapping[str, Any] | None:
    return None if found is None else {"mean": found.mean, "ci95": found.interval, "n": found.count}
