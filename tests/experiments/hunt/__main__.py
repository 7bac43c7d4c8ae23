"""``python -m tests.experiments.hunt [COUNT]``: hunt in every family, and write the figures into docs/reliability.md.

COUNT fault schedules per family, in turn on the scenario as it is and on a network that sends no copy twice
(``max_attempts: 1``), in rounds and one agent at a time. What is done is kept in ``.hunt`` for the code at hand, so
that a hunt that was stopped goes on where it was; a failure is kept there as a scenario.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import cache
from pathlib import Path
from typing import Any

from coband.simulator.experiments.hunt.hunt import Hunt, Schedule
from coband.simulator.experiments.runs.code_version import code_version, sha256
from tests.experiments.hunt.hunted import HUNTED, hunted

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "reliability.md"
BEGIN, END = "<!-- hunt: begin -->", "<!-- hunt: end -->"
CHUNK = 20
GIVES_UP: dict[str, Any] = {"retransmission": {"max_attempts": 1}}
ONE_AT_A_TIME = {"kind": "one_at_a_time", "turns": 32}
Chunk = tuple[str, int]
"""A family and the first of its seeds."""


@cache
def hunt_of(family: str, variant: int) -> Hunt:
    """The hunt for seeds of ``variant`` modulo 4: odd ones give up at once, in 2 and 3 one agent acts at a time."""
    changes: dict[str, Any] = {}
    if variant % 2:
        changes["network"] = {**HUNTED[family].get("network", {}), **GIVES_UP}
    if variant >= 2 and HUNTED[family]["schedule"]["kind"] == "rounds":
        changes["schedule"] = ONE_AT_A_TIME
    return Hunt(hunted(family, **changes))


def work(family: str, first: int, last: int, folder: Path) -> dict[str, int]:
    """Hunt with some seeds; returns what was counted."""
    counts = Counter[str]()
    for seed in range(first, last):
        (schedule,) = hunt_of(family, seed % 4).seeds([seed])
        counts.update(schedules=1, impatient=seed % 2, runs=schedule.runs, gave_up=schedule.gave_up)
        counts.update(refused=len(schedule.refused), failures=len(schedule.failures))
        keep(schedule, family, folder)
    return dict(counts)


def keep(schedule: Schedule, family: str, folder: Path) -> None:
    """Write failures as scenarios that reproduce them."""
    for failure in schedule.failures:
        label = failure.label.replace(" ", "_")
        file = folder / f"{family}-{label}-{failure.seed}.yaml"
        comment = "".join(f"# {line}\n" for line in failure.error.rstrip().splitlines())
        file.write_text(comment + failure.scenario, encoding="utf-8")


def missing(count: int, done: dict[str, dict[str, int]]) -> Iterator[Chunk]:
    """What is left to do, all families in turn."""
    for first in range(0, count, CHUNK):
        yield from ((family, first) for family in HUNTED if f"{family} {first}" not in done)


def hunt(count: int, minutes: float, workers: int) -> dict[str, dict[str, int]]:
    """Do what is left, for so long; returns what has been counted, by chunk."""
    families = sha256(json.dumps(HUNTED, sort_keys=True), Path(__file__).read_bytes())[:8]
    folder = ROOT / ".hunt" / f"{code_version()}-{families}"
    folder.mkdir(parents=True, exist_ok=True)
    state, until = folder / "done.json", time.monotonic() + 60.0 * minutes
    done: dict[str, dict[str, int]] = json.loads(state.read_text()) if state.exists() else {}
    chunks, under_way = missing(count, done), dict[Future[dict[str, int]], str]()
    with ProcessPoolExecutor(workers) as pool:
        while True:
            while len(under_way) < workers and time.monotonic() < until and (chunk := next(chunks, None)):
                family, first = chunk
                found = pool.submit(work, family, first, min(first + CHUNK, count), folder)
                under_way[found] = f"{family} {first}"
            if not under_way:
                return done
            for ended in wait(under_way, return_when=FIRST_COMPLETED).done:
                key = under_way.pop(ended)
                done[key] = ended.result()
                state.write_text(json.dumps(done))
                if done[key]["failures"]:
                    print(f"{key}: {done[key]['failures']} failures; see {folder}", flush=True)


def table(done: dict[str, dict[str, int]]) -> list[str]:
    """The figures as a table."""
    keys = ("schedules", "impatient", "runs", "gave_up", "refused", "failures")
    lines = ["| family | algorithms | schedules | `max_attempts: 1` | runs | gave messages up | refused | failures |"]
    lines.append("|---|---|---|---|---|---|---|---|")
    total = Counter[str]()
    for family, document in HUNTED.items():
        counts = Counter[str]()
        for key, found in done.items():
            if key.split()[0] == family:
                counts.update(found)
        total.update(counts)
        labels = len(document["algorithms"])
        lines.append(f"| {family} | {labels} | " + " | ".join(f"{counts[key]:,}" for key in keys) + " |")
    labels = sum(len(document["algorithms"]) for document in HUNTED.values())
    lines.append(f"| all | {labels} | " + " | ".join(f"{total[key]:,}" for key in keys) + " |")
    return lines


def main() -> int:
    """Hunt and write the figures; 1 if there was a failure."""
    parser = argparse.ArgumentParser(prog="python -m tests.experiments.hunt")
    parser.add_argument("count", nargs="?", type=int, default=10_000, help="fault schedules per family")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="start nothing after so long")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    given = parser.parse_args()
    done = hunt(given.count, given.minutes, given.workers)
    text = "\n".join(table(done))
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}", encoding="utf-8")
    print(text)
    return int(any(found["failures"] for found in done.values()))


if __name__ == "__main__":
    sys.exit(main())
