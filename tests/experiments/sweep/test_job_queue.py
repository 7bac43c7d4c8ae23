"""Sweeps in the queue of a cluster: jobs of dask-jobqueue on this machine, and a Slurm that is two small programs."""

import gc
import os
import re
import signal
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

import coband
from coband.simulator.experiments.runs.executor import ExecutorError
from coband.simulator.experiments.sweep import job_queue
from coband.simulator.experiments.sweep.job_queue import JobQueue, cluster_of
from tests.experiments.runs.fake_runs import ROOT, python, wait_until
from tests.experiments.sweep.sweeps import fingerprints, gated, perform, result_cache, study

pytest.importorskip("dask_jobqueue")

GRID = "grid:\n  problem.noise: [0.1, 0.2]\n"
HERE = ("cores=2", "memory=2GB", "host=127.0.0.1", "dashboard_address=:0")
SUBMIT = """#!{python}
import subprocess, sys
script = open(sys.argv[-1]).read()
with open({log!r}, "a") as log:
    log.write(script)
    job = subprocess.Popen(["bash", "-c", script], start_new_session=True, stdout=log, stderr=log, stdin=log)
print("Submitted batch job", job.pid)
"""
CANCEL = """#!{python}
import os, signal, sys
with open({log!r}, "a") as log:
    log.write(f"cancelled {{sys.argv[1]}}\\n")
os.killpg(int(sys.argv[1]), signal.SIGTERM)
"""


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers import the tests' algorithms."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The log of a Slurm that starts jobs at once, on this machine."""
    place, log = tmp_path / "slurm", tmp_path / "slurm.log"
    place.mkdir()
    for name, text in (("sbatch", SUBMIT), ("scancel", CANCEL)):
        (place / name).write_text(text.format(python=sys.executable, log=str(log)))
        (place / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{place}{os.pathsep}{os.environ['PATH']}")
    return log


def ended(log: Path) -> bool:
    """Whether every job that was submitted has been cancelled and is gone."""
    cancelled = re.findall(r"^cancelled (\d+)$", log.read_text(), re.MULTILINE)
    return bool(cancelled) and not any(alive(int(pid)) for pid in cancelled)


def alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_queue_gives_what_this_machine_gives(tmp_path: Path, slurm: Path) -> None:
    here = perform(study(tmp_path, GRID), tmp_path / "here")
    pool = JobQueue("slurm", [*HERE, "jobs=1", "queue=short", "walltime=00:10:00", "job_extra_directives=--exclusive"])
    there = perform(study(tmp_path, GRID), tmp_path / "there", pool)
    assert len(fingerprints(there.object)) == 8
    assert fingerprints(there.object) == fingerprints(here.object)
    assert there.status.workers.endswith(
        " of slurm (cores=2, memory=2GB, host=127.0.0.1, dashboard_address=:0, jobs=1, queue=short, "
        "walltime=00:10:00, job_extra_directives=['--exclusive'])"
    )
    script = slurm.read_text()
    for line in ("#SBATCH -p short", "#SBATCH -t 00:10:00", "#SBATCH --cpus-per-task=2", "#SBATCH --exclusive"):
        assert f"{line}\n" in script
    assert "--nthreads 1" in script
    assert "--nworkers 2" in script
    assert "--preload-nanny coband" in script
    wait_until(lambda: ended(slurm))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # dask-jobqueue leaves a pipe open
def test_python_says_where_a_sweep_ran(tmp_path: Path) -> None:
    options = {"cores": 1, "memory": "1GB", "host": "127.0.0.1", "dashboard_address": ":0"}
    scenario = coband.Scenario.of(TEXT).with_(replications=1)
    sweep = coband.sweep(scenario, cluster="jobqueue-local", cluster_options=options, out=tmp_path / "sweep")
    shown = "jobqueue-local (cores=1, memory=1GB, host=127.0.0.1, dashboard_address=:0)"
    assert (sweep.manifest["cluster"], sweep.status, len(sweep.results)) == (shown, "finished", 1)
    with pytest.raises(coband.RunError, match="jobqueue-local: .*'coers'"):
        coband.sweep(
            scenario,
            cluster="jobqueue-local",
            cluster_options={"coers": 1, "cores": 1, "memory": "1GB"},
            out=tmp_path / "other",
        )
    with pytest.raises(coband.RunError, match="cluster_options= goes with cluster="):
        coband.sweep(scenario, cluster_options={"cores": 1}, out=tmp_path / "other")
    assert not (tmp_path / "other").exists()


TEXT = """\
name: small
agents: {count: 2}
schedule: {kind: rounds, turns: 5}
problem: {kind: contextual, arms: {kind: ball, dimension: 2, count: 3}, reward: {kind: cosine}}
algorithms: [{algorithm: lin_ucb}]
"""


def test_ctrl_c_cancels_the_jobs(tmp_path: Path, slurm: Path) -> None:
    out, (more, gate) = tmp_path / "out", gated(tmp_path)
    code = f"""if True:
        from pathlib import Path
        from coband.simulator.experiments.sweep.job_queue import JobQueue
        from tests.experiments.sweep.sweeps import perform, study
        report = perform(study(Path({str(tmp_path)!r}), {more!r}), Path({str(out)!r}), JobQueue("slurm", {HERE!r}))
        print(report.status.state)"""
    with python(code) as process:
        wait_until(lambda: len(result_cache(out)) >= 2, process)
        assert not ended(slurm)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    assert output.split() == ["interrupted"]
    wait_until(lambda: ended(slurm))
    gate.unlink()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # dask-jobqueue leaves half a cluster
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["coers=4", "cores=1", "memory=1GB"], r"--cluster slurm: .*unexpected.* 'coers'"),
        (["cores"], r"--cluster-option 'cores' must be KEY=VALUE, such as cores=4 or memory=8GB\."),
        (["cores=many", "memory=1GB"], r"--cluster slurm: "),
        (
            ["cores=1", "cores=2"],
            r"--cluster-option cores is given twice; only job_extra_directives, .* may be repeated",
        ),
        (["cores=4"], r"--cluster slurm: You must specify how much cores and memory"),
        (["cores=4", "memory=much"], r"--cluster slurm: .*'much'"),
    ],
)
def test_wrong_options_are_one_clear_message(slurm: Path, options: list[str], message: str) -> None:
    with pytest.raises(ExecutorError, match=message):
        cluster_of("slurm", options)
    assert not slurm.exists()


def test_wrong_systems_are_one_clear_message(monkeypatch: pytest.MonkeyPatch) -> None:
    said = r"--cluster 'slrum' is not a known system; did you mean slurm\? There is slu"
    with pytest.raises(ExecutorError, match=said):
        cluster_of("slrum")
    said = r"--cluster-option goes with the queue of a cluster: --cluster slurm\|pbs"
    with pytest.raises(ExecutorError, match=said):
        cluster_of("tcp://127.0.0.1:9", ["cores=4"])
    with pytest.raises(ExecutorError, match="is not the address of a Dask scheduler"):
        cluster_of("somewhere")
    monkeypatch.setenv("PATH", "")
    said = r"--cluster pbs: no job could be started: .*qsub"
    with pytest.raises(ExecutorError, match=said):
        cluster_of("pbs", ["cores=1", "memory=1GB"])
    monkeypatch.setitem(sys.modules, "dask_jobqueue.lsf", None)
    with pytest.raises(ExecutorError, match=r"--cluster lsf needs dask-jobqueue, .*pip install 'coband\[jobqueue\]'"):
        cluster_of("lsf")


def test_a_queue_that_takes_no_jobs_is_one_clear_message(slurm: Path, tmp_path: Path) -> None:
    (tmp_path / "slurm" / "sbatch").write_text("#!/bin/sh\necho 'invalid partition specified: shrt' >&2\nexit 1\n")
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", ResourceWarning)
        said = r"--cluster slurm: no job could be started: .*invalid partition spec"
        with pytest.raises(ExecutorError, match=said):
            cluster_of("slurm", [*HERE, "queue=shrt"])
        gc.collect()
    assert [str(one.message) for one in warned if "unclosed cluster" in str(one.message)] == []


@pytest.mark.parametrize("system", job_queue.SYSTEMS)
def test_every_system_is_there(system: str) -> None:
    kind: Any = job_queue._kind(system)
    assert kind.job_cls.__name__.upper().startswith("LOCAL" if "local" in system else system.upper())


def test_advice_while_jobs_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = object.__new__(JobQueue)
    pool._jobs = 3
    monkeypatch.setattr(pool, "_workers", dict)
    assert pool.advice() == ["3 jobs in the queue; the sweep begins when the first one runs"]
    monkeypatch.setattr(pool, "_workers", lambda: {"a": {}})
    assert pool.advice() == []
