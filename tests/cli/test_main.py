"""The program as a whole: help, exit status, one message for every mistake."""

import importlib
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import click
import pytest

from coband.simulator import scenario_errors as scenarios
from coband.simulator.cli import main as program
from coband.simulator.plugins.entry_points import extensions
from coband.simulator.problems.datasets import DataError
from tests.cli.fake_cli import Program
from tests.every import every

ROOT = Path(__file__).parents[2]
COMMANDS = {name: text for group in program.cli.lists.values() for name, text in group.items()}


@pytest.fixture
def coband(capsys: pytest.CaptureFixture[str]) -> Program:
    return Program(capsys)


def test_help_lists_every_command_and_imports_none() -> None:
    code = (
        "import sys\nfrom coband.simulator.cli.main import main\n"
        "try: main(['--help'])\n"
        "finally: print(sorted({name.split('.')[0] for name in sys.modules} & {'numpy', 'pydantic', 'yaml', 'rich'}),\n"
        "      sorted(name for name in sys.modules if name.startswith('coband')))"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    for name, text in COMMANDS.items():
        assert f"  {name} " in result.stdout
        assert text in result.stdout
    declared = ["coband.extending", "coband.extensions", *(f"coband.extensions.{name}" for name in extensions())]
    own = "cli cli.lazy cli.main experiments experiments.safe_text plugins plugins.entry_points "
    own += "scenario_errors terminal terminal.output"
    imported = ["coband", *declared, "coband.simulator", *(f"coband.simulator.{name}" for name in own.split())]
    assert result.stdout.endswith(f"[] {imported}\n")
    assert (result.returncode, len(COMMANDS)) == (0, 19)


@every("name", COMMANDS)
def test_commands_are_where_the_table_says(name: str) -> None:
    command = program.cli.get_command(click.Context(program.cli), name)
    assert isinstance(command, click.Command)
    assert command.name == name


def test_module_and_console_script_are_the_same_program() -> None:
    command = [sys.executable, "-m", "coband", "nonsense"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert result.stderr.startswith(
        "coband: there is no command 'nonsense'; commands: run, init, show, compare, report, "
    )


def test_without_arguments_it_explains_itself(coband: Program) -> None:
    status, out, err = coband()
    assert (status, err) == (0, "")
    assert out.startswith("Usage: coband")


def test_version(coband: Program) -> None:
    status, out, err = coband("--version")
    assert (status, err) == (0, "")
    assert out.startswith("coband ")


def test_unknown_command(coband: Program) -> None:
    status, out, err = coband("vlidate")
    assert (status, out) == (2, "")
    assert err == "coband: there is no command 'vlidate'; did you mean validate? (`coband --help` explains)\n"


def test_unknown_option(coband: Program) -> None:
    status, _, err = coband("validate", "--sett", "x")
    assert status == 2
    assert "--sett" in err
    assert "ean" in err  # "Did you mean --set?", in words that depend on the version of click
    assert err.endswith("(`coband validate --help` explains)\n")
    assert err.count("\n") == 1


def _amid(first: BaseException, error: Exception) -> Exception:
    """An error that a library has made while it handled another one."""
    error.__context__ = first
    return error


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (KeyboardInterrupt(), 130, "\ncoband: interrupted\n"),
        (_amid(KeyboardInterrupt(), TypeError("no schema")), 130, "coband: interrupted\n"),
        (PermissionError(13, "Permission denied", "out.json"), 2, "coband: out.json: Permission denied\n"),
        (DataError("data.csv:3: 2 columns"), 2, "data.csv:3: 2 columns\n"),
        (
            scenarios.ScenarioError([scenarios.InputProblem("a.yaml", 1, 2, "seed", "is odd")]),
            2,
            "a.yaml:1:2: seed: is odd\n",
        ),
    ],
)
def test_mistakes_are_one_message(
    error: BaseException, status: int, message: str, coband: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    _break(monkeypatch, error)
    assert coband("validate", "--schema") == (status, "", message)


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("coband.simulator.cli.validate", "please report it with the lines above"),
        ("click.core", "please report it with the lines above"),
        ("plug_in", "this is not a defect of coband's own code: <string>:1: ZeroDivisionError: division by zero"),
    ],
)
def test_a_defect_is_a_traceback_and_a_status_of_its_own(
    module: str, said: str, coband: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the code of coband or of a library that it uses; that of a plugin is named."""
    command = importlib.import_module("coband.simulator.cli.validate").validate
    monkeypatch.setattr(command, "invoke", eval("lambda context: 1 / 0", {"__name__": module}))
    status, _, err = coband("validate", "--schema")
    assert status == 70
    assert "Traceback" in err
    assert err.endswith(f"{said}\n")


def _break(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail(context: click.Context) -> None:
        raise error

    monkeypatch.setattr(importlib.import_module("coband.simulator.cli.validate").validate, "invoke", fail)


def test_a_closed_pipe_ends_quietly() -> None:
    program_text = "from coband.simulator.cli.main import main; main(['validate', '--schema'])"
    process = subprocess.Popen(
        [sys.executable, "-c", program_text], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.close()
    with process.stderr:
        assert process.stderr.read() == b""
    assert process.wait() == 141


def test_another_thread_may_run_the_program(coband: Program) -> None:
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(coband, "--version").result()
    assert (done[0], done[2]) == (0, "")


def test_the_handler_of_another_language_stays(coband: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python gives None for it and does not take None back."""
    set_: list[Any] = []
    monkeypatch.setattr(signal, "signal", lambda number, handler: set_.append(handler))
    assert coband("--version")[0] == 0
    assert set_ == [signal.default_int_handler]
