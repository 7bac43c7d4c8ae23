"""Measure fast forms against textbook forms: ``python -m benchmarks [CASE]... [--full]``."""

from __future__ import annotations

import argparse

from benchmarks import bandits, cohorts, cooperation, events, exploration, neural
from benchmarks.measuring import Cases

CASES: Cases = {
    **bandits.CASES,
    **neural.CASES,
    **cooperation.CASES,
    **exploration.CASES,
    **events.CASES,
    **cohorts.CASES,
}
FULL: Cases = {**bandits.FULL, **cooperation.FULL}


def main() -> None:
    """Run the cases and print one line each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "cases", nargs="*", metavar="CASE", help=f"some of: {', '.join([*CASES, *FULL])} (default: all)"
    )
    parser.add_argument("--full", action="store_true", help=f"also {', '.join(FULL)}, which takes minutes")
    arguments = parser.parse_args()
    known = {**CASES, **FULL}
    unknown = set(arguments.cases) - set(known)
    if unknown:
        parser.error(f"unknown case {', '.join(sorted(unknown))}; known: {', '.join(known)}")
    names = arguments.cases or [*CASES, *(FULL if arguments.full else ())]
    print(f"{'case':14}{'textbook':>10}{'fast':>10}{'ratio':>9}  same  what")
    for name in names:
        case, what = known[name]
        found = case()
        ratio = found.textbook / found.fast
        print(
            f"{name:14}{found.textbook:9.2f}s{found.fast:9.3f}s{ratio:9.2f}  {'yes' if found.same else 'NO':4}  "
            f"{what}; {found.note}",
            flush=True,
        )


if __name__ == "__main__":
    main()
