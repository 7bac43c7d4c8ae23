"""The documentation does what it says: its commands are run, its Python is executed, its scenarios are used.

Each command of ``coband`` that no other test starts is run once as a program of its own, where the pages first use it,
and otherwise here: starting the program takes longer than most examples.
"""

import doctest
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

import pytest

pytest.importorskip("sybil", reason="the examples of the documentation need sybil: pip install -e '.[dev]'")

from sybil import Example, Sybil
from sybil.example import SybilFailure
from sybil.parsers.myst import CodeBlockParser, PythonCodeBlockParser

from coband.simulator.cli.main import main
from coband.simulator.plugins.kinds import LISTS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
EXAMPLES = DOCS / "examples"
TEMPLATES = {"fed_ucb1": ROOT / "coband" / "simulator" / "templates" / "own-algorithm"}
PAGES = sorted(path for folder in (DOCS, DOCS / "howto") for path in folder.glob("*.md"))
PLUGINS = "plugins"  # where a page's `pip install` puts things
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
COMMAND = re.compile(r"^\$ (coband (\w+).*)$", re.MULTILINE)
STARTED = "run check live counts list describe validate schema trace"
"""Commands that other tests start as programs."""
FIRST_USES = {
    name: command
    for page in reversed(PAGES)
    for command, name in reversed(COMMAND.findall(page.read_text(encoding="utf-8")))
    if name not in STARTED.split()
}
"""Of each other command of the program, the first use in the pages."""


def save_scenario(example: Example) -> str | None:
    """A YAML block whose first line is a comment with a file name is that file."""
    first = example.parsed.splitlines()[0]
    if first.startswith("# ") and first.endswith(".yaml"):
        file = Path(first[2:])
        file.parent.mkdir(exist_ok=True)
        file.write_text(example.parsed, encoding="utf-8")
    return None


def run_commands(example: Example) -> str | None:
    """Commands after `$ `, each followed by its output (`...` stands for any text) and `[exit N]` where it is not 0."""
    for session in example.parsed.split("$ ")[1:]:
        command, _, expected = session.partition("\n")
        code, output = execute(command)
        wanted = 0
        if "[exit " in expected:
            expected, _, status = expected.partition("[exit ")
            wanted = int(status.partition("]")[0])
        if code != wanted:
            return f"`{command}` ended with {code} instead of {wanted}:\n{output}"
        if expected.strip() and not doctest.OutputChecker().check_output(expected, output, FLAGS):
            return f"`{command}` printed\n{output}\ninstead of\n{expected}"
    return None


def execute(command: str) -> tuple[int, str]:
    """Run a command of a page; what it prints goes with the messages if it ends with another status than 0."""
    words = shlex.split(command)
    if words[:2] in (["coband", "run"], ["coband", "check"]):
        words += ["--workers", "1", *["--replications", "1"] * ("full" in words)]  # small: workers start longer
    alone = words[0] != "coband" or command in FIRST_USES.values() or Path(PLUGINS).exists()
    code, output, errors = (as_program if alone else in_this_process)(words)
    return code, output + (errors if code else "")


def in_this_process(words: list[str]) -> tuple[int, str, str]:
    with (
        mock.patch.object(sys, "argv", words),
        redirect_stdout(io.TextIOWrapper(io.BytesIO(), "utf-8")) as output,
        redirect_stderr(io.StringIO()) as errors,
        pytest.raises(SystemExit) as exit_,
    ):
        main(words[1:])
    output.seek(0)
    return exit_.value.code, output.read(), errors.getvalue()


def as_program(words: list[str]) -> tuple[int, str, str]:
    """Run a command with this Python; `pip install` goes to a folder of the page's own."""
    programs = {"coband": [sys.executable, "-m", "coband"], "python": [sys.executable], "pip": []}
    arguments = [*programs[words[0]], *words[1:]]
    if words[:2] == ["pip", "install"]:
        if not Path(words[-1]).exists():
            shutil.copytree(TEMPLATES.get(words[-1], EXAMPLES / words[-1]), words[-1])
        quiet = ["--quiet", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "--no-warn-conflicts"]
        arguments = [sys.executable, "-m", "pip", "install", *quiet, "--target", PLUGINS, f"./{words[-1]}"]
    path = os.pathsep.join([PLUGINS, str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "COLUMNS": "160", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, env=environment)
    return done.returncode, done.stdout, done.stderr


BOOK = Sybil(
    [
        CodeBlockParser(language="yaml", evaluator=save_scenario),
        CodeBlockParser(language="console", evaluator=run_commands),
        PythonCodeBlockParser(doctest_optionflags=FLAGS),
    ]
)


def first_failure(page: Path) -> str | None:
    """What a page promises and does not keep; its examples build on each other."""
    for example in BOOK.parse(page).examples():
        try:
            example.evaluate()
        except SybilFailure as failure:
            return str(failure)
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_the_examples_of_a_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for one in LISTS.values():  # what a page registers is its own
        monkeypatch.setattr(one, "registered", {})
    assert first_failure(page) is None
