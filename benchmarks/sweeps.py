"""What a job costs in addition to its own work, and what it leaves behind: ``python -m benchmarks job memory``.

Jobs that last next to nothing, by the driver of ``coband sweep`` with one worker process: CPU time of both, less that
of the same jobs run bare. And jobs on a graph, whose nodes refer to each other, so that only the garbage collector
frees them.
"""

from __future__ import annotations

import resource
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.measuring import Figure, Figures, seconds
from benchmarks.start import cpu_seconds
from coband.simulator.experiments.runs.attempt import attempt
from coband.simulator.experiments.runs.driver import drive
from coband.simulator.experiments.runs.executor import Local
from coband.simulator.experiments.runs.job import Job
from coband.simulator.experiments.scenario.loading import loads
from coband.simulator.experiments.store.directory import RunDirectory
from coband.simulator.experiments.sweep.study import load_study

SCENARIO = """\
name: tiny
replications: {replications}
agents: {{count: 1}}
schedule: {{kind: rounds, turns: 1}}
problem:
  kind: contextual
  arms: {{kind: ball, dimension: 2, count: 2}}
  reward: {{kind: cosine}}
algorithms:
  - {{algorithm: kernel_ucb}}
grid:
  problem.noise: [0.1, 0.2, 0.3, 0.4]
"""
GRAPH = """\
name: graph
agents: {count: 12}
schedule: {kind: rounds, turns: 6}
network: {topology: {kind: erdos_renyi, p: 0.4}}
trace: off
problem:
  kind: network
  kernel: {kind: gaussian, gamma: 1.0}
  contexts: {kind: ball, dimension: 2}
  arms: {kind: ball, dimension: 3, count: 5}
algorithms:
  - {algorithm: coop_kernel_ucb, hops: 3}
"""
TARGET = 2.0
GRAPH_JOBS = 500
MEGABYTES = 10.0


def sweep(jobs: int) -> float:
    """CPU seconds of a sweep, its worker's start included."""
    with tempfile.TemporaryDirectory(prefix="coband-benchmark-") as folder:
        out, before, pool = Path(folder) / "out", cpu_seconds(), Local(1)
        out.mkdir()
        drive(study(Path(folder), jobs // 4), RunDirectory(out), workers=pool)
        pool.shutdown()
        return cpu_seconds() - before


def study(folder: Path, replications: int) -> Any:
    """Four variants of a job that lasts next to nothing."""
    file = folder / "tiny.yaml"
    file.write_text(SCENARIO.format(replications=replications))
    return load_study(file)


def overhead(jobs: int) -> Figure:
    """Milliseconds that a job costs in addition to its own work."""
    with tempfile.TemporaryDirectory(prefix="coband-benchmark-") as folder:
        scenario = study(Path(folder), 1).variants[0].scenario
    ran, _ = seconds(lambda: [_attempt("kernel_ucb", scenario, number) for number in range(200)], 1)
    few = sweep(40)  # what it takes to begin and to end
    each = 1e3 * ((sweep(jobs) - few) / (jobs - 40) - ran / 200)
    return Figure(f"{each:.2f} ms", f"{TARGET:g} ms", each <= TARGET)


def memory(jobs: int) -> Figure:
    """Megabytes by which memory grows from the first quarter of some jobs on a graph to the last (Linux)."""
    scenario, sizes, quarter = loads(GRAPH), list[float](), jobs // 4
    for replication in range(jobs):
        _attempt("coop_kernel_ucb", scenario, replication)
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        sizes.append(pages * resource.getpagesize() / 1e6)
    grown = max(sizes[-quarter:]) - max(sizes[:quarter])
    return Figure(f"{grown:.1f} MB", f"{MEGABYTES:g} MB", grown <= MEGABYTES)


def _attempt(name: str, scenario: Any, replication: int) -> None:
    attempt(Job(0, name, name, replication, 0, "off"), scenario, lambda result: None)


FIGURES: Figures = {
    "job": (lambda: overhead(2000), "a job in a sweep of 2,000, in addition to its own work"),
    "memory": (lambda: memory(GRAPH_JOBS), f"growth of memory over {GRAPH_JOBS} jobs on graphs"),
}
