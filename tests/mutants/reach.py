"""Which tests run which statements: a mutant is tested by those that run the statement it changes."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tests.mutants import selection, statements
from tests.mutants.operators import Mutant
from tests.mutants.zygote import Zygote

OPTIONS = ("-q", "-p", "no:cacheprovider", "--hypothesis-seed=0")
SLOW = 3.0  # seconds of the processor: a test that takes longer tests no mutants
PORTIONS = (1.0, 3.0, 8.0)  # seconds that the first, second and third run of a mutant's tests take
TOGETHER = 8  # test files run at once
WAIT = 3600.0


class Reach:
    """What each test runs, and how long it takes.

    Args:
        folder: where it is kept from one session to the next.
        modules: what is looked at.
        files: whose tests.
    """

    def __init__(self, folder: Path, modules: Sequence[str], files: Sequence[str]) -> None:
        self._folder, self._files = folder / "reach", files
        self.sources = {name: (selection.ROOT / name).read_text(encoding="utf-8") for name in modules}
        self.tests: dict[str, dict[str, Any]] = {}
        self._imports: dict[str, set[int]] = {}  # statements that run at import, by module
        self.kills: dict[str, Counter[str]] = {}  # by module

    def record(self, zygote: Zygote) -> None:
        """Run every test file, those that have been run before and are as they were apart.

        Raises:
            RuntimeError: the tests of a file cannot be collected.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        sources = hashlib.sha256(json.dumps(self.sources).encode()).hexdigest()
        places = {}
        for file in self._files:
            text = (selection.ROOT / file).read_text(encoding="utf-8")
            places[file] = self._folder / f"{hashlib.sha256(f'{file} {sources} {text}'.encode()).hexdigest()[:16]}.json"
        new = [file for file, place in places.items() if not place.is_file()]
        while new:
            together, new = new[:TOGETHER], new[TOGETHER:]
            entries = zygote.run([*OPTIONS, *together], WAIT, limit=SLOW, marked=[*self.sources])["tests"]
            for entry in entries:
                if "uncollected" in entry:
                    raise RuntimeError(f"{entry['uncollected']} cannot be collected: {entry['why']}")
            for file in together:
                own = [entry for entry in entries if _file(entry) in (file, None)]
                places[file].write_text(json.dumps(own), encoding="utf-8")
        for place in places.values():
            self._read(json.loads(place.read_text(encoding="utf-8")))

    def _read(self, entries: list[dict[str, Any]]) -> None:
        """Add the tests of a file; those that fail or take too long test nothing."""
        failed = {entry["failed"] for entry in entries if "failed" in entry}
        found = {entry["test"]: entry for entry in entries if "test" in entry and entry["test"] not in failed}
        for name, entry in found.items():
            self.tests[name] = {
                "seconds": entry["seconds"],
                "ran": {module: set(places) for module, places in entry["ran"].items()},
            }
        for module, places in (one for entry in entries for one in entry.get("imports", {}).items()):
            self._imports.setdefault(module, set()).update(places)

    def portions(self, mutant: Mutant) -> Iterator[dict[str, float]]:
        """The tests of a mutant with their seconds, in portions, the most telling first.

        Its module's own tests come before all others. Among these, tests of declarations come first where they are
        asked for, then those that killed mutants of the module; then one case of each test function, the quickest
        first.
        """
        names = self._of(mutant)
        kills = self.kills.get(mutant.module, Counter())
        by_time = sorted(names, key=lambda name: self.tests[name]["seconds"])
        cases = Counter[str]()
        ranks = {}
        for name in by_time:
            function = name.split("[")[0]
            ranks[name] = (not _of_declarations(name), -kills[name], cases[function], self.tests[name]["seconds"])
            cases[function] += 1
        found = sorted(by_time, key=ranks.__getitem__)
        own = [name for name in found if selection.is_nearby(name, mutant.module)]
        for left in (own, [name for name in found if name not in {*own}]):
            yield from self._portions(left)

    def _portions(self, left: list[str]) -> Iterator[dict[str, float]]:
        for budget in PORTIONS:
            portion: dict[str, float] = {}
            while left and sum(portion.values()) < budget:
                name = left.pop(0)
                portion[name] = self.tests[name]["seconds"]
            if portion:
                yield portion

    def at_import(self, mutant: Mutant) -> bool:
        """Whether a mutant changes what runs at import."""
        places = _around(self.sources[mutant.module], mutant.line)
        return not places or bool(places & self._imports.get(mutant.module, set()))

    def _of(self, mutant: Mutant) -> list[str]:
        """The tests that run what a mutant changes.

        For what runs at import: those of declarations, and all that run anything of the module.
        """
        module = mutant.module
        if not self.at_import(mutant):
            places = _around(self.sources[module], mutant.line)
            return [name for name, test in self.tests.items() if places & test["ran"].get(module, set())]
        of_module = [name for name, test in self.tests.items() if module in test["ran"]] or [*self.tests]
        return list({*filter(_of_declarations, self.tests), *of_module})


@cache
def _around(source: str, line: int) -> frozenset[int]:
    return frozenset(statements.around(source, line))


def _of_declarations(test: str) -> bool:
    return test.split("::")[0] in selection.DECLARED


def _file(entry: dict[str, Any]) -> str | None:
    """The file of what was reported of a test; None: it is of all."""
    name = next((str(entry[key]) for key in ("test", "starts", "failed") if key in entry), None)
    return None if name is None else name.split("::")[0]


def files(tests: Sequence[str]) -> list[str]:
    """The files of tests, each once."""
    return list(dict.fromkeys(name.split("::")[0] for name in tests))
