"""Small sweeps, here and in a process of their own; workers can import it."""

import subprocess
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.runs.driver import drive
from coband.simulator.experiments.runs.executor import InProcess, JobExecutor, Local
from coband.simulator.experiments.runs.job import Level
from coband.simulator.experiments.runs.reporting import Commands, Report
from coband.simulator.experiments.store.directory import RunDirectory
from coband.simulator.experiments.sweep.study import Study, load_study
from tests.experiments.runs import deadly
from tests.experiments.runs.fake_runs import python

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
    installed = Registry.installed()
    return Registry({**installed.algorithms, "deadly": deadly.ALGORITHM}, installed.problems)


def study(folder: Path, more: str = "", *settings: str, trace: Level = "off") -> Study:
    file = folder / "small.yaml"
    file.write_text(TEXT + more)
    return load_study(file, settings, trace=trace, registry=registry())


def perform(what: Study, out: Path, pool: JobExecutor | None = None, listener: Any = None) -> Report:
    out.mkdir(exist_ok=True)
    commands = Commands(["coband", "run", "small.yaml"], ["coband", "sweep", "small.yaml"], "coband sweep --resume")
    with pool or InProcess() as workers:
        return drive(what, RunDirectory(out, resume=True), workers=workers, commands=commands, listener=listener)


def started(
    folder: Path, out: Path, more: str, cluster: str | None = None
) -> AbstractContextManager[subprocess.Popen[str]]:
    """The same in a process of its own with two workers, which can be killed."""
    return python(
        f"from pathlib import Path; from tests.experiments.sweep import sweeps\n"
        f"report = sweeps.perform(sweeps.study(Path({str(folder)!r}), {more!r}), Path({str(out)!r}), "
        f"sweeps.two_workers({cluster!r}))\n"
        f"print(report.status.state, report.status.done, report.missing)"
    )


GATED_JOBS = 6


def gated(folder: Path) -> tuple[str, Path]:
    """A grid with two jobs that wait at a gate, so that two workers stand still when the other four are done."""
    gate = folder / "gate"
    gate.touch()
    return f"grid:\n  algorithms.D.gate: {{open: null, shut: {gate}}}\n", gate


def two_workers(cluster: str | None = None) -> JobExecutor:
    from coband.simulator.experiments.sweep.cluster import Cluster

    return Local(2) if cluster is None else Cluster(cluster)


def fingerprints(report: dict[str, Any]) -> dict[tuple[str, int], str]:
    return {
        (entry["label"], record["replication"]): record["fingerprint"]
        for entry in report["results"]
        for record in entry["replications"]
    }


def result_cache(out: Path) -> list[Path]:
    return sorted(out.glob("done/*/*.json.gz"))
