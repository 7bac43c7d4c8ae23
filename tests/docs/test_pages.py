"""The documentation does what it says: its commands are run, its Python is executed, its scenarios are used.

Each command of ``coband`` that no other test starts is run once as a program of its own, where the pages first use it,
and otherwise here, also with algorithms of plugins: starting a program takes longer than most examples.
"""

import doctest
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

import pytest

pytest.importorskip("sybil", reason="the examples of the documentation need sybil: pip install -e '.[dev]'")

from sybil import Example, Sybil
from sybil.example import SybilFailure
from sybil.parsers.myst import CodeBlockParser, PythonCodeBlockParser

from coband.simulator.api.errors import RunWarning
from coband.simulator.cli.main import main
from coband.simulator.experiments.registry import registry
from coband.simulator.plugins import entry_points
from coband.simulator.plugins.kinds import LISTS
from tests.everyday import slow

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
EXAMPLES = DOCS / "examples"
TEMPLATES = {"fed_ucb1": ROOT / "coband" / "simulator" / "templates" / "own-algorithm"}
PAGES = sorted(path for folder in (DOCS, DOCS / "doors", DOCS / "howto") for path in folder.glob("*.md"))
KITS = ("fed_ucb1", "round_ucb1")
"""Algorithms of plugins, whose tests are the whole conformance kit."""
FEW = "not one_at_a_time and not renewal"
"""Which of these tests run every day."""
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


def is_in_the_file(example: Example) -> str | None:
    """Code whose first line is `# in FILE` is in that file, of the page or of an example package."""
    first, _, shown = example.parsed.partition("\n")
    if not first.startswith("# in "):
        return None
    if not (file := Path(first[5:])).exists():
        file = EXAMPLES / file
    return None if shown.rstrip() in file.read_text(encoding="utf-8") else f"{file} has no such lines:\n{shown}"


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
        words += ["--workers", "1", *["--replications", "1"] * bool({"full", "runs/chatty"} & {*words})]  # nobody reads
    if words[:2] == ["coband", "frontier"] and "regret,bits" in words:
        words += ["--set", "agents.count=5", "--set", "schedule.duration=10", "--budget", "80", "--workers", "1"]
    if words[:2] == ["pip", "install"]:
        return install(words[-1])
    if words[:2] == ["python", "-c"]:
        return in_this_process(words, lambda: exec(words[2], {}))
    words += ["-k", FEW] * (words[:2] == ["python", "-m"] and words[-1] in KITS)
    kinds = Path(PLUGINS).exists() and not any(map(os.path.exists, KITS))  # models know those of before
    if words[0] == "coband" and command not in FIRST_USES.values() and not kinds:
        return in_this_process(words, lambda: main(words[1:]))
    return as_program([sys.executable, *["-m", "coband"] * (words[0] == "coband"), *words[1:]])


def in_this_process(words: list[str], call: Callable[[], object]) -> tuple[int, str]:
    with (
        mock.patch.object(sys, "argv", words),
        mock.patch.dict(os.environ, COLUMNS="160"),
        redirect_stdout(io.TextIOWrapper(io.BytesIO(), "utf-8")) as output,
        redirect_stderr(io.StringIO()) as errors,
    ):
        try:
            call()
            code = 0
        except SystemExit as exit_:
            code = int(exit_.code or 0)
    output.seek(0)
    return code, output.read() + errors.getvalue() * bool(code)


def as_program(arguments: list[str]) -> tuple[int, str]:
    path = os.pathsep.join([PLUGINS, str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "COLUMNS": "160", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, env=environment)
    return done.returncode, done.stdout + done.stderr * bool(done.returncode)


def install(plugin: str) -> tuple[int, str]:
    """Install a plugin into a folder of the page's own; from now on this process has it."""
    if not Path(plugin).exists():
        shutil.copytree(TEMPLATES.get(plugin, EXAMPLES / plugin), plugin)
    quiet = ["--quiet", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "--no-warn-conflicts"]
    done = as_program([sys.executable, "-m", "pip", "install", *quiet, "--target", PLUGINS, f"./{plugin}"])
    sys.path[:0] = [str(Path(PLUGINS).resolve())] * (str(Path(PLUGINS).resolve()) not in sys.path)
    look_again()
    return done


def look_again() -> None:
    """Forget what installed packages offer."""
    for remembered in (entry_points.offered, entry_points.distributions, entry_points._extensions, registry._installed):
        remembered.cache_clear()
    for one in LISTS.values():
        for name in vars(one).pop("_offered", ({}, []))[0]:
            one._lasting.pop(name, None)
        one.registrations += 1


@contextmanager
def of_its_own(folder: Path) -> Iterator[None]:
    """What a page registers, installs into a folder and imports from it is gone after it."""
    before = {*sys.modules}
    with mock.patch.object(sys, "path", [*sys.path]), pytest.MonkeyPatch.context() as patch:
        for one in LISTS.values():
            patch.setattr(one, "registered", {})
        yield
    if (folder / PLUGINS).exists():
        look_again()
        for name in {*sys.modules} - before:
            if str(getattr(sys.modules[name], "__file__", "")).startswith(str(folder)):
                del sys.modules[name]


BOOK = Sybil(
    [
        CodeBlockParser(language="yaml", evaluator=save_scenario),
        CodeBlockParser(language="console", evaluator=run_commands),
        CodeBlockParser(language="py", evaluator=is_in_the_file),
        CodeBlockParser(language="toml", evaluator=is_in_the_file),
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


@pytest.mark.parametrize(
    ("page", "few"),
    [*((page, True) for page in PAGES), slow((DOCS / "tutorial.md", False))],
    ids=lambda value: str(value.relative_to(DOCS)) if isinstance(value, Path) else "few" if value else "all",
)
def test_the_examples_of_a_page(page: Path, few: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the tutorial's tests the conformance kit's are, every day, those of one schedule."""
    monkeypatch.chdir(tmp_path)
    if not few:
        monkeypatch.setattr(sys.modules[__name__], "FEW", "")
    with of_its_own(tmp_path), warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* also differ in ", RunWarning)  # what a page changes on purpose
        assert first_failure(page) is None
