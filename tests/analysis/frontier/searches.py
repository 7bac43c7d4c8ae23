"""Small searches."""

from pathlib import Path
from typing import Any

from coband.simulator.analysis.frontier.study import Request, Search, load_search
from coband.simulator.experiments.runs.driver import drive
from coband.simulator.experiments.runs.executor import InProcess
from coband.simulator.experiments.runs.reporting import Commands, Report
from coband.simulator.experiments.store.directory import RunDirectory

TEXT = """\
name: small
seed: 2023
replications: 2
agents: {count: 3}
schedule: {kind: one_at_a_time, turns: 30, order: uniform}
problem:
  kind: contextual
  arms: {kind: ball, dimension: 3, count: 6}
  reward: {kind: cosine}
  noise: 0.1
algorithms:
  - {algorithm: async_kernel_ucb, label: Async, kernel: &k {kind: gaussian, gamma: 1}, alpha: 0.1, q: 1, threshold: 1}
  - {algorithm: n_kernel_ucb, label: Alone, kernel: *k, alpha: 0.1}
trace: off
"""
"""Section 5 of Li et al. 2023 with f1, scaled down."""
GRID = """\
grid:
  algorithms.Async.threshold: [0.03, 0.1, 0.3, 1, 3, 10]
  algorithms.Async.q: [0.03, 0.1, 1]
  algorithms.Async.alpha: [0.01, 0.1, 1]
"""


def search(folder: Path, more: str = "", *settings: str, replications: int | None = 3, **request: Any) -> Search:
    """The scenario with ``more`` after it, from a file."""
    file = folder / "small.yaml"
    file.write_text(TEXT + more)
    return load_search(file, settings, Request(**request), replications=replications)


def perform(what: Search, out: Path, listener: Any = None) -> Report:
    out.mkdir(exist_ok=True)
    commands = Commands(["coband", "run", "small.yaml"], ["coband", "frontier", "small.yaml"], "coband frontier")
    return drive(what, RunDirectory(out, resume=True), workers=InProcess(), commands=commands, listener=listener)
