"""What a run needs and what is free: estimates, refusals, warnings, and what is said when memory runs out."""

from __future__ import annotations

import json
import resource
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from coband.simulator.core.memory import Memory, RunSize
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.runs import free_memory as free
from coband.simulator.experiments.runs import job as jobs
from coband.simulator.experiments.runs import memory
from coband.simulator.experiments.runs.free_memory import FreeMemory
from coband.simulator.experiments.runs.job import Job, attempt
from coband.simulator.experiments.scenario.loading import loads
from tests.everyday import everyday
from tests.experiments.runs.peaks import ROOT, measured

GAUSSIAN = {"kernel": {"kind": "gaussian", "gamma": 0.1}}


def ball(dimension: int, count: int) -> dict[str, Any]:
    return {
        "kind": "contextual",
        "arms": {"kind": "ball", "dimension": dimension, "count": count},
        "reward": {"kind": "cosine"},
    }


def written(name: str, agents: int, turns: int, problem: dict[str, Any], **parameters: Any) -> dict[str, Any]:
    return {
        "name": "m",
        "agents": {"count": agents},
        "schedule": {"kind": "rounds", "turns": turns},
        "problem": problem,
        "algorithms": [{"algorithm": name, **parameters}],
    }


def estimated(document: dict[str, Any]) -> memory.Estimate:
    scenario = loads(json.dumps(document))
    return memory.estimate(scenario, scenario.algorithms[0])


CASES = {
    "linear": written("lin_ucb", 50, 65, ball(300, 3)),
    "neural": written("neural_ucb", 5, 65, ball(20, 5), width=40, steps=0),
    "pool": written("lin_ucb", 2, 2, {**ball(2, 2), "arms": {"kind": "pool", "size": 400_000, "dimension": 20}}),
    "linear, few pulls": written("lin_ucb", 300, 60, ball(400, 2)),
    "arms": written("lin_ucb", 500, 2, ball(20, 1000)),
    "exact": written("n_kernel_ucb", 1, 2040, ball(2, 3), **GAUSSIAN),
}


@pytest.mark.parametrize("case", everyday(3, CASES))
def test_estimates_are_lower_bounds_within_a_factor_of_2(case: str) -> None:
    needed, found = estimated(CASES[case]).size, measured(CASES[case])
    assert needed / 1.1 < found < 2 * needed, (needed, found)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of 8 GiB, half of it free, without limits."""
    monkeypatch.setattr(free, "PROC", tmp_path / "proc")
    monkeypatch.setattr(free, "CGROUPS", tmp_path / "groups")
    monkeypatch.setattr(free, "address_space", lambda: None)
    (tmp_path / "proc" / "self").mkdir(parents=True)
    (tmp_path / "proc" / "meminfo").write_text(f"MemTotal: {8 << 20} kB\nMemAvailable: {4 << 20} kB\n")
    (tmp_path / "proc" / "self" / "status").write_text("Name: x\nVmSize: 1024 kB\n")
    return tmp_path


def test_free_memory(machine: Path) -> None:
    assert free.free_memory() == FreeMemory(4 << 30)
    assert free.capacity() == FreeMemory(8 << 30)


def test_control_groups_and_what_files_take_in_them(machine: Path) -> None:
    (machine / "proc" / "self" / "cgroup").write_text("0::/outer/inner\n")
    inner = machine / "groups" / "outer" / "inner"
    inner.mkdir(parents=True)
    for name, text in (("memory.max", f"{2 << 30}"), ("memory.current", f"{1 << 30}")):
        (inner / name).write_text(text + "\n")
    (inner / "memory.stat").write_text(f"anon 5\ninactive_file {1 << 29}\n")
    (inner.parent / "memory.max").write_text("max\n")
    assert free.free_memory().machine == (2 << 30) - (1 << 29)
    assert free.capacity().machine == 2 << 30


def test_an_older_control_group(machine: Path) -> None:
    (machine / "proc" / "self" / "cgroup").write_text("5:cpu,memory:/one\n4:pids:/one\n")
    group = machine / "groups" / "memory" / "one"
    group.mkdir(parents=True)
    (group / "memory.limit_in_bytes").write_text(str(1 << 30))
    (group / "memory.usage_in_bytes").write_text(str(1 << 20))
    assert free.free_memory().machine == (1 << 30) - (1 << 20)


def test_the_limit_of_a_process(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(free, "address_space", lambda: 300 << 20)
    assert free.free_memory() == FreeMemory(4 << 30, 299 << 20, 300 << 20)
    assert free.free_memory().one == 299 << 20
    assert "may take 300 MiB" in str(free.too_little())
    monkeypatch.setattr(free, "address_space", lambda: 3 << 30)
    assert free.too_little() is None


def test_refusals_and_warnings() -> None:
    found = estimated(CASES["exact"])
    assert memory.refusal(found, FreeMemory(int(found.size) + 1)) is None
    assert memory.refusal(found, FreeMemory(None)) is None
    refused = memory.refusal(found, FreeMemory(1 << 20))
    assert refused is not None
    for words in ("1 agent, 2,040 turns", "an exact posterior for each agent", "1.0 MiB are free", "schedule.turns"):
        assert words in refused
    some = FreeMemory(int(3 * found.size))
    assert list(memory.cautions([found], some, 1)) == []
    assert [text.endswith("--workers 2") for text in memory.cautions([found], some, 3)] == [True]
    assert len(list(memory.cautions([found], FreeMemory(int(found.size * 1.2)), 1))) == 1


def test_formulas_of_every_algorithm_have_values() -> None:
    names = [name for name, algorithm in Registry.installed().algorithms.items() if algorithm.memory]
    assert len(names) > 20
    for name in names:
        algorithm = Registry.installed().algorithms[name]
        points = 4 if algorithm.needs.fixed_arms else 0
        found = algorithm.memory_of(RunSize(algorithm.config(), 3, 12, 2, 4, points))
        assert len(found) == len(algorithm.memory), name
        larger = algorithm.memory_of(RunSize(algorithm.config(), 30, 1200, 20, 4, 10 * points))
        assert all(much > little > 0 for (_, little), (_, much) in zip(found, larger, strict=True)), name


def test_what_is_not_known_is_not_estimated() -> None:
    part = Memory("x", "N*T", "y")
    algorithm = Registry.installed().algorithms["lin_ucb"]
    assert part.size(RunSize(None, 3), {"N": 3}) is None
    assert part.size(RunSize(None, 3), {"N": 3, "T": 2}) == 48.0
    assert Memory("x", "N", "y", when="N > 5").size(RunSize(None, 3), {"N": 3}) == 0.0
    assert algorithm.memory_of(RunSize(algorithm.config(), 3)) == []


def test_memory_that_runs_out_in_mid_run_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = loads(json.dumps(CASES["linear"]))

    def full(*anything: Any) -> None:
        raise MemoryError("Unable to allocate 7.45 GiB")

    monkeypatch.setattr(jobs, "graph_and_world", full)
    outcome = attempt(Job(0, "lin_ucb", "lin_ucb", 0, 0, "off"), scenario, lambda result: None)
    assert outcome.status == "failed"
    assert outcome.error is not None
    assert len(outcome.error.splitlines()) == 1
    for words in ("out of memory (Unable to allocate 7.45 GiB): lin_ucb", "50 agents, 3,250 turns", "agents.count"):
        assert words in outcome.error


def coband(folder: Path, kibibytes: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The program with a limit of its address space."""
    limit = kibibytes << 10
    return subprocess.run(
        [sys.executable, "-m", "coband", *arguments],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )


@pytest.mark.parametrize("kibibytes", [150_000, 300_000, 400_000])
def test_a_process_that_may_not_load_numpy(tmp_path: Path, kibibytes: int) -> None:
    (tmp_path / "s.yaml").write_text(json.dumps(CASES["linear"]))
    done = coband(tmp_path, kibibytes, "run", "s.yaml", "--out", "run")
    assert done.returncode == 2
    assert done.stderr.startswith("coband: this process may take")
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_memory_that_runs_out_leaves_no_job_waiting(tmp_path: Path) -> None:
    """The estimate fits into the limit, the run does not; the sweep goes on with what fits."""
    document = {**written("fn_ucb", 1, 3, ball(20, 5)), "replications": 1, "grid": {"algorithms.0.width": [4, 172]}}
    (tmp_path / "s.yaml").write_text(json.dumps(document))
    done = coband(tmp_path, 1_000_000, "sweep", "s.yaml", "--out", "out", "--workers", "1")
    with sqlite3.connect(tmp_path / "out" / "run.sqlite") as store:
        status = dict(store.execute("SELECT label, status FROM jobs").fetchall())
    assert done.returncode == 1, done.stderr
    assert sorted(status.values()) == ["failed", "finished"]
    assert "out of memory" in done.stderr
    assert "a smaller width" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_hopeless_run_is_refused_before_it_begins(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(json.dumps(written("lin_ucb", 2, 10**9, ball(2, 3))))
    done = coband(tmp_path, 4_000_000, "run", "s.yaml", "--out", "run")
    size, expected, refusal = done.stderr.splitlines()
    assert done.returncode == 2
    assert size.endswith("= 2,000,000,000 pulls")
    assert "GiB of memory" in expected
    assert "lin_ucb needs about 224 GiB of memory at 2 agents, 2,000,000,000 turns" in refusal
    assert not (tmp_path / "run").exists()
