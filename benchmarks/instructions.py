"""Instructions of a turn or a message, counted by callgrind: seconds on a shared machine vary by half, counts hardly.

A short and a long run are counted, and the difference is divided, so that the start drops out. Callgrind runs this
module, which forks for each run: the counts of both begin with that of the import.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks import bandits, k_arms, scale

ONE_THREAD = {"PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
MISSING = "instructions were not counted: there is no valgrind (a Debian package: apt-get install valgrind)"

Case = tuple[Callable[[int], Any], int, int, int, str]
"""A run of so many turns, a short and a long one, what a turn counts as (two messages, of ``exchange``), its name."""
CASES: Mapping[str, Case] = {
    "async": (lambda turns: bandits.run(*bandits.ASYNC, 100, turns), 1000, 4000, 1, "turn"),
    "pull": (lambda turns: bandits.run(*bandits.FED, 100, turns), 1000, 10_000, 1, "pull"),
    "linear": (lambda turns: bandits.run(*bandits.DIS, 100, turns), 500, 2000, 1, "turn"),
    "k_armed": (lambda turns: k_arms.run(turns, **k_arms.ALONE), 100, 400, 16, "turn"),
    "consensus": (lambda turns: k_arms.run(turns, **k_arms.CONSENSUS), 100, 400, 16, "turn with its messages"),
    "exchange": (lambda turns: scale.bare_run(100, turns), 1000, 4000, 2, "message"),
    "turns": (lambda rounds: scale.quiet_run(1000, rounds), 10, 60, 1000, "quiet turn"),
}


def counted(names: Sequence[str]) -> dict[str, float]:
    """Instructions by case; without valgrind nothing but a sentence."""
    if names and shutil.which("valgrind") is None:
        print(MISSING)
        names = []
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", sys.executable, "-m", __spec__.name]
    if not names:
        return {}
    ended = subprocess.run(
        [*command, *names], env={**os.environ, **ONE_THREAD}, capture_output=True, text=True, check=True
    )
    counts = [int(count) for count in re.findall(r"Collected : (\d+)", ended.stderr)]
    found = {}
    for name, one, other in zip(names, counts[::2], counts[1::2], strict=False):
        _, short, long, parts, _ = CASES[name]
        found[name] = abs(other - one) / (long - short) / parts
    return found


def main() -> None:
    """Run the cases, both lengths of each at once, in processes of their own."""
    for name in sys.argv[1:]:
        run, *lengths, _, _ = CASES[name]
        children = []
        for turns in lengths:
            if not (child := os.fork()):
                run(turns)
                os._exit(0)
            children.append(child)
        for child in children:
            os.waitpid(child, 0)


if __name__ == "__main__":
    main()
