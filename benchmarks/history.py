"""Earlier measurements: ratios that must not fall, instructions that must not rise, and their page.

A ratio to the textbook form has fallen when it is more than `MOST_FALL` below the median of the last ones on file.
Times differ between machines; ratios within one run do so much less, and counts of instructions hardly.
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
MOST_RISE = 0.03
"""Of instructions, above the last count on file."""
RECENT = 3
"""So many of the last measurements give the reference."""
TRIES = 3
"""A ratio that seems to have fallen is measured so often, and the best one counts: noise makes both forms slower."""
BARS = "▁▂▃▄▅▆▇█"
INTRODUCTION = """Each case is computed by coband and by plain loops from the paper, in one process; the ratio of CPU
seconds is what counts. `python -m benchmarks` measures them, and fails where one is more than {fall:.0%} below the
median of the last {recent}; `python -m benchmarks --record` adds a measurement, unless one has fallen, and writes this
page. Measurements are on shared machines with two cores, whose noise is about a tenth. Instructions (callgrind) must
not rise by 3%."""
History = list[dict[str, object]]
"""Measurements, the oldest first: ``date``, ``version``, and by case ``ratios`` and ``instructions``."""


def read(file: Path = FILE) -> History:
    """The measurements on file."""
    found: History = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    return found


def of_case(history: History, name: str, what: str = "ratios") -> list[float]:
    """The ratios or ``instructions`` of a case, the oldest first."""
    return [float(found[name]) for one in history if isinstance(found := one.get(what), dict) and name in found]


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


def risen(instructions: Mapping[str, float], history: History) -> list[str]:
    """The cases that take more instructions than the last time."""
    last = {name: of_case(history, name, "instructions")[-1:] for name in instructions}
    return [name for name, count in instructions.items() if any(count > (1 + MOST_RISE) * old for old in last[name])]


def record(ratios: Mapping[str, float], version: str, instructions: Mapping[str, float], file: Path = FILE) -> None:
    """Add a measurement."""
    found = {name: float(f"{ratio:.3g}") for name, ratio in ratios.items()}
    counts = {name: round(count) for name, count in instructions.items()}
    now = {"date": date.today().isoformat(), "version": version, "ratios": found, "instructions": counts}
    entries = [*read(file), now]
    lines = ",\n ".join(json.dumps(one) for one in entries)
    file.write_text(f"[{lines}]\n", encoding="utf-8")


def page(history: History, what: Mapping[str, str], counted: Mapping[str, str]) -> str:
    """The page of the documentation: one line per case, with all of its ratios as bars, or with its instructions."""
    lines = ["# How fast it is", "", INTRODUCTION.format(fall=MOST_FALL, recent=RECENT), ""]
    lines += ["| case | latest ratio | best | all, the oldest first | what |", "|---|---|---|---|---|"]
    for name in what:
        if found := of_case(history, name):
            lines.append(f"| {name} | {found[-1]:g} | {max(found):g} | {bars(found)} | {what[name]} |")
    lines += ["", "| instructions | latest | first | what |", "|---|---|---|---|"]
    for name in counted:
        if found := of_case(history, name, "instructions"):
            lines.append(f"| {name} | {found[-1]:,.0f} | {found[0]:,.0f} | {counted[name]} |")
    first, last = history[0], history[-1]
    return "\n".join([*lines, "", f"Measured from {first['date']} to {last['date']} ({last['version']}).", ""])


def bars(values: Sequence[float]) -> str:
    """Values as bars, the largest of full height."""
    return "".join(BARS[min(len(BARS) - 1, int(len(BARS) * value / max(values)))] for value in values)
