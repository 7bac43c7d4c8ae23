"""``python -m tests.attacks [COUNT]``: damage stores at random and write the figures into docs/reliability.md."""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tests.attacks import stores
from tests.attacks.stores import COMMANDS, Finding

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"


def main(count: int) -> int:
    """Attack ``count`` copies of a finished run and a tenth as many of a killed one; 1 if anything went wrong."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        finished, killed = stores.finished(folder / "finished"), stores.killed(folder / "killed")
        stores.preloaded(finished)
        found = {
            "a finished run": list(stores.attacks(finished, folder, range(count))),
            "a killed run": list(stores.attacks(killed, folder, range(count // 10))),
        }
    lines = ["| copies of | damaged | commands run | tracebacks or no end | found by `verify` | harmless | not found |"]
    lines.append("|---|---|---|---|---|---|---|")
    lines += [_line(name, findings) for name, findings in found.items()]
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    table = "\n".join(lines)
    PAGE.write_text(f"{before}{BEGIN}\n{table}\n{END}{rest.split(END)[1]}", encoding="utf-8")
    wrong = [one for findings in found.values() for one in findings if one.wrong]
    for one in wrong:
        print(one.damage, one.wrong, one.statuses, one.shown, sep="\n")
    print(table)
    return 1 if wrong else 0


def _line(name: str, findings: Iterable[Finding]) -> str:
    counts = Counter[str]()
    for one in findings:
        verdict = "found" if one.statuses["verify"] else "harmless" if one.harmless else "missed"
        counts.update([verdict, "copies"])
        counts["bad"] += sum(status not in (0, 1, 2) for status in one.statuses.values())
        counts["commands"] += len(COMMANDS)
    keys = ("copies", "commands", "bad", "found", "harmless", "missed")
    return f"| {name} | " + " | ".join(f"{counts[key]:,}" for key in keys) + " |"


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 400))
