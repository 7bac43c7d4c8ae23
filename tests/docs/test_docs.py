"""The documentation does what it says: its commands are run, its Python is executed, its scenarios are used."""

from __future__ import annotations

import doctest
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sybil", reason="the examples of the documentation need sybil: pip install -e '.[dev]'")

from sybil import Example, Sybil
from sybil.example import SybilFailure
from sybil.parsers.myst import CodeBlockParser, PythonCodeBlockParser

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
EXAMPLES = DOCS / "examples"
PAGES = sorted(path for folder in (DOCS, DOCS / "howto") for path in folder.glob("*.md"))
PLUGINS = "plugins"  # where a page's `pip install` puts things
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def save_scenario(example: Example) -> str | None:
    """A YAML block whose first line is a comment with a file name is that file."""
    first = example.parsed.splitlines()[0]
    if first.startswith("# ") and first.endswith(".yaml"):
        Path(first[2:]).write_text(example.parsed, encoding="utf-8")
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
    """Run a command of a page with this Python; `pip install` goes to a folder of the page's own."""
    programs = {"coband": [sys.executable, "-m", "coband"], "python": [sys.executable], "pip": []}
    words = shlex.split(command)
    arguments = [*programs[words[0]], *words[1:]]
    if words[:2] == ["pip", "install"]:
        shutil.copytree(EXAMPLES / words[-1], words[-1])
        quiet = ["--quiet", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "--no-warn-conflicts"]
        arguments = [sys.executable, "-m", "pip", "install", *quiet, "--target", PLUGINS, f"./{words[-1]}"]
    if words[:2] in (["coband", "run"], ["coband", "check"]):
        arguments += ["--workers", "1"]  # starting workers takes longer than these small runs
    path = os.pathsep.join([PLUGINS, str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        arguments,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "160", "OPENBLAS_NUM_THREADS": "1"},
    )
    return done.returncode, done.stdout + (done.stderr if done.returncode else "")


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
    assert first_failure(page) is None


def test_every_page_is_in_the_table_of_contents_and_every_link_leads_somewhere(tmp_path: Path) -> None:
    pytest.importorskip(
        "furo", reason="the documentation is built with Sphinx, furo and myst: pip install -e '.[docs]'"
    )
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", str(DOCS), str(tmp_path / "html")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    assert "fed_ucb1" in (tmp_path / "html" / "tutorial.html").read_text(encoding="utf-8")
