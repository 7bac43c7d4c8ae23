"""Testing mutants: in a copy of the repository, in an order that a seed draws, with results that are kept at once.

Any stretch of that order is a random sample, so that a session which was stopped says something about all mutants; it
goes on where it stopped. A result holds as long as the mutated module is the same, that of a survivor as long as its
tests are the same too.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from cosmic_ray.testing import run_tests
from cosmic_ray.work_item import TestOutcome

from tests.mutants import operators, selection
from tests.mutants.operators import Mutant

SEED = 7
SLACK = 60.0  # seconds beyond four times what the tests of a module take


class Session:
    """The mutants of some modules and what is known of them.

    Args:
        folder: where the copy and the results are.
        modules: paths of the modules.
    """

    def __init__(self, folder: Path, modules: Sequence[str]) -> None:
        self._tree, self._results = folder / "tree", folder / "results.jsonl"
        self.sources = {module: (selection.ROOT / module).read_text(encoding="utf-8") for module in modules}
        self.mutants = [mutant for module, source in self.sources.items() for mutant in self._made(module, source)]
        self.mutants.sort(key=lambda mutant: hashlib.sha256(f"{SEED} {mutant.key}".encode()).digest())
        lines = self._results.read_text(encoding="utf-8").splitlines() if self._results.is_file() else []
        self._tests = {module: _digest(module) for module in modules}
        held = {False, *self._tests.values()}
        entries = [entry for entry in map(json.loads, lines) if (entry["survived"] and entry["tests"]) in held]
        self.survived: dict[str, bool] = {entry["key"]: entry["survived"] for entry in entries}

    def _made(self, module: str, source: str) -> Iterator[Mutant]:
        """All mutants of a module, from a file where they were made before."""
        name = hashlib.sha256(f"{module}\n{source}".encode()).hexdigest()[:16]
        cache = self._results.parent / "made" / f"{name}.json"
        if cache.is_file():
            yield from (Mutant(**entry) for entry in json.loads(cache.read_text(encoding="utf-8")))
            return
        made = list(operators.mutants(module, source))
        cache.parent.mkdir(parents=True, exist_ok=True)
        cache.write_text(json.dumps([vars(mutant) for mutant in made]), encoding="utf-8")
        yield from made

    @property
    def untested(self) -> list[Mutant]:
        """What is left to do, in order."""
        return [mutant for mutant in self.mutants if mutant.key not in self.survived]

    def run(self, minutes: float) -> None:
        """Test mutants until none is left or the time is over."""
        end = time.monotonic() + 60.0 * minutes
        self._copy()
        os.chdir(self._tree)  # Cosmic Ray runs the tests in the folder that is current
        os.environ["PYTHONPATH"] = str(self._tree)
        waits: dict[str, float] = {}  # by command
        for mutant in self.untested:
            if time.monotonic() > end:
                return
            command = _command(mutant.module)
            if command not in waits:
                waits[command] = self._unchanged(mutant.module)
            self._keep(mutant, self._test(mutant, waits[command]))

    def _copy(self) -> None:
        """A fresh copy of what git knows of, so that nothing here changes while mutants are tested."""
        shutil.rmtree(self._tree, ignore_errors=True)
        command = ["git", "-C", str(selection.ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, capture_output=True, check=True, text=True).stdout
        for name in filter(None, listed.split("\0")):
            source, target = selection.ROOT / name, self._tree / name
            if source.is_symlink() or source.is_file():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target, follow_symlinks=False)

    def _unchanged(self, module: str) -> float:
        """How long a mutant may take: its tests pass on the module as it is, in a quarter of that.

        Raises:
            RuntimeError: they do not pass.
        """
        before = time.monotonic()
        outcome, output = run_tests(_command(module), 3600.0)
        if outcome != TestOutcome.SURVIVED:
            raise RuntimeError(f"the tests of {module} do not pass without a change:\n{output[-2000:]}")
        return SLACK + 4.0 * (time.monotonic() - before)

    def _test(self, mutant: Mutant, timeout: float) -> bool:
        """Whether all tests pass with a change."""
        file = self._tree / mutant.module
        file.write_text(mutant.source, encoding="utf-8")
        try:
            outcome, _ = run_tests(_command(mutant.module), timeout)
        finally:
            file.write_text(self.sources[mutant.module], encoding="utf-8")
        return bool(outcome == TestOutcome.SURVIVED)

    def _keep(self, mutant: Mutant, survived: bool) -> None:
        self.survived[mutant.key] = survived
        with self._results.open("a", encoding="utf-8") as stream:
            entry = {"key": mutant.key, "survived": survived, "tests": self._tests[mutant.module]}
            stream.write(json.dumps(entry) + "\n")
        verdict = "survived" if survived else "killed"
        print(f"{verdict}: {mutant.module}:{mutant.line} {mutant.operator}: {mutant.change}", flush=True)


def _digest(module: str) -> str:
    """What stands in the tests of a module."""
    places = [selection.ROOT / name for name in selection.tests_of(module)]
    files = sorted(file for place in places for file in (place.rglob("*.py") if place.is_dir() else [place]))
    text = _command(module).encode() + b"".join(file.read_bytes() for file in files)
    return hashlib.sha256(text.replace(sys.executable.encode(), b"")).hexdigest()[:16]


def _command(module: str) -> str:
    """The tests of a module, up to the first that fails."""
    keyword = selection.KEYWORDS.get(module)
    options = ["-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", *(["-k", keyword] if keyword else [])]
    return shlex.join([sys.executable, "-m", "pytest", *options, *selection.tests_of(module)])
