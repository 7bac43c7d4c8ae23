"""What hunts have found so far, kept in docs/hunts.json: how many schedules ran with which code, and their numbers.

A schedule follows from its seed. Seeds are hunted in ascending order in every family, and what one version of the code
was hunted with need not be repeated by the next one: more seeds find more than the same ones again.
"""

import datetime
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

COUNTS = ("schedules", "impatient", "runs", "gave_up", "refused", "failures")
"""Numbers of a family: schedules, those with max_attempts: 1, runs, runs in which the transport gave messages up,
runs that were refused, and failures."""
Found = dict[str, int]
Entry = dict[str, Any]


class HuntFigures:
    """The figures of all hunts, on disk.

    Args:
        path: the file; there may be none yet.
        code: digest of the code at hand.
    """

    def __init__(self, path: Path, code: str) -> None:
        self._path = path
        self.entries: list[Entry] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
        self._code = code
        self._entry: Entry = {"code": code, "date": "", "families": {}}  # of this hunt
        self._early: dict[tuple[str, int], Found] = {}  # chunks that ended before an earlier one

    def begin(self, families: Iterable[str], again: bool = False) -> dict[str, int]:
        """Begin a hunt, or go on with the last one.

        Args:
            families: their names.
            again: whether seeds that earlier code was hunted with count as not hunted.

        Returns:
            The first seed of each family that is left.
        """
        known = [entry["families"] for entry in self.entries if not again or entry["code"] == self._code]
        left = {
            family: max((parts[family]["last"] for parts in known if family in parts), default=0) for family in families
        }
        newest = self.entries[-1] if self.entries else {"code": None}
        if newest["code"] == self._code and all(left[one] == part["last"] for one, part in newest["families"].items()):
            self._entry = newest
        for family in left.keys() - self._entry["families"].keys():
            self._entry["families"][family] = dict.fromkeys(("first", "last"), left[family]) | dict.fromkeys(COUNTS, 0)
        return left

    def add(self, family: str, first: int, found: Found) -> None:
        """Take in the schedules from seed ``first`` on, and write all that are there without a gap."""
        self._early[family, first] = found
        part = self._entry["families"][family]
        while (more := self._early.pop((family, part["last"]), None)) is not None:
            part.update({key: part[key] + more.get(key, 0) for key in COUNTS})
            part["last"] += more["schedules"]
            self._entry["date"] = datetime.datetime.now(datetime.UTC).date().isoformat()
        if self._entry["date"]:
            self._write()

    def _write(self) -> None:
        if all(entry is not self._entry for entry in self.entries):
            self.entries.append(self._entry)
        aside = self._path.with_suffix(".part")
        aside.write_text(json.dumps(self.entries, indent=1) + "\n", encoding="utf-8")
        aside.replace(self._path)

    def totals(self, family: str) -> Counter[str]:
        """The numbers of a family with all versions of the code."""
        counts = Counter[str](dict.fromkeys(COUNTS, 0))
        for entry in self.entries:
            counts.update({key: entry["families"].get(family, {}).get(key, 0) for key in COUNTS})
        return counts


def table(figures: HuntFigures, algorithms: dict[str, int]) -> Iterator[str]:
    """The figures as a table, and which of them are of the newest code.

    Args:
        figures: what was found.
        algorithms: how many algorithms each family has.
    """
    yield "| family | algorithms | schedules | `max_attempts: 1` | runs | gave messages up | refused | failures |"
    yield "|---|---|---|---|---|---|---|---|"
    total = Counter[str]()
    for family, count in algorithms.items():
        counts = figures.totals(family)
        total.update(counts)
        yield _row(family, count, counts)
    yield _row("all", sum(algorithms.values()), total)
    yield ""
    yield f"{_sentence(figures.entries)} [hunts.json](hunts.json) has the seeds and the digests of the code."


def _row(name: str, algorithms: int, counts: Counter[str]) -> str:
    return f"| {name} | {algorithms} | " + " | ".join(f"{counts[key]:,}" for key in COUNTS) + " |"


def _sentence(entries: Sequence[Entry]) -> str:
    parts = [(sum(part["schedules"] for part in one["families"].values()), one["date"]) for one in entries]
    if len(parts) == 1:
        return f"All of them ran with the same code, until {parts[0][1]}."
    each = ", ".join(f"{count:,} until {date}" for count, date in parts)
    return f"With {len(parts)} versions of the code, the newest last: {each}."
