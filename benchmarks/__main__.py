"""Measure fast forms against textbook forms, and figures against targets.

``python -m benchmarks [CASE]... [--full]``; exit status 1: a fast form decides otherwise than its textbook form.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from benchmarks import (
    bandits,
    cohorts,
    cooperation,
    events,
    exploration,
    known_points,
    neural,
    scale,
    start,
    sweeps,
    whole,
)

PARTS = (start, whole, bandits, known_points, neural, cooperation, exploration, events, cohorts, scale, sweeps)


def _all(table: str) -> dict[str, Any]:
    """What the parts have in a table of this name, by the names of cases."""
    return {name: case for part in PARTS for name, case in getattr(part, table, {}).items()}


CASES, FIGURES, FULL, FULL_FIGURES = map(_all, ("CASES", "FIGURES", "FULL", "FULL_FIGURES"))
ALL, LONG = (*CASES, *FIGURES), (*FULL, *FULL_FIGURES)


def main() -> int:
    """Run the cases and print one line each: first the ratios to textbook forms, then the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "cases", nargs="*", metavar="CASE", help=f"some of: {', '.join([*ALL, *LONG])} (default: the first {len(ALL)})"
    )
    parser.add_argument("--full", action="store_true", help=f"also {', '.join(LONG)}, which take minutes")
    arguments = parser.parse_args()
    known = [*ALL, *LONG]
    unknown = set(arguments.cases) - set(known)
    if unknown:
        parser.error(f"unknown case {', '.join(sorted(unknown))}; known: {', '.join(known)}")
    names = arguments.cases or [*ALL, *(LONG if arguments.full else ())]
    same = _ratios([name for name in names if name in {**CASES, **FULL}])
    _figures([name for name in names if name in {**FIGURES, **FULL_FIGURES}])
    return 0 if same else 1


def _ratios(names: list[str]) -> bool:
    """Measure cases; whether all fast forms decided as their textbook forms."""
    if not names:
        return True
    different = 0
    print(f"{'case':14}{'textbook':>10}{'fast':>10}{'ratio':>9}  same  what")
    for name in names:
        case, what = {**CASES, **FULL}[name]
        found = case()
        ratio = found.textbook / found.fast
        different += not found.same
        print(
            f"{name:14}{found.textbook:9.2f}s{found.fast:9.3f}s{ratio:9.2f}  {'yes' if found.same else 'NO':4}  "
            f"{what}; {found.note}",
            flush=True,
        )
    return different == 0


def _figures(names: list[str]) -> None:
    if not names:
        return
    print(f"{'figure':16}{'found':>34}{'target':>24}  met  what")
    for name in names:
        figure, what = {**FIGURES, **FULL_FIGURES}[name]
        found = figure()
        print(f"{name:16}{found.found:>34}{found.target:>24}  {'yes' if found.met else 'NO':3}  {what}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
