"""Start-up: CPU seconds of whole processes of the command line."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
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
    """The least CPU time of some processes against a target."""
    found = processes(arguments)
    return Figure(f"{found:.2f} s", f"{target:g} s", found <= target)


def processes(arguments: Sequence[str], repeats: int = REPEATS) -> float:
    """The least CPU time of some processes; a first one, which may compile the sources, does not count.

    Args:
        arguments: of ``coband``; ``{folder}`` stands for a folder with a trivial scenario, ``{number}`` for a process.
    """
    with tempfile.TemporaryDirectory(prefix="coband-benchmark-") as folder:
        (Path(folder) / "trivial.yaml").write_text(TRIVIAL, encoding="utf-8")
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        environment |= {name: str(Path(folder) / name) for name in ("PYTHONPYCACHEPREFIX", "XDG_CACHE_HOME")}
        times = []
        for number in range(repeats + 1):
            given = [word.format(folder=folder, number=number) for word in arguments]
            before = children()
            subprocess.run([sys.executable, "-m", "coband", *given], env=environment, capture_output=True, check=True)
            times.append(children() - before)
    return min(times[1:])


def children() -> float:
    """CPU seconds of all processes that have been started and have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


FIGURES: Figures = {
    "start_help": (lambda: command(0.1, "--help"), "coband --help, CPU"),
    "start_list": (lambda: command(0.3, "list"), "coband list, CPU"),
    "start_describe": (lambda: command(0.3, "describe", "coop_kernel_ucb"), "coband describe coop_kernel_ucb, CPU"),
    "start_validate": (lambda: command(0.5, "validate", "quickstart"), "coband validate quickstart, CPU"),
    "start_run": (
        lambda: command(0.5, "run", "{folder}/trivial.yaml", "--out", "{folder}/out{number}"),
        "coband run of one turn, CPU",
    ),
}
