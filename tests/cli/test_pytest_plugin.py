"""The pytest plugin, in a project of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.analysis.traces.runs import STAR
from tests.experiments.runs.fake_runs import ROOT

EXPECT = (
    "expect:\n  - {label: One, count: messages, equals: 64}\n  - {label: One, count: uplink_scalars, at_most: 10}\n"
)
ONE = STAR.replace("turns: 12", "turns: 4").split("  - {algorithm: async")[0] + (
    "  - {algorithm: one_kernel_ucb, label: One, kernel: {kind: gaussian, gamma: 1.0}, alpha: 0.5}\n"
)


def run_pytest(place: Path, *words: str) -> tuple[int, str]:
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "pytest", "-p", "coband.simulator.cli.pytest_plugin", "-p", "no:cacheprovider"]
    done = subprocess.run([*command, *words], cwd=place, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "expecting.yaml").write_text(ONE + EXPECT)
    (tmp_path / "good.yaml").write_text(ONE)
    (tmp_path / "broken.yaml").write_text("name: 3\n")
    (tmp_path / "test_own.py").write_text("def test_own():\n    pass\n")
    return tmp_path


def test_files_that_the_option_names_are_tests(project: Path) -> None:
    (project / "pytest.ini").write_text("[pytest]\ncoband_scenarios = *.yaml\n")
    status, output = run_pytest(project, "-v", "--continue-on-collection-errors")
    assert status == 1
    assert "expecting.yaml::One: messages PASSED" in output
    assert "expecting.yaml::One: uplink_scalars FAILED" in output
    assert "One: uplink_scalars\nreplication 0: at most 10 expected, got 64\n" in output
    assert "broken.yaml:1:7: name: " in output
    assert "Traceback" not in output
    assert "1 failed, 2 passed, 1 error" in output


def test_nothing_is_collected_without_the_option(project: Path) -> None:
    (project / "pytest.ini").write_text("[pytest]\n")
    status, output = run_pytest(project)
    assert status == 0
    assert "1 passed" in output


def test_a_pattern_without_files_is_an_error(project: Path) -> None:
    (project / "pytest.ini").write_text("[pytest]\ncoband_scenarios =\n    good.yaml\n    bad.yaml\n")
    status, output = run_pytest(project)
    assert status == 4
    assert f"coband_scenarios: there is no file 'bad.yaml' below {project}" in output
