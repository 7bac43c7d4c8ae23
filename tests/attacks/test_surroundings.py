"""Odd surroundings: closed and full streams, odd names, long paths, limits; one sentence each, and results are kept."""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from coband.simulator.cli.main import exit_status
from coband.simulator.experiments.safe_text import visible
from coband.simulator.experiments.store import directory, store
from coband.simulator.experiments.store.files import LONGEST
from coband.simulator.terminal import output

ROOT = Path(__file__).parents[2]
SCENARIO = """\
name: odd
replications: 2
agents: {count: 2}
schedule: {kind: rounds, turns: 20}
problem: {kind: contextual, arms: {kind: ball, dimension: 2, count: 3}, reward: {kind: cosine}}
algorithms:
  - {algorithm: kernel_ucb, label: K}
"""
C_LOCALE = {"LANG": "C", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
NAMES = [os.fsdecode("d\u00e9".encode()), os.fsdecode(b"b\xffd")]


def coband(
    folder: Path,
    *arguments: str,
    redirect: str = "",
    limit: Callable[[], None] | None = None,
    environment: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run the program in a shell, with its streams redirected."""
    return subprocess.run(
        ["sh", "-c", f'exec "$0" -m coband "$@" {redirect}', sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})},
        capture_output=True,
        check=False,
        preexec_fn=limit,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "s.yaml").write_text(SCENARIO)
    return tmp_path


def kept(run: Path) -> int:
    with store.open_run(run) as found:
        return sum(job.record is not None for job in found.jobs)


SIZE = "odd: 20 turns × 2 agents × 1 algorithm × 2 replications = 80 pulls\n".encode()
RUN = ("run", "s.yaml", "--out", "out", "--workers", "1")


def test_a_full_output_is_one_sentence(folder: Path) -> None:
    result = coband(folder, *RUN, redirect="> /dev/full")
    assert result.returncode == 2
    assert result.stderr == SIZE + b"coband: standard output cannot be written: No space left on device\n"
    assert kept(folder / "out") == 2


def test_closed_streams(folder: Path) -> None:
    result = coband(folder, *RUN, redirect=">&-")
    assert result.stderr == b"coband: standard output is closed, so results are not printed\n" + SIZE
    assert (result.returncode, kept(folder / "out")) == (0, 2)


@pytest.mark.slow
@pytest.mark.parametrize("redirect", ["2>&-", "2>/dev/full", "<&- >&- 2>&-"])
def test_a_closed_error_stream_changes_nothing(folder: Path, redirect: str) -> None:
    result = coband(folder, *RUN[:-1], "2", redirect=redirect)
    assert (result.returncode, result.stderr, kept(folder / "out")) == (0, b"", 2)


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("name", NAMES)
def test_names_that_are_no_text(folder: Path, name: str, workers: str) -> None:
    place = folder / name
    place.mkdir()
    (place / "s.yaml").write_text(SCENARIO)
    command = ("run", f"{name}/s.yaml", "--out", f"{name}/out", "--workers", workers)
    result = coband(folder, *command, environment=C_LOCALE)
    expected = (0, SIZE.decode().encode("ascii", "backslashreplace"), 2)
    assert (result.returncode, result.stderr, kept(place / "out")) == expected
    written = json.loads((place / "out" / "manifest.json").read_text())["command"][2]
    assert os.fsencode(written) == os.fsencode(f"{name}/s.yaml")
    assert coband(folder, "trace", "verify", f"{name}/out", environment=C_LOCALE).returncode == 0


def test_a_store_under_a_name_that_is_no_text(tmp_path: Path) -> None:
    place = directory.create("odd", tmp_path / NAMES[1])
    (place.path / "manifest.json").touch()
    from coband.simulator.experiments.store import schema

    schema.connect(str(place.path / "run.sqlite"), collected=True).close()
    with store.open_run(place.path) as run:
        assert run.jobs == []


def test_a_path_too_long_for_sqlite(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = folder / "/".join(["x" * 100] * (1 + LONGEST // 100))
    assert exit_status(["run", str(folder / "s.yaml"), "--out", str(out)]) == 2
    assert (
        "SQLite cannot open files with so long a path. Choose a shorter one with --out DIR" in capsys.readouterr().err
    )
    assert not (folder / ("x" * 100)).exists()


def test_a_limit_on_the_size_of_files(folder: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (340_000, 340_000))

    result = coband(folder, *RUN, "--replications", "30", limit=limit)
    assert result.returncode == 2
    assert b"Traceback" not in result.stderr
    assert b"stopped (" in result.stderr


def test_text_cannot_act_on_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with output.safe():
        print("a\x1b[2Jb\u202ec\r\u2066\x9b\td\n", end="")
    assert capsys.readouterr().out == "a\\u001b[2Jb\\u202ec\\u000d\\u2066\\u009b\td\n"
    assert json.loads(visible(json.dumps("\u202e\u2069", ensure_ascii=False))) == "\u202e\u2069"
