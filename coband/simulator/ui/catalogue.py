"""All runs and sweeps below a directory: found anew at each look, read again only when their files have changed."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock

from coband.simulator.experiments.store import opening
from coband.simulator.experiments.store.files import DATABASE, StoreError
from coband.simulator.experiments.store.finding import runs_below
from coband.simulator.ui.entries import DAMAGED, KILLED, RUNNING, Entry, Signature, read, signature

PATIENCE = 0.25
"""Seconds that one look spends on checks; stores for which there was no time are checked at the next looks."""


@dataclass
class _Known:
    """What is remembered of a run as long as its files stay the same."""

    signature: Signature
    entry: Entry
    checked: bool = False


class Catalogue:
    """Finds and remembers runs; several threads may look at once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._known: dict[Path, _Known] = {}
        self._lock = Lock()

    def entries(self) -> list[Entry]:
        """All runs, the one that was started last first."""
        with self._lock:
            self._refresh()
            found = [_current(known.entry) for known in self._known.values()]
        return sorted(found, key=lambda entry: (entry.started, entry.place), reverse=True)

    def find(self, ids: Sequence[str]) -> list[Entry]:
        """The runs with these ids, in their order; ids of no run are left out."""
        found = {entry.id: entry for entry in self.entries()}
        return [found[id] for id in dict.fromkeys(ids) if id in found]

    @property
    def unchecked(self) -> bool:
        """Whether some stores have not been checked yet."""
        with self._lock:
            return any(not known.checked for known in self._known.values())

    def _refresh(self) -> None:
        """Look at all directories, and read those that are new or have changed."""
        found = list(runs_below(self.root))
        for path in set(self._known) - set(found):
            del self._known[path]
        for path in found:
            now, known = signature(path), self._known.get(path)
            if known is None or known.signature != now:
                self._known[path] = _Known(now, read(path, self.root))
        self._check(time.monotonic() + PATIENCE)

    def _check(self, end: float) -> None:
        """Check stores, as long as there is time."""
        for known in self._known.values():
            if not known.checked and time.monotonic() < end:
                known.checked = True
                ended = known.entry.status != RUNNING
                if ended and not known.entry.trouble and (found := _trouble(known.entry.path / DATABASE)):
                    known.entry = replace(known.entry, trouble=found)


def _trouble(file: Path) -> str:
    """What is wrong with a store; empty if nothing."""
    try:
        opening.require_sound(file)
    except StoreError:
        return f"{DATABASE} is damaged"
    except OSError as error:
        return f"{DATABASE} cannot be read ({error.strerror})"
    return ""


def _current(entry: Entry) -> Entry:
    """An entry as it is now: a driver may have died without a trace."""
    if entry.status == RUNNING and not entry.is_alive():
        return replace(entry, status=KILLED)
    if entry.trouble and entry.status != RUNNING:
        return replace(entry, status=DAMAGED)
    return entry


@dataclass(frozen=True)
class Choice:
    """Which runs to list; an empty part lets all through.

    Attributes:
        words: each must occur in the place, scenario, an algorithm or a label, whatever the case.
        since, until: first and last day on which a run was started, as ISO 8601.
    """

    words: str = ""
    status: str = ""
    algorithm: str = ""
    scenario: str = ""
    since: str = ""
    until: str = ""

    def of(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """The runs that it lets through."""
        return (entry for entry in entries if self._fits(entry))

    def _fits(self, entry: Entry) -> bool:
        text = " ".join((entry.place, entry.scenario, entry.kind, *entry.algorithms, *entry.labels)).casefold()
        day = entry.started[:10]
        return (
            all(word in text for word in self.words.casefold().split())
            and self.status in ("", entry.status)
            and (not self.algorithm or self.algorithm in entry.algorithms)
            and self.scenario in ("", entry.scenario)
            and (not self.since or (bool(day) and day >= self.since))
            and (not self.until or (bool(day) and day <= self.until))
        )
