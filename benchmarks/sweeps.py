"""What a job costs beside its own work, and what it leaves behind: ``python -m benchmarks.sweeps [JOBS]``.

Thousands of jobs that last next to nothing, by the driver of ``coband sweep`` with one worker process. The first figure
is CPU time of driver and worker together, less that of the same jobs run bare, per job; the target is less than 10 ms.

Hundreds of jobs on a graph, where nodes refer to each other and only the garbage collector frees them, one after the
other in this process. The second figure is what memory grows by from the first quarter of them to the last; the target
is less than 10 MB.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path

from coband.simulator.experiments.runs.driver import Report, drive
from coband.simulator.experiments.runs.job import Job, attempt
from coband.simulator.experiments.runs.workers import Local
from coband.simulator.experiments.scenario.scenario import loads
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
TARGET = 10.0
GRAPH_JOBS = 500
MEGABYTES = 10.0


def sweep(jobs: int) -> tuple[float, float, Report]:
    """CPU and wall seconds of a sweep, its worker's start included, and what came of it."""
    with tempfile.TemporaryDirectory(prefix="coband-benchmark-") as folder:
        file = Path(folder) / "tiny.yaml"
        file.write_text(SCENARIO.format(replications=jobs // 4))
        study, out = load_study(file), Path(folder) / "out"
        out.mkdir()
        before, start = _cpu(), time.perf_counter()
        pool = Local(1)
        report = drive(study, SweepDirectory(out), workers=pool)
        pool.close()
        return _cpu() - before, time.perf_counter() - start, report


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


def growth(jobs: int) -> tuple[float, float]:
    """Megabytes that memory grows by from the first quarter of some jobs on a graph to the last, and ms a job."""
    scenario = loads(GRAPH)
    start, sizes = time.process_time(), []
    for replication in range(jobs):
        attempt(Job(0, "coop_kernel_ucb", "coop_kernel_ucb", replication, 0, "off"), scenario, lambda result: None)
        sizes.append(_resident())
    quarter = jobs // 4
    return max(sizes[-quarter:]) - max(sizes[:quarter]), 1e3 * (time.process_time() - start) / jobs


def _resident() -> float:
    """Megabytes of memory that this process has now (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def main() -> None:
    """Print two lines."""
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    own = bare(200)
    few, _, _ = sweep(40)  # what it takes to begin and to end
    cpu, wall, report = sweep(jobs)
    each = (cpu - few) / (jobs - 40)
    overhead = 1e3 * (each - own)
    print(
        f"{report.status.done} jobs: {overhead:.2f} ms overhead a job, target at most {TARGET:g} ms; "
        f"a job alone {1e3 * own:.2f} ms, to begin and end {few:.1f} s CPU, {wall:.1f} s on the clock"
    )
    megabytes, each = growth(GRAPH_JOBS)
    print(
        f"{GRAPH_JOBS} jobs on a graph: memory grows by {megabytes:.1f} MB, target at most {MEGABYTES:g} MB; "
        f"{each:.1f} ms a job"
    )


if __name__ == "__main__":
    main()
