"""Small sweeps, here and in a process of their own; workers can import it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.runs import executors
from coband.simulator.experiments.sweep.driver import Commands, Driver, Report
from coband.simulator.experiments.sweep.study import Study, load_study
from coband.simulator.experiments.sweep.workers import Local, WorkerPool
from tests.experiments.runs import deadly
from tests.experiments.runs.fake_runs import ROOT

TEXT = """\
name: small
seed: 3
replications: 2
agents: {count: 2}
schedule: {kind: rounds, turns: 20}
problem:
  kind: contextual
  arms: {kind: ball, dimension: 2, count: 3}
  reward: {kind: cosine}
algorithms:
  - {algorithm: deadly, label: D}
  - {algorithm: kernel_ucb, label: K}
"""


def registry() -> Registry:
    """What is installed, and the algorithm that misbehaves."""
    installed = Registry.installed()
    return Registry({**installed.algorithms, "deadly": deadly.ALGORITHM}, installed.problems)


def study(folder: Path, more: str = "", *settings: str) -> Study:
    """The scenario :data:`TEXT` with ``more`` after it, from a file."""
    file = folder / "small.yaml"
    file.write_text(TEXT + more)
    return load_study(file, settings, registry=registry())


class Here:
    """A crew that does its jobs in this process."""

    died: tuple[type[BaseException], ...] = ()
    outlives = True
    dashboard: str | None = None

    def size(self) -> int:
        return 1

    def executor(self, workers: int | None = None) -> Executor:
        return executors.Serial()

    def breaks(self) -> bool:
        return False

    def abandon(self) -> None:
        pass

    def close(self) -> None:
        pass

    def describe(self) -> str:
        return "this process"


def perform(what: Study, out: Path, crew: WorkerPool | None = None, listener: Any = None) -> Report:
    """Run a study into ``out``."""
    out.mkdir(exist_ok=True)
    commands = Commands(["coband", "run", "small.yaml"], "coband sweep --resume", ["coband", "sweep", "small.yaml"])
    crew = crew or Here()
    try:
        return Driver(what, out, crew, commands, listener).run()
    finally:
        crew.close()


@contextmanager
def started(folder: Path, out: Path, more: str, cluster: str | None = None) -> Iterator[subprocess.Popen[str]]:
    """The same in a process of its own with two workers, which can be killed."""
    code = (
        f"from pathlib import Path; from tests.experiments.sweep import sweeps\n"
        f"report = sweeps.perform(sweeps.study(Path({str(folder)!r}), {more!r}), Path({str(out)!r}), "
        f"sweeps.two_workers({cluster!r}))\n"
        f"print(report.status.state, report.status.done, report.missing)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait(timeout=60)
        assert process.stdout is not None
        process.stdout.close()  # not read to its end: workers that wait at a gate hold the other side open


GATED_JOBS = 6


def gated(folder: Path) -> tuple[str, Path]:
    """A grid with two jobs that wait at a gate, so that two workers stand still when the other four are done."""
    gate = folder / "gate"
    gate.touch()
    return f"grid:\n  algorithms.D.gate: {{open: null, shut: {gate}}}\n", gate


def two_workers(cluster: str | None = None) -> WorkerPool:
    """Two processes, or those of a cluster."""
    from coband.simulator.experiments.sweep.workers import Cluster

    return Local(2) if cluster is None else Cluster(cluster)


def fingerprints(report: dict[str, Any]) -> dict[tuple[str, int], str]:
    """(label, replication) -> fingerprint."""
    return {
        (entry["label"], record["replication"]): record["fingerprint"]
        for entry in report["results"]
        for record in entry["replications"]
    }


def result_cache(out: Path) -> list[Path]:
    """The done-files of a sweep."""
    return sorted(out.glob("done/*/*.json.gz"))
