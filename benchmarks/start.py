"""Start-up: CPU seconds of whole processes of the command line."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measuring import Figure, Figures

TRIVIAL = """\
name: trivial
agents: {count: 1}
schedule: {kind: rounds, turns: 1}
problem: {kind: contextual, arms: {kind: ball, dimension: 2, count: 2}, reward: {kind: cosine}}
algorithms: [{algorithm: n_kernel_ucb, kernel: {kind: linear}}]
"""
REPEATS = 5


def command(target: float, *arguments: str) -> Figure:
    """The least CPU time of some processes against a target; the first one, which may compile, does not count.

    Args:
        arguments: of ``coband``; ``{folder}`` stands for a folder with a trivial scenario, ``{number}`` for a process.
    """
    with tempfile.TemporaryDirectory(prefix="coband-benchmark-") as folder:
        (Path(folder) / "trivial.yaml").write_text(TRIVIAL, encoding="utf-8")
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        environment |= {name: str(Path(folder) / name) for name in ("PYTHONPYCACHEPREFIX", "XDG_CACHE_HOME")}
        times = []
        for number in range(REPEATS + 1):
            given = [word.format(folder=folder, number=number) for word in arguments]
            before = cpu_seconds()
            subprocess.run([sys.executable, "-m", "coband", *given], env=environment, capture_output=True, check=True)
            times.append(cpu_seconds() - before)
    found = min(times[1:])
    return Figure(f"{found:.2f} s", f"{target:g} s", found <= target)


def cpu_seconds() -> float:
    """CPU seconds of this process and of all that it has started and that have ended."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


FIGURES: Figures = {
    "start_help": (lambda: command(0.1, "--help"), "coband --help, CPU"),
    "start_validate": (lambda: command(0.5, "validate", "quickstart"), "coband validate quickstart, CPU"),
    "start_run": (
        lambda: command(0.5, "run", "{folder}/trivial.yaml", "--out", "{folder}/out{number}"),
        "coband run of one turn, CPU",
    ),
}
