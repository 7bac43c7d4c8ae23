"""What a job costs beside its own work, and what it leaves behind: ``python -m benchmarks job memory``.

Thousands of jobs that last next to nothing, by the driver of ``coband sweep`` with one worker process. The first figure
is CPU time of driver and worker together, less that of the same jobs run bare, per job; the target is at most 2 ms.

Hundreds of jobs on a graph, where nodes refer to each other and only the garbage collector frees them, one after the
other in this process. The second figure is what memory grows by from the first quarter of them to the last; the target
is less than 10 MB.
"""

from __future__ import annotations

import resource
import tempfile
import time
from pathlib import Path

from benchmarks.measuring import Figure, Figures
from coband.simulator.experiments.runs.driver import drive
from coband.simulator.experiments.runs.job import Job, attempt
from coband.simulator.experiments.runs.workers import Local
from coband.simulator.experiments.scenario.loading import loads
from coband.simulator.experiments.sweep.directory import SweepDirectory
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
        file = Path(folder) / "tiny.yaml"
        file.write_text(SCENARIO.format(replications=jobs // 4))
        study, out = load_study(file), Path(folder) / "out"
        out.mkdir()
        before, pool = _cpu(), Local(1)
        drive(study, SweepDirectory(out), workers=pool)
        pool.close()
        return _cpu() - before


def _cpu() -> float:
    """CPU seconds of this process and its ended children."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def bare(jobs: int) -> float:
    """CPU seconds of one job without a sweep around it."""
    with tempfile.TemporaryDirectory(prefix="coband-benchmark-") as folder:
        file = Path(folder) / "tiny.yaml"
        file.write_text(SCENARIO.format(replications=1))
        scenario = load_study(file).variants[0].scenario
    start = time.process_time()
    for replication in range(jobs):
        attempt(Job(0, "kernel_ucb", "kernel_ucb", replication, 0, "off"), scenario, lambda result: None)
    return (time.process_time() - start) / jobs


def growth(jobs: int) -> float:
    """Megabytes that memory grows by from the first quarter of some jobs on a graph to the last."""
    scenario = loads(GRAPH)
    sizes = []
    for replication in range(jobs):
        attempt(Job(0, "coop_kernel_ucb", "coop_kernel_ucb", replication, 0, "off"), scenario, lambda result: None)
        sizes.append(_resident())
    quarter = jobs // 4
    return max(sizes[-quarter:]) - max(sizes[:quarter])


def _resident() -> float:
    """Megabytes of memory that this process has now (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def overhead(jobs: int) -> Figure:
    """Milliseconds that a job costs beside its own work."""
    own = bare(200)
    few = sweep(40)  # what it takes to begin and to end
    each = 1e3 * ((sweep(jobs) - few) / (jobs - 40) - own)
    return Figure(f"{each:.2f} ms", f"{TARGET:g} ms", each <= TARGET)


def memory(jobs: int) -> Figure:
    """Megabytes that memory grows by over jobs on graphs."""
    megabytes = growth(jobs)
    return Figure(f"{megabytes:.1f} MB", f"{MEGABYTES:g} MB", megabytes <= MEGABYTES)


FIGURES: Figures = {
    "job": (lambda: overhead(2000), "a job in a sweep of 2,000, beside its own work"),
    "memory": (lambda: memory(GRAPH_JOBS), f"growth of memory over {GRAPH_JOBS} jobs on graphs"),
}
