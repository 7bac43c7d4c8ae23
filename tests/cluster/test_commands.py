"""The page on clusters holds commands that ran: with a plain scheduler, over TLS, and in the queue of a real Slurm."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.experiments.runs.fake_runs import ROOT, wait_until
from tests.experiments.sweep.sweeps import GATED_JOBS, fingerprints, gated, perform, result_cache, started, study
from tests.experiments.sweep.test_cluster import made, pids

dask = pytest.importorskip("dask")
pytest.importorskip("dask_jobqueue")
pytestmark = pytest.mark.slow

PAGE = (ROOT / "docs" / "howto" / "cluster.md").read_text(encoding="utf-8")
SLURM = Path(__file__).with_name("slurm.sh")
LONG = ["--set", "schedule.turns=4000", "--replications", "8"]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with the files of the page, and its programs on the path, run by this Python."""
    monkeypatch.chdir(tmp_path)
    for name, text in re.findall(r"```yaml\n# (\S+)\n(.*?)```", PAGE, re.DOTALL):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text)
    Path("bin").mkdir()
    for program in ("coband", "dask"):
        (file := Path("bin", program)).write_text(f'#!/bin/sh\nexec {sys.executable} -m {program} "$@"\n')
        file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{Path('bin').resolve()}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if os.geteuid() or not all(map(shutil.which, ("slurmctld", "slurmd", "munged"))):
        pytest.skip("a Slurm needs root and Debian's packages slurm-wlm and munge")
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "slurm" / "slurm.conf"))
    try:
        subprocess.run([SLURM, "start", tmp_path / "slurm"], check=True)
        yield
    finally:
        subprocess.run([SLURM, "stop", tmp_path / "slurm"], check=True)


def run(where: str) -> None:
    """Run the blocks of the page that begin with ``# on WHERE``; schedulers and workers go on until the end."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    lines = ["set -e", "trap 'kill $(jobs -p) 2> /dev/null || true; wait' EXIT"]
    for block in re.findall(rf"```sh\n# on {where}\n(.*?)```", PAGE, re.DOTALL):
        for command in block.replace("HOST:8786", f"127.0.0.1:{port}").splitlines():
            here = command.replace("HOST", "127.0.0.1").replace("--port 8786", f"--port {port} --no-dashboard")
            lines.append(f"{here} >> dask.log 2>&1 &" if here.startswith("dask ") else here)
            if here.startswith("dask scheduler"):
                lines.append(f"until (exec 3<> /dev/tcp/127.0.0.1/{port}) 2> /dev/null; do sleep 0.1; done")
    assert len(lines) > 2, f"the page has no commands for {where}"
    subprocess.run(["bash", "-c", "\n".join(lines)], check=True, timeout=300)


def found(out: str) -> dict[tuple[str, int], str]:
    return fingerprints(json.loads(Path(out, "results.json").read_text()))


def here(*more: str) -> dict[tuple[str, int], str]:
    """The fingerprints of the page's sweep on this machine."""
    subprocess.run(["coband", "sweep", "sweep.yaml", *more, "--out", "runs/here"], check=True)
    return found("runs/here")


def status(out: Path) -> dict[str, Any]:
    return dict(json.loads((out / "status.json").read_text()))


@pytest.mark.parametrize("where", ["plain", "tls"])
def test_a_scheduler_of_ones_own(where: str) -> None:
    run(where)
    assert found(f"runs/{where}") == here()


def test_over_tls_whatever_is_killed_nothing_is_lost(tmp_path: Path) -> None:
    words = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=coband -keyout key.pem -out cert.pem"
    subprocess.run(["openssl", *words.split()], check=True, capture_output=True)
    config = Path("dask/tls.yaml")
    config.write_text(
        config.read_text().replace("cert.pem", f"{tmp_path}/cert.pem").replace("key.pem", f"{tmp_path}/key.pem")
    )
    os.environ["DASK_CONFIG"] = str(config.parent.resolve())
    out, (more, gate) = tmp_path / "out", gated(tmp_path)
    try:
        with dask.config.set(dask.config.merge(dask.config.config, dask.config.collect(paths=[config.parent]))):
            with made(tmp_path, "--protocol", "tls") as (address, processes):
                assert address.startswith("tls://")
                with started(tmp_path, out, more, address) as process:
                    wait_until(lambda: len(result_cache(out)) >= 1, process)
                    os.kill(pids(address)[0], signal.SIGKILL)
                    wait_until(lambda: len(result_cache(out)) >= 2, process)
                    processes.running[0].kill()
                    state, done, _ = process.communicate(timeout=120)[0].split()
                assert (state, int(done)) == ("stopped", len(result_cache(out)))
            (tmp_path / "scheduler.json").unlink()
            with made(tmp_path, "--protocol", "tls") as (address, _):
                with started(tmp_path, out, more, address) as process:
                    wait_until(lambda: status(out)["state"] == "running", process)  # then the driver is killed
                gate.unlink()
                with started(tmp_path, out, more, address) as process:
                    output, _ = process.communicate(timeout=300)
    finally:
        del os.environ["DASK_CONFIG"]
    assert output.split() == ["finished", str(GATED_JOBS), "0"]
    assert found(str(out)) == fingerprints(perform(study(tmp_path, more), tmp_path / "here").object)


@pytest.mark.usefixtures("slurm")
def test_in_the_queue_of_slurm() -> None:
    run("slurm")
    assert found("runs/slurm") == here()
    assert "slurm (jobs=" in json.loads(Path("runs/slurm/manifest.json").read_text())["cluster"]


@pytest.mark.usefixtures("slurm")
def test_after_the_driver_and_a_job_of_slurm_were_killed() -> None:
    job = ["--cluster-option", "jobs=2", "--cluster-option", "cores=1", "--cluster-option", "memory=500MB"]
    sweep = ["coband", "sweep", "sweep.yaml", *LONG, "--cluster", "slurm", *job, "--out", "runs/slurm"]
    with subprocess.Popen(sweep, start_new_session=True) as driver:
        wait_until(lambda: len(result_cache(Path("runs/slurm"))) >= 1)
        subprocess.run(
            ["scancel", subprocess.check_output(["squeue", "-h", "-o", "%i"], text=True).split()[0]], check=True
        )
        wait_until(lambda: len(result_cache(Path("runs/slurm"))) >= 3)
        os.killpg(driver.pid, signal.SIGKILL)
    kept = {file: file.stat().st_mtime_ns for file in result_cache(Path("runs/slurm"))}
    assert len(kept) < 16
    subprocess.run(["scancel", "--user", "root"], check=True)
    subprocess.run([*sweep, "--resume"], check=True, timeout=300)
    assert found("runs/slurm") == here(*LONG)
    assert {file: file.stat().st_mtime_ns for file in kept} == kept
