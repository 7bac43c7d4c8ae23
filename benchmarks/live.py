"""What `scenarios/live` predicts and what is measured: ``python -m benchmarks.live DIR [SPEED]``.

Runs each scenario simulated and live, unless DIR has the runs already, and writes the tables of docs/howto/live.md.
The figures depend on what else the machine does, so the page says how busy it was.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from coband.simulator.analysis.traces.measured import Row, means, pairs
from coband.simulator.experiments.statistics.numerals import number
from coband.simulator.experiments.store.store import open_run

PAGE = Path(__file__).parents[1] / "docs" / "howto" / "live.md"
SCENARIOS = {"live/even": "all alike", "live/stragglers": "two of eight slow"}
TIMES = tuple(f"time of {share}% of the turns" for share in (25, 50, 75, 100))
OTHERS = {
    "messages": "messages",
    "bytes written (predicted: payload)": "bytes",
    "time of a round, median": "time of a round",
    "copies leave late by, median": "late, median",
    "copies leave late by, 90 %": "late, 90 %",
    "from process to process, median": "on the way, median",
    "from process to process, 90 %": "on the way, 90 %",
}
"""Quantities of the second table, and how its header calls them."""


def runs(place: Path, speed: str) -> None:
    """Run what is missing."""
    for name in SCENARIOS:
        for kind, options in {"sim": ["run", name], "live": ["live", name, "--speed", speed]}.items():
            out = place / f"{name.partition('/')[2]}-{kind}"
            if not out.exists():
                load = os.getloadavg()[0]
                subprocess.run([sys.executable, "-m", "coband", *options, "--out", str(out)], check=True)
                (place / f"{out.name}.json").write_text(json.dumps({"load": load, "cores": os.cpu_count()}))


def rows(place: Path) -> Iterator[tuple[str, str, dict[str, Row]]]:
    """(words for the scenario, label, quantities) of everything that was run."""
    for name, words in SCENARIOS.items():
        stem = name.partition("/")[2]
        with open_run(place / f"{stem}-sim") as predicted, open_run(place / f"{stem}-live") as measured:
            found = list(pairs(predicted, measured))
        for label in dict.fromkeys(pair.label for pair in found):
            same = [pair.rows for pair in found if pair.label == label]
            yield words, label, {row.title: row for row in means(same)}


def tables(place: Path, speed: str) -> Iterator[str]:
    """The lines of both tables, and what they say together."""
    found = list(rows(place))
    yield "| agents | algorithm | 25 % of the turns | 50 % | 75 % | 100 % |"
    yield "|---|---|---|---|---|---|"
    for words, label, row in found:
        yield f"| {words} | {label} | {' | '.join(_cell(row[title]) for title in TIMES)} |"
    errors = [abs((row[title].ratio or 0.0) - 1.0) for _, _, row in found for title in TIMES]
    yield ""
    yield f"| agents | algorithm | {' | '.join(OTHERS.values())} |"
    yield "|---" * (len(OTHERS) + 2) + "|"
    for words, label, row in found:
        yield f"| {words} | {label} | {' | '.join(_cell(row[title]) for title in OTHERS)} |"
    loads = [json.loads(file.read_text()) for file in sorted(place.glob("*-live.json"))]
    busy = " and ".join(f"{entry['load']:.1f} on {entry['cores']} cores" for entry in loads) or "unknown"
    yield ""
    yield (
        f"Means over 3 replications, predicted → measured, in units of simulated time ({speed} s). The largest "
        f"error of a time in the first table is {max(errors):.0%}, the mean error {sum(errors) / len(errors):.1%}. "
        f"Load average before the runs: {busy}."
    )


def _cell(row: Row) -> str:
    if row.predicted is None:
        return _short(row.measured)
    return f"{_short(row.predicted)} → {_short(row.measured)}"


def _short(value: float | None) -> str:
    return "-" if value is None else number(float(f"{value:.3g}"))


def main() -> None:
    """Run, and write the page."""
    place, speed = Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "0.1"
    place.mkdir(parents=True, exist_ok=True)
    runs(place, speed)
    text = "\n".join(tables(place, speed))
    page = PAGE.read_text(encoding="utf-8")
    begin, end = "<!-- benchmarks.live -->\n", "<!-- end -->"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    PAGE.write_text(pattern.sub(lambda _: f"{begin}\n{text}\n\n{end}", page), encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
