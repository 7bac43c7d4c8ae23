"""Results of other hardware: what manifests say, and that comparisons name it before they name results."""

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from coband.simulator.cli.main import exit_status
from coband.simulator.experiments.runs import code_version
from coband.simulator.experiments.runs.code_version import arithmetic, numpy_simd
from coband.simulator.experiments.runs.expectations import in_words

ROOT = Path(__file__).parents[3]
SCENARIO = """\
name: small
replications: 1
agents: {count: 2}
schedule: {kind: rounds, turns: 30}
problem: {kind: contextual, arms: {kind: ball, dimension: 3, count: 5}, reward: {kind: cosine}}
algorithms:
  - {algorithm: kernel_ucb, label: K, alpha: ALPHA}
expect:
  - {label: K, count: turns, equals: 60}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("one.yaml").write_text(SCENARIO.replace("ALPHA", "1.0"))
    Path("two.yaml").write_text(SCENARIO.replace("ALPHA", "0.1"))
    return tmp_path


def elsewhere(folder: Path, environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """The program in a process with other libraries."""
    given = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    command = [sys.executable, "-m", "coband", *arguments]
    return subprocess.run(command, cwd=folder, env=given, capture_output=True, text=True, check=False)


def edit_manifest(run: Path, **parts: str) -> None:
    """Have a run come from other hardware."""
    with sqlite3.connect(run / "run.sqlite") as store:
        found = json.loads(store.execute("SELECT value FROM meta WHERE key = 'manifest'").fetchone()[0])
        found["hardware"].update(parts)
        store.execute("UPDATE meta SET value = ? WHERE key = 'manifest'", (json.dumps(found),))
    store.close()
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["hardware"].update(parts)
    (run / "manifest.json").write_text(json.dumps(manifest))


def test_differences() -> None:
    here = code_version.hardware()
    other = {**here, "processor": "another", "C library": "glibc 2.36 without FMA"}
    assert code_version.differences(here, here) == code_version.differences(here, None) == []
    assert code_version.differences(here, other) == [f"C library: {here['C library']} and glibc 2.36 without FMA"]
    assert code_version.explained(here, here, ("A", "B")) is None
    assert "A and B were computed by different hardware" in str(code_version.explained(here, other, ("A", "B")))


def test_a_manifest_has_core_type_and_features(folder: Path) -> None:
    environment = {"OPENBLAS_CORETYPE": "Nehalem", "NPY_DISABLE_CPU_FEATURES": numpy_simd().replace("none", "")}
    done = elsewhere(folder, environment, "run", "one.yaml", "--out", "run", "--workers", "1")
    assert done.returncode == 0, done.stderr
    found = json.loads((folder / "run" / "manifest.json").read_text())["hardware"]
    assert found["numpy's SIMD features"] == "none"
    if "openblas" in found["BLAS kernels"]:
        assert "Nehalem" in found["BLAS kernels"]
    assert found["C library"] == arithmetic()[1]


def test_trace_diff_names_hardware_first(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("one", "two"):
        assert exit_status(["run", f"{name}.yaml", "--out", name, "--workers", "1", "--trace", "protocol"]) == 0
    capsys.readouterr()
    assert exit_status(["trace", "diff", "one", "two"]) == 1
    assert "hardware" not in capsys.readouterr().out
    edit_manifest(folder / "two", **{"BLAS kernels": "openblas 0.3.31 Nehalem"})
    assert exit_status(["trace", "diff", "one", "two"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "different hardware or libraries (BLAS kernels: " in lines[0]
    assert "Nehalem" in lines[0]
    assert "the first difference is at" in lines[1]
    assert exit_status(["trace", "diff", "one", "two", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["hardware"][0].startswith("BLAS kernels: ")
    edit_manifest(folder / "one", **{"C library": "another"})
    assert exit_status(["trace", "diff", "one", "one"]) == 0
    assert "hardware" not in capsys.readouterr().out


def test_a_check_that_fails_says_what_it_was_computed_with(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_status(["check", "one.yaml", "--workers", "1"]) == 0
    assert "this computer has" not in capsys.readouterr().err
    Path("one.yaml").write_text(Path("one.yaml").read_text().replace("equals: 60", "equals: 61"))
    assert exit_status(["check", "one.yaml", "--workers", "1"]) == 1
    said = capsys.readouterr().err
    assert "numpy's SIMD features: " in said
    assert "K: the closest decision was won by" in said


def test_a_sweep_goes_on_elsewhere(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sweep = ["sweep", "one.yaml", "--set", "grid={agents.compute: [0]}", "--out", "s", "--workers", "1"]
    assert [exit_status(sweep), exit_status([*sweep, "--resume"])] == [0, 0]
    assert "hardware" not in capsys.readouterr().err
    other = {"NPY_DISABLE_CPU_FEATURES": numpy_simd()}
    done = elsewhere(folder, other, *sweep, "--resume")
    assert done.returncode == 0
    assert "warning: s was begun with other hardware or libraries (numpy's SIMD features: " in done.stderr
    assert "run again here" in done.stderr
    assert len(list((folder / "s" / "done").rglob("*.json.gz"))) == 2


def test_margins_in_words() -> None:
    assert in_words(3e-16).endswith("rounding may have decided it")
    assert in_words(3e-6) == "the closest decision was won by 3.0e-06 of the larger score, so rounding has not decided"
