"""Ratios of earlier measurements: what must not fall, and a page that shows how they went.

A measurement counts as a fall when its ratio to the textbook form is more than `MOST_FALL` below the median of the last
ones on file. Times differ between machines; ratios within one run do so much less.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path

FILE = Path(__file__).with_name("history.json")
PAGE = Path(__file__).parents[1] / "docs" / "speed.md"
MOST_FALL = 0.15
RECENT = 3
"""So many of the last measurements give the reference."""
TRIES = 3
"""A ratio that seems to have fallen is measured so often, and the best one counts: noise makes both forms slower."""
BARS = "▁▂▃▄▅▆▇█"
INTRODUCTION = """Each case is computed by coband and by plain loops from the paper, in one process; the ratio of CPU
seconds is what counts. `python -m benchmarks` measures them, and fails where one is more than {fall:.0%} below the
median of the last {recent}; `python -m benchmarks --record` adds a measurement, unless one has fallen, and writes this
page. Measurements are on shared machines with two cores, whose noise is about a tenth."""
History = list[dict[str, object]]
"""Measurements, the oldest first: ``date``, ``version``, and ``ratios`` by case."""


def read(file: Path = FILE) -> History:
    """The measurements on file."""
    found: History = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    return found


def of_case(history: History, name: str) -> list[float]:
    """The ratios of a case, the oldest first."""
    return [float(ratios[name]) for one in history if isinstance(ratios := one["ratios"], dict) and name in ratios]


def reference(history: History, name: str) -> float | None:
    """The ratio that a new one is compared with; None where there is none."""
    found = of_case(history, name)[-RECENT:]
    return statistics.median(found) if found else None


def held(name: str, first: float, again: Callable[[], float], history: History) -> tuple[float, bool]:
    """(best ratio, whether it has not fallen) of a case.

    Args:
        first: the ratio that was measured.
        again: measures it once more.
    """
    before, best = reference(history, name), first
    for _ in range(TRIES - 1):
        if before is None or best >= (1 - MOST_FALL) * before:
            break
        best = max(best, again())
    return best, before is None or best >= (1 - MOST_FALL) * before


def record(ratios: Mapping[str, float], version: str, file: Path = FILE) -> None:
    """Add a measurement."""
    found = {name: float(f"{ratio:.3g}") for name, ratio in ratios.items()}
    entries = [*read(file), {"date": date.today().isoformat(), "version": version, "ratios": found}]
    lines = ",\n ".join(json.dumps(one) for one in entries)
    file.write_text(f"[{lines}]\n", encoding="utf-8")


def page(history: History, what: Mapping[str, str]) -> str:
    """The page of the documentation: one line per case, with all of its ratios as bars."""
    lines = ["# How fast it is", "", INTRODUCTION.format(fall=MOST_FALL, recent=RECENT), ""]
    lines += ["| case | latest ratio | best | all, the oldest first | what |", "|---|---|---|---|---|"]
    for name in what:
        if found := of_case(history, name):
            lines.append(f"| {name} | {found[-1]:g} | {max(found):g} | {bars(found)} | {what[name]} |")
    dates = [f"{one['date']} ({one['version']})" for one in history]
    return "\n".join([*lines, "", f"Measured on {', '.join(dates)}.", ""])


def bars(values: Sequence[float]) -> str:
    """Values as bars, the largest of full height."""
    return "".join(BARS[min(len(BARS) - 1, int(len(BARS) * value / max(values)))] for value in values)
