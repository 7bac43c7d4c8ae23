"""coband without its extensions: each folder is hidden in turn, and all together."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from coband.simulator.plugins.entry_points import extensions
from tests.everyday import slow
from tests.extensions.hidden import NAMES

ROOT = Path(__file__).parents[2]
COMMANDS = {name: list(extension.commands) for name, extension in extensions().items()}
"""Extension -> its commands."""
ALL = " ".join(COMMANDS)
CHOSEN = (
    "analysis/frontier analysis/traces/test_causes.py analysis/traces/test_difference.py "
    "analysis/traces/test_exports.py analysis/traces/test_query.py analysis/traces/test_reading.py "
    "cli/test_run.py cli/test_sweep.py cli/test_trace.py core/conversations core/populations "
    "core/test_promises.py core/test_reading.py experiments/registry experiments/scenario experiments/store "
    "problems/test_arms.py problems/test_contextual.py problems/test_recommender.py problems/test_rewards.py "
    "problems/test_table.py reference"
)
"""About a fifth of the tests that are not of extensions, chosen once."""
SCENARIO = """\
name: tiny
agents: {count: 2}
schedule: {kind: rounds, turns: 5}
replications: 2
problem: {kind: contextual, arms: {kind: ball, dimension: 2, count: 3}, reward: {kind: cosine}}
algorithms: [{algorithm: dis_lin_ucb}]
expect:
  - {label: dis_lin_ucb, count: turns, at_least: 1}
"""
STEPS = (
    ["--help"],
    ["validate", "tiny.yaml"],
    ["run", "tiny.yaml", "--workers", "1", "--quiet", "--out", "out"],
    ["report", "out", "--out", "report.html"],
    ["plot", "out", "--out", "figures"],
    ["check", "tiny.yaml", "--workers", "1"],
)


def hidden(names: str, *command: str, where: Path) -> subprocess.CompletedProcess[str]:
    """Run Python without some extensions."""
    return subprocess.run(
        [sys.executable, *command],
        cwd=where,
        env={**os.environ, NAMES: names, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("names", "steps"),
    [(ALL, len(STEPS)), *((name, 1) for name in COMMANDS), *(slow((name, len(STEPS))) for name in COMMANDS)],
    ids=str,
)
def test_coband_does_without_an_extension(names: str, steps: int, tmp_path: Path) -> None:
    (tmp_path / "tiny.yaml").write_text(SCENARIO, encoding="utf-8")
    gone = [command for name in names.split() for command in COMMANDS[name]]
    kept = [command for name in COMMANDS if name not in names.split() for command in COMMANDS[name]]
    code = "import sys, tests.extensions.hidden; from coband.simulator.cli.main import exit_status\n"
    code += f"for step in {[*STEPS[:steps], *([command] for command in gone)]!r}:\n"
    code += "    print('status', exit_status(step), *step)\n"
    done = hidden(names, "-c", code, where=tmp_path)
    statuses = [line for line in done.stdout.splitlines() if line.startswith("status ")]
    worked = [" ".join(["status", "0", *step]) for step in STEPS[:steps]]
    assert statuses == [*worked, *(f"status 2 {command}" for command in gone)], done.stdout + done.stderr
    said = [line for line in done.stderr.splitlines() if line.startswith("coband: there is no command")]
    assert len(said) == len(gone)
    for command, sentence in zip(gone, said, strict=True):
        assert sentence.startswith(f"coband: there is no command {command!r}; it may be of an extension that can")
        assert all(f"{name} (No module named" in sentence for name in names.split())
    helped = done.stdout.partition("status 0 --help")[0]
    assert [command for command in (*gone, *kept) if f"\n  {command} " in helped] == kept


@pytest.mark.slow
def test_tests_of_the_core_pass_without_extensions() -> None:
    chosen = [f"tests/{path}" for path in CHOSEN.split()]
    options = ["-q", "-p", "tests.extensions.hidden", "-p", "no:cacheprovider", "--override-ini", "addopts="]
    done = hidden(ALL, "-m", "pytest", *options, "-m", "not slow", *chosen, where=ROOT)
    assert done.returncode == 0, done.stdout[-4000:]
    passed = int(done.stdout.splitlines()[-1].split(" passed")[0].split()[-1])
    assert passed > 1_000
