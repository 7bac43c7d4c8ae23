"""Testing mutants: in a copy of the repository, in an order that a seed draws, with results that are kept at once.

Any stretch of that order is a random sample, so that a session which was stopped says something about all mutants; it
goes on where it stopped. A result holds as long as the mutated module is the same, that of a survivor as long as its
tests are the same too.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.mutants import operators, patches, selection
from tests.mutants.operators import Mutant
from tests.mutants.reach import OPTIONS, Reach, files
from tests.mutants.zygote import FAULT, Zygote

SEED = 7
SLACK, FACTOR = 3.0, 5.0  # a test of a mutant may take so many seconds of the processor and so many times what it takes
WAIT = 120.0  # seconds beyond twenty times that: for what waits for ever
NO_TESTS = 5  # pytest's exit code
_MAKING = Path(operators.__file__).read_text(encoding="utf-8")  # how mutants are made


class Session:
    """The mutants of some modules and what is known of them.

    Args:
        folder: where the copy and the results are.
        modules: paths of the modules.
        equivalent: keys of mutants that no test can notice, and that are not tested again.
        sample: how many mutants of each package are tested, the first ones in the order; None for all.
        own: whether the tests of the modules' own folders alone are run, which are far fewer: who survives them is
            tested again by all, without this.

    Attributes:
        mutants: those of the sample, in order.
        made: how many there are of each module.
        by_own: whether a mutant was killed by its module's own tests, by key.
        survived: whether a mutant passes the tests as they are now, by key.
        at_first: the same of the tests as they were when it was tested first.
    """

    def __init__(
        self,
        folder: Path,
        modules: Sequence[str],
        equivalent: Collection[str] = (),
        sample: int | None = None,
        own: bool = False,
    ) -> None:
        self._tree, self._results = folder / "tree", folder / "results.jsonl"
        self.sources = {module: (selection.ROOT / module).read_text(encoding="utf-8") for module in modules}
        self.mutants = [mutant for module, source in self.sources.items() for mutant in self._made(module, source)]
        self.mutants.sort(key=lambda mutant: hashlib.sha256(f"{SEED} {mutant.key}".encode()).digest())
        self.made = Counter(mutant.module for mutant in self.mutants)
        if sample is not None:
            self.mutants = _sampled(self.mutants, sample)
        self._files, self._own = selection.files_with_tests(modules, own), own
        self._tests = _digest(self._files)
        self._reach = Reach(folder, modules, self._files)
        self.survived: dict[str, bool] = {}
        self.by_own: dict[str, bool] = {}
        self.at_first: dict[str, bool] = {}
        lines = self._results.read_text(encoding="utf-8").splitlines() if self._results.is_file() else []
        for line in lines:
            self._know(json.loads(line), equivalent)

    def _know(self, entry: dict[str, Any], equivalent: Collection[str]) -> None:
        """Take a result over from an earlier session, as far as it still holds."""
        key, survived, killer = entry["key"], entry["survived"], entry["killer"]
        if not (survived and entry["own"]):
            self.at_first.setdefault(key, survived)
        if not survived or key in equivalent or entry["tests"] == self._tests:
            self.survived[key], self.by_own[key] = survived, entry["by_own"]
        if killer:
            self._reach.kills.setdefault(entry["module"], Counter())[killer] += 1

    def _made(self, module: str, source: str) -> Iterator[Mutant]:
        """All mutants of a module, from a file where they were made before."""
        name = hashlib.sha256(f"{module}\n{source}\n{_MAKING}".encode()).hexdigest()[:16]
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
        zygote = Zygote(self._tree)
        collected = Zygote(self._tree, self._files)
        try:
            self._reach.record(zygote)
            for mutant in self.untested:
                if time.monotonic() > end:
                    return
                self._keep(mutant, *self._test(mutant, zygote, collected))
        finally:
            zygote.close()
            collected.close()

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

    def _test(self, mutant: Mutant, zygote: Zygote, collected: Zygote) -> tuple[bool, str]:
        """Whether the tests that run a changed statement pass, and what noticed the change otherwise.

        What runs at import is tested in a fork that imports it; of what does not, the functions are replaced.
        """
        source = self.sources[mutant.module]
        changed = mutant.applied(source)
        at_import = self._reach.at_import(mutant) or patches.patches(source, changed, mutant.module) is None
        options: dict[str, Any] = {"changed": True} if at_import else {"patch": [mutant.module, source, changed]}
        file = self._tree / mutant.module
        file.write_text(changed, encoding="utf-8")
        try:
            for portion in self._reach.portions(mutant):
                limits = {name: SLACK + FACTOR * seconds for name, seconds in portion.items()}
                arguments, wait = ["-x", *OPTIONS, *files([*portion])], WAIT + 20.0 * sum(limits.values())
                answer = (zygote if at_import else collected).run(arguments, wait, order=limits, **options)
                if answer["code"] == FAULT and not at_import:  # the function to be replaced lives in no module
                    at_import, options = True, {"changed": True}
                    answer = zygote.run(arguments, wait, order=limits, **options)
                if answer["code"] == FAULT:
                    raise RuntimeError(f"no tests could run: {answer['tests']}")
                if answer["code"] not in (0, NO_TESTS):
                    return False, _culprit(answer)
        finally:
            file.write_text(source, encoding="utf-8")
        return True, ""

    def _keep(self, mutant: Mutant, survived: bool, killer: str) -> None:
        by_own = not survived and (not killer or selection.is_nearby(killer, mutant.module))
        self.survived[mutant.key], self.by_own[mutant.key] = survived, by_own
        if not (survived and self._own):
            self.at_first.setdefault(mutant.key, survived)
        if killer:
            self._reach.kills.setdefault(mutant.module, Counter())[killer] += 1
        entry = {"key": mutant.key, "module": mutant.module, "survived": survived, "killer": killer}
        entry |= {"by_own": by_own, "own": self._own}
        with self._results.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(entry | {"tests": self._tests}) + "\n")
        verdict = "survived" if survived else "killed"
        print(f"{verdict}: {mutant.module}:{mutant.line} {mutant.operator}: {mutant.change} {killer}", flush=True)


def _culprit(answer: dict[str, Any]) -> str:
    """The test that failed, or did not end; empty: the import did."""
    failed = [entry["failed"] for entry in answer["tests"] if "failed" in entry]
    started = [entry["starts"] for entry in answer["tests"] if "starts" in entry]
    return str((failed or started or [""])[-1])


def _sampled(mutants: Sequence[Mutant], size: int) -> list[Mutant]:
    """The first mutants of each package, of all packages in turn."""
    ranks = Counter[str]()
    found = []
    for mutant in mutants:
        package = selection.package(mutant.module)
        ranks[package] += 1
        if ranks[package] <= size:
            found.append((ranks[package], mutant))
    return [mutant for _, mutant in sorted(found, key=lambda pair: pair[0])]


def _digest(files: Sequence[str]) -> str:
    """What stands in the tests."""
    text = b"".join((selection.ROOT / name).read_bytes() for name in files)
    return hashlib.sha256(text).hexdigest()[:16]
