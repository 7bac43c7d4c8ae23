"""``python -m tests.extensions.conformance.hunt [COUNT]``: hunt in every family, and write the figures.

COUNT fault schedules per family, in turn on the scenario as it is and on a network that sends no copy twice
(``max_attempts: 1``), in rounds and one agent at a time. A hunt goes on where the last one was, whatever the code of
that one: more seeds find more than the same ones again. A failure is kept in ``.hunt`` as a scenario. What each version
of the code was hunted with is in docs/hunts.json, and their sums are in docs/reliability.md.
"""

import argparse
import datetime
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import Any

from coband.extensions.conformance.hunt import Hunt
from coband.extensions.conformance.runs import algorithm
from coband.simulator.experiments.runs.code_version import code_version, sha256
from tests.extensions.conformance.hunt.hunted import HUNTED, hunted

ROOT = Path(__file__).parents[4]
PAGE, FIGURES, FOUND = ROOT / "docs" / "reliability.md", ROOT / "docs" / "hunts.json", ROOT / ".hunt"
BEGIN, END = "<!-- hunt: begin -->", "<!-- hunt: end -->"
CHUNK = 20
COUNTS = ("schedules", "impatient", "runs", "gave_up", "refused", "failures")
"""Numbers of a family: schedules, those with max_attempts: 1, runs, runs in which the transport gave messages up,
runs that were refused, and failures."""
GIVES_UP: dict[str, Any] = {"retransmission": {"max_attempts": 1}}
ONE_AT_A_TIME = {"kind": "one_at_a_time", "turns": 32}
Entry = Mapping[str, Any]
"""What one version of the code was hunted with."""


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


def work(family: str, seed: int) -> Counter[str]:
    """The numbers of one schedule; failures become scenarios that reproduce them."""
    (found,) = hunt_of(family, seed % 4).seeds([seed])
    for failure in found.failures:
        comment = "".join(f"# {line}\n" for line in failure.error.rstrip().splitlines())
        file = FOUND / f"{family}-{failure.label.replace(' ', '_')}-{failure.seed}.yaml"
        file.write_text(comment + failure.scenario, encoding="utf-8")
    counts = {"runs": found.runs, "gave_up": found.gave_up, "refused": len(found.refused)}
    return Counter(counts, schedules=1, impatient=seed % 2, failures=len(found.failures))


def hunt(entries: list[dict[str, Any]], count: int, minutes: float, workers: int) -> int:
    """Hunt in all families in turn, and note what is done after each part; returns the number of failures."""
    until, failures, families = time.monotonic() + 60.0 * minutes, 0, json.dumps(HUNTED, sort_keys=True)
    entries.append({"code": f"{code_version()}-{sha256(families, Path(__file__).read_bytes())[:8]}", "families": {}})
    FOUND.mkdir(exist_ok=True)
    with ProcessPoolExecutor(workers) as pool:
        firsts = {one: max(entry["families"].get(one, {}).get("last", 0) for entry in entries) for one in HUNTED}
        while left := [family for family, first in firsts.items() if first < count]:
            for family in left:
                if time.monotonic() > until:
                    return failures
                seeds = range(firsts[family], min(firsts[family] + CHUNK, count))
                found = sum(pool.map(partial(work, family), seeds), Counter[str]())
                part = entries[-1]["families"].setdefault(family, {"first": seeds[0], **dict.fromkeys(COUNTS, 0)})
                part |= {key: part[key] + found[key] for key in COUNTS} | {"last": seeds[-1] + 1}
                entries[-1]["date"] = datetime.datetime.now(datetime.UTC).date().isoformat()
                FIGURES.write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")
                firsts[family], failures = part["last"], failures + found["failures"]
    return failures


def table(entries: Sequence[Entry]) -> Iterator[str]:
    """The figures of all versions of the code together, and how many schedules are of each."""
    yield "| family | algorithms | schedules | `max_attempts: 1` | runs | gave messages up | refused | failures |"
    yield "|---|---|---|---|---|---|---|---|"
    sizes = {family: len(document["algorithms"]) for family, document in HUNTED.items()}
    for name, families in (*((one, [one]) for one in HUNTED), ("all", list(HUNTED))):
        parts = [entry["families"].get(one, {}) for entry in entries for one in families]
        sums = " | ".join(f"{sum(part.get(key, 0) for part in parts):,}" for key in COUNTS)
        yield f"| {name} | {sum(sizes[one] for one in families)} | {sums} |"
    parts = [(sum(part["schedules"] for part in one["families"].values()), one["date"]) for one in entries]
    each = ", ".join(f"{count:,} until {date}" for count, date in parts)
    where = "[hunts.json](hunts.json) has the seeds and the digests of the code."
    yield f"\nWith {len(parts)} versions of the code, the newest last: {each}. {where}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.extensions.conformance.hunt")
    parser.add_argument("count", nargs="?", type=int, default=10_000, help="fault schedules per family")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="start nothing after so long")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    given = parser.parse_args()
    failures = hunt(json.loads(FIGURES.read_text(encoding="utf-8")), given.count, given.minutes, given.workers)
    text = "\n".join(table(json.loads(FIGURES.read_text(encoding="utf-8"))))
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}", encoding="utf-8")
    print(text, f"{failures} failures; see {FOUND}", sep="\n")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
