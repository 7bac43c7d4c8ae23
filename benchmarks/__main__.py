"""Measure fast forms against textbook forms, and figures against targets.

``python -m benchmarks [CASE]... [--record [--accept-fallen]]``; exit status 1: a fast form decides otherwise
than its textbook form, its ratio has fallen, or instructions have risen (`benchmarks.history`). Such measurements are
not recorded: those on file are what later ones are compared with.
"""

from __future__ import annotations

import argparse
import sys
from importlib import metadata
from typing import Any

from benchmarks import (
    bandits,
    cooperation,
    exploration,
    history,
    instructions,
    k_arms,
    known_points,
    neural,
    scale,
    start,
    sweeps,
)

PARTS = (start, bandits, k_arms, known_points, neural, cooperation, exploration, scale, sweeps)


def _all(table: str) -> dict[str, Any]:
    """What the parts have in a table of this name, by the names of cases."""
    return {name: case for part in PARTS for name, case in getattr(part, table, {}).items()}


CASES, FIGURES = _all("CASES"), _all("FIGURES")


def main() -> int:
    """Run the cases and print one line each: first the ratios to textbook forms, then the figures."""
    known = list(dict.fromkeys([*CASES, *instructions.CASES, *FIGURES]))
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"some of: {', '.join(known)} (default: all)")
    parser.add_argument("--record", action="store_true", help="add the ratios to those on file, and write their page")
    parser.add_argument("--accept-fallen", action="store_true", help="record ratios that have fallen, and pass")
    arguments = parser.parse_args()
    unknown = set(arguments.cases) - set(known)
    if unknown:
        parser.error(f"unknown case {', '.join(sorted(unknown))}; known: {', '.join(known)}")
    names = arguments.cases or known
    wrong, fallen, ratios = _ratios([name for name in names if name in CASES])
    counts = _counts([name for name in names if name in instructions.CASES])
    fallen += [f"{name} (instructions)" for name in history.risen(counts, history.read())]
    failed = wrong or ([] if arguments.accept_fallen else fallen)
    if arguments.record and failed:
        advice = "" if wrong else "; measure again, or give --accept-fallen if they are to count from now on"
        print(f"nothing was recorded, for {', '.join(failed)} {'decided otherwise' if wrong else 'has fallen'}{advice}")
    elif arguments.record:
        history.record(ratios, metadata.version("coband"), counts)
        history.PAGE.write_text(page(), encoding="utf-8")
    _figures([name for name in names if name in FIGURES])
    return 1 if failed else 0


def _ratios(names: list[str]) -> tuple[list[str], list[str], dict[str, float]]:
    """Measure cases; those whose fast forms decided otherwise than their textbook forms, those that have fallen, and
    all ratios."""
    wrong, fallen, ratios, known = list[str](), list[str](), dict[str, float](), history.read()
    if names:
        print(f"{'case':14}{'textbook':>10}{'fast':>10}{'ratio':>9}{'before':>9}  same  what")
    for name in names:
        case, what = CASES[name]
        found = case()
        ratio, holds = history.held(name, found.ratio, lambda case=case: case().ratio, known)  # type: ignore[misc]
        ratios[name] = ratio
        wrong += [] if found.same else [name]
        fallen += [] if holds else [name]
        before = history.reference(known, name)
        print(
            f"{name:14}{found.textbook:9.2f}s{found.fast:9.3f}s{ratio:9.2f}{before or float('nan'):9.2f}  "
            f"{'yes' if found.same else 'NO':4}  {'' if holds else 'HAS FALLEN: '}{what}; {found.note}",
            flush=True,
        )
    return wrong, fallen, ratios


def _counts(names: list[str]) -> dict[str, float]:
    """Count instructions; print them, and what the last ones were."""
    counts = instructions.counted(names)
    for name, count in counts.items():
        before = history.of_case(history.read(), name, "instructions")[-1:]
        print(f"{name:14}{count:14,.0f} instructions, before {before}  {instructions.CASES[name][-1]}", flush=True)
    return counts


def page() -> str:
    """The page of the documentation."""
    what = {name: text for name, (_, text) in CASES.items()}
    return history.page(history.read(), what, {name: case[-1] for name, case in instructions.CASES.items()})


def _figures(names: list[str]) -> None:
    if names:
        print(f"{'figure':16}{'found':>34}{'target':>24}  met  what")
    for name in names:
        figure, what = FIGURES[name]
        found = figure()
        print(f"{name:16}{found.found:>34}{found.target:>24}  {'yes' if found.met else 'NO':3}  {what}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
