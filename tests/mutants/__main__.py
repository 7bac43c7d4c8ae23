"""``python -m tests.mutants [MINUTES [--sample SIZE] [--own] [MODULE ...]]``: test mutants, and write the score into
docs/reliability.md.

With a size so many mutants of each package are tested, drawn at random: the first ones in the order in which all would
be; a larger size goes on with the next ones. With ``--own`` the tests of the modules' own folders alone are run; who
survives them is tested by all the next time. Without a time all are tested, which takes days on one processor; a
session that was stopped goes on. ``0`` minutes only write what is known. Counts and survivors are kept in
docs/mutants.json, with the judgement of each survivor.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from coband.simulator.experiments.statistics.estimates import wilson
from tests.mutants import selection
from tests.mutants.session import Session

FOLDER = selection.ROOT / ".mutants"
RECORD = selection.ROOT / "docs" / "mutants.json"
PAGE = selection.ROOT / "docs" / "reliability.md"
BEGIN, END = "<!-- mutants: begin -->", "<!-- mutants: end -->"
UNJUDGED, EQUIVALENT = "not judged yet", "equivalent"


def main(arguments: list[str]) -> int:
    """Test, record, write; 1 when a survivor has not been judged."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("minutes", nargs="?", type=float, default=math.inf)
    parser.add_argument("modules", nargs="*", default=selection.WHOLE)
    parser.add_argument("--sample", type=int)
    parser.add_argument("--own", action="store_true")
    given = parser.parse_intermixed_args(arguments)
    minutes, names = given.minutes, list(selection.modules(given.modules))
    before = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.is_file() else {}
    judged = [one for entry in before.values() for one in entry["survivors"]]
    equivalent = {one["key"] for one in judged if one["verdict"] == EQUIVALENT}
    session = Session(FOLDER, names, equivalent, given.sample, given.own)
    try:
        if minutes > 0:
            session.run(minutes)
    finally:
        record = recorded(session, before)
        RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        write_page(PAGE, record)
    open_cases = [one for entry in record.values() for one in entry["survivors"] if one["verdict"] == UNJUDGED]
    return 1 if open_cases else 0


def recorded(session: Session, before: dict[str, Any]) -> dict[str, Any]:
    """Counts and survivors of each module: those of this session, and those of others that there still are."""
    found = {module: entry for module, entry in before.items() if (selection.ROOT / module).is_file()}
    by_module = defaultdict(list)
    for mutant in session.mutants:
        by_module[mutant.module].append(mutant)
    for module, made in session.made.items():
        mutants = by_module[module]
        tested = [mutant for mutant in mutants if mutant.key in session.survived]
        if module in before and not tested:
            continue
        judged = {one["change"]: one for one in before.get(module, {}).get("survivors", ())}
        survivors = [mutant for mutant in tested if session.survived[mutant.key]]
        found[module] = {
            "mutants": made,
            "tested": len(tested),
            "killed_by_own": sum(session.by_own[mutant.key] for mutant in tested),
            "survived_at_first": sum(session.at_first.get(mutant.key, True) for mutant in tested),
            "survivors": [
                {
                    "key": mutant.key,
                    "line": mutant.line,
                    "change": mutant.change,
                    "verdict": judged.get(mutant.change, {}).get("verdict", UNJUDGED),
                    "why": judged.get(mutant.change, {}).get("why", ""),
                }
                for mutant in sorted(survivors, key=lambda mutant: (mutant.line, mutant.change))
            ],
        }
    return dict(sorted(found.items()))


def write_page(page: Path, record: dict[str, Any]) -> None:
    """Put the table of a record between the marks of a page."""
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    page.write_text(f"{before}{BEGIN}\n{table(record)}\n{END}{after}", encoding="utf-8")


def table(record: dict[str, Any]) -> str:
    """The score of each folder, what the sample says of all mutants, and every survivor with its judgement."""
    head = (
        "| folder | mutants | tested | survived at first | survive now | of these equivalent | score | by own tests |"
    )
    lines = [head, "|---|---|---|---|---|---|---|---|"]
    folders: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for module, entry in record.items():
        folders[str(Path(module).parent)].append(entry)
    lines += [_line(f"`{folder}`", entries) for folder, entries in folders.items()]
    lines.append(_line("all", list(record.values())))
    lines += ["", *_estimates(record)]
    if any(entry["survivors"] for entry in record.values()):
        lines += ["", "| survivor | judgement |", "|---|---|"]
    for module, entry in record.items():
        for one in entry["survivors"]:
            change = one["change"].replace("|", "\\|")
            why = f": {one['why']}" if one["why"] else ""
            lines.append(f"| `{module}`, line {one['line']}: `{change}` | {one['verdict']}{why} |")
    return "\n".join(lines)


def _line(name: str, entries: list[dict[str, Any]]) -> str:
    """Score: the share of the mutants that are no equivalents which were killed."""
    made, tested, first = (sum(entry[key] for entry in entries) for key in ("mutants", "tested", "survived_at_first"))
    survivors = [one for entry in entries for one in entry["survivors"]]
    killed, different = _counts(entries)
    score = f"{100.0 * killed / different:.1f} %" if different else "-"
    equivalent = tested - different
    return f"| {name} | {made} | {tested} | {first} | {len(survivors)} | {equivalent} | {score} | {_own(entries)} |"


def _own(entries: list[dict[str, Any]]) -> str:
    """The share that a module's own tests killed, where that was noted."""
    noted = [entry for entry in entries if "killed_by_own" in entry]
    _, different = _counts(noted)
    return f"{100.0 * sum(entry['killed_by_own'] for entry in noted) / different:.1f} %" if different else "-"


def _counts(entries: list[dict[str, Any]]) -> tuple[int, int]:
    """How many mutants were killed, and how many are no equivalents."""
    survivors = [one for entry in entries for one in entry["survivors"]]
    tested = sum(entry["tested"] for entry in entries)
    return tested - len(survivors), tested - sum(one["verdict"] == EQUIVALENT for one in survivors)


def _estimates(record: dict[str, Any]) -> list[str]:
    """A sentence for all that is tested mutant by mutant, and for each package of which a sample was tested."""
    parts: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for module, entry in record.items():
        package = selection.package(module)
        parts[package if package in selection.SAMPLED else ""].append(entry)
    tested = {part: entries for part, entries in parts.items() if _counts(entries)[1] or not part}
    return [f"* `{part}`: {_estimate(entries)}" if part else _estimate(entries) for part, entries in tested.items()]


def _estimate(entries: list[dict[str, Any]]) -> str:
    """What the tests noticed before any was written for a survivor: that alone says something of other mutants."""
    _, different = _counts(entries)
    tested, first = (sum(entry[key] for entry in entries) for key in ("tested", "survived_at_first"))
    if not different:
        return "No mutant has been tested."
    killed = tested - first
    low, high = wilson([1.0] * killed + [0.0] * (different - killed))
    return (
        f"When they were tested first, {killed} of {different} mutants that are not equivalent were killed: "
        f"{100.0 * killed / different:.1f} %, 95 % interval {100 * low:.1f} to {100 * high:.1f} % (Wilson)."
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
