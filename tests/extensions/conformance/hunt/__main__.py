"""``python -m tests.extensions.conformance.hunt [COUNT]``: hunt in every family.

The figures are written into docs/reliability.md.

COUNT fault schedules per family, in turn on the scenario as it is and on a network that sends no copy twice
(``max_attempts: 1``), in rounds and one agent at a time. A hunt goes on where the last one was, whatever the code of
that one (``figures``); a failure is kept in ``.hunt`` as a scenario.
"""

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

from coband.extensions.conformance.hunt import Hunt, Schedule
from coband.extensions.conformance.runs import algorithm
from coband.simulator.experiments.runs.code_version import code_version, sha256
from tests.extensions.conformance.hunt.figures import HuntFigures, table
from tests.extensions.conformance.hunt.hunted import HUNTED, hunted

ROOT = Path(__file__).parents[4]
PAGE, FIGURES = ROOT / "docs" / "reliability.md", ROOT / "docs" / "hunts.json"
BEGIN, END = "<!-- hunt: begin -->", "<!-- hunt: end -->"
CHUNK = 20
GIVES_UP: dict[str, Any] = {"retransmission": {"max_attempts": 1}}
ONE_AT_A_TIME = {"kind": "one_at_a_time", "turns": 32}
Chunk = tuple[str, int]
"""A family and the first of its seeds."""


@cache
def hunt_of(family: str, variant: int) -> Hunt:
    """The hunt for seeds of ``variant`` modulo 4: odd ones give up at once, in 2 and 3 one agent acts at a time.

    Algorithms that need rounds are not in 2 and 3, unless all of the family do.
    """
    changes: dict[str, Any] = {}
    if variant % 2:
        changes["network"] = {**HUNTED[family].get("network", {}), **GIVES_UP}
    entries = HUNTED[family]["algorithms"]
    able = [one for one in entries if ONE_AT_A_TIME["kind"] in algorithm(one["algorithm"]).needs.schedules]
    if variant >= 2 and able and HUNTED[family]["schedule"]["kind"] == "rounds":
        changes |= {"schedule": ONE_AT_A_TIME, "algorithms": able}
    return Hunt(hunted(family, **changes))


def work(family: str, first: int, last: int, folder: Path) -> dict[str, int]:
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


def missing(figures: HuntFigures, count: int, again: bool) -> Iterator[Chunk]:
    """What is left to do, all families in turn."""
    firsts = figures.begin(HUNTED, again)
    while left := [family for family, first in firsts.items() if first < count]:
        for family in left:
            yield family, firsts[family]
            firsts[family] += CHUNK


def code() -> str:
    """A digest of the code that is hunted and of the hunts."""
    families = sha256(json.dumps(HUNTED, sort_keys=True), Path(__file__).read_bytes())[:8]
    return f"{code_version()}-{families}"


def hunt(figures: HuntFigures, chunks: Iterator[Chunk], count: int, minutes: float, workers: int) -> int:
    """Hunt in the chunks, for so long; returns the number of failures."""
    folder, until = ROOT / ".hunt", time.monotonic() + 60.0 * minutes
    folder.mkdir(exist_ok=True)
    under_way, failures = dict[Future[dict[str, int]], Chunk](), 0
    with ProcessPoolExecutor(workers) as pool:
        while True:
            while len(under_way) < workers and time.monotonic() < until and (chunk := next(chunks, None)):
                family, first = chunk
                found = pool.submit(work, family, first, min(first + CHUNK, count), folder)
                under_way[found] = chunk
            if not under_way:
                return failures
            for ended in wait(under_way, return_when=FIRST_COMPLETED).done:
                family, first = under_way.pop(ended)
                figures.add(family, first, ended.result())
                if new := ended.result()["failures"]:
                    failures += new
                    print(f"{family}, seeds from {first} on: {new} failures; see {folder}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.extensions.conformance.hunt")
    parser.add_argument("count", nargs="?", type=int, default=10_000, help="fault schedules per family")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="start nothing after so long")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--again", action="store_true", help="also the seeds that earlier code was hunted with")
    given = parser.parse_args()
    figures = HuntFigures(FIGURES, code())
    chunks = missing(figures, given.count, given.again)
    failures = hunt(figures, chunks, given.count, given.minutes, given.workers)
    text = "\n".join(table(figures, {family: len(document["algorithms"]) for family, document in HUNTED.items()}))
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}", encoding="utf-8")
    print(text)
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
