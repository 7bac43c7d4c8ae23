"""What importing `coband` does: it pins BLAS, and imports public names when they are used."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import coband
from tests.every import every

ROOT = Path(__file__).parents[2]
PINNED = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def start(code: str, *search: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh interpreter that looks for packages in `search` and then here."""
    kept = {key: value for key, value in os.environ.items() if key not in (*PINNED, "OPENBLAS_CORETYPE")}
    path = os.pathsep.join(map(str, (*search, ROOT)))
    return subprocess.run(
        [sys.executable, "-P", "-c", code],
        env={**kept, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_public_name_can_be_imported() -> None:
    code = "import coband; print(sorted(name for name in coband.__all__ if getattr(coband, name) is None))"
    assert (start(code).stdout, start("import coband; coband.nothing").stderr.splitlines()[-1]) == (
        "[]\n",
        "AttributeError: module 'coband' has no attribute 'nothing'",
    )


def test_the_reference_lists_the_public_names() -> None:
    pages = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    listed = [name for line in re.findall(r":members: (.+)", pages) for name in line.split(", ")]
    listed += re.findall(r"autoclass:: coband\.(\w+)\n", pages)
    assert sorted(listed) == sorted(coband.__all__)
    constants, classes = [n for n in listed if n.isupper()], [n for n in listed if n[0].isupper() and not n.isupper()]
    assert coband.__all__ == [*sorted(constants), *sorted(classes), *sorted(n for n in listed if n[0].islower())]


def test_blas_is_pinned_before_numpy_is_imported() -> None:
    code = f"import coband, sys, os; print('numpy' in sys.modules, *[os.environ[name] for name in {PINNED!r}])"
    assert start(code).stdout == "False 1 1 1\n"


def test_what_the_user_has_set_stays() -> None:
    code = "import coband, os; print(os.environ['OPENBLAS_NUM_THREADS'], os.environ['OPENBLAS_CORETYPE'])"
    assert start(code, OPENBLAS_NUM_THREADS="3", OPENBLAS_CORETYPE="Zen").stdout == "3 Zen\n"


HEAVY = set(
    (
        "concurrent.futures.process joblib jsonschema matplotlib multiprocessing networkx numpy.fft numpy.ma "
        "numpy.polynomial numpy.testing pandas rich scipy.cluster scipy.linalg scipy.sparse scipy.spatial "
        "scipy.special scipy.stats"
    ).split()
)
"""What takes longer to import than a small run takes."""
WAIT = {
    "coband.simulator.core.twins.twins": "checks: full",
    "coband.simulator.core.network.reliable": "messages that are lost",
    "coband.simulator.experiments.scenario.explain": "mistakes in a document",
    "coband.simulator.maths.kernels.multitask": "algorithms on the tasks of several agents",
    "coband.simulator.maths.posteriors.choose_multitask": "algorithms on the tasks of several agents",
    "coband.simulator.maths.posteriors.growing_nystrom": "algorithms on the tasks of several agents",
    "coband.simulator.problems.datasets": "problems on data",
    "coband.simulator.problems.ratings": "problems on data",
}
"""Modules of coband that an ordinary validation or run does without, and what needs them."""
TRIVIAL = """\
name: trivial
agents: {count: 1}
schedule: {kind: rounds, turns: 1}
problem: {kind: contextual, arms: {kind: ball, dimension: 2, count: 2}, reward: {kind: cosine}}
algorithms: [{algorithm: n_kernel_ucb, kernel: {kind: linear}}]
"""


def loaded(folder: Path, *arguments: str) -> set[str]:
    """The modules that a command has loaded when it ends."""
    code = f"""if True:
        import sys
        from coband.simulator.cli.main import _status
        status = _status({[*arguments]!r})
        print()
        print(*sys.modules)
        sys.exit(status)"""
    (folder / "trivial.yaml").write_text(TRIVIAL, encoding="utf-8")
    done = start(code)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split())


LIBRARIES = {"importlib.metadata", "numpy", "pydantic", "scipy", "simpy", "yaml", *HEAVY}


def test_help_loads_no_library(tmp_path: Path) -> None:
    """But for what finds extensions, whose commands are in it."""
    assert not loaded(tmp_path, "--help") & (LIBRARIES - {"importlib.metadata"})


def test_a_run_is_opened_without_any_library(tmp_path: Path) -> None:
    loaded(tmp_path, "run", str(tmp_path / "trivial.yaml"), "--out", str(tmp_path / "out"))
    code = f"import coband, sys; print(coband.load({str(tmp_path / 'out')!r}).status, *sys.modules)"
    status, *modules = start(code).stdout.split()
    assert (status, {*modules} & (LIBRARIES - {"importlib.metadata"})) == ("finished", set())


@pytest.mark.parametrize("arguments", [["list"], ["describe", "coop_kernel_ucb"], ["describe", "regret"]])
def test_what_describes_loads_no_heavy_library(tmp_path: Path, arguments: list[str]) -> None:
    modules = loaded(tmp_path, *arguments)
    assert "coband.agents.graph.coop_kernel_ucb" in modules
    assert not modules & HEAVY


@pytest.mark.parametrize(
    "arguments",
    [["validate", "quickstart"], ["run", "trivial.yaml", "--out", "out"]],
    ids=lambda arguments: str(arguments[0]),
)
def test_commands_load_no_heavy_library_and_nothing_that_waits(tmp_path: Path, arguments: list[str]) -> None:
    given = [str(tmp_path / word) if word in ("trivial.yaml", "out") else word for word in arguments]
    modules = loaded(tmp_path, *given)
    assert not modules & (HEAVY | WAIT.keys())


@every("module", WAIT)
def test_what_waits_exists(module: str) -> None:
    assert find_spec(module) is not None


@pytest.mark.parametrize("command", ["validate", "describe"])
def test_only_what_is_named_is_loaded(tmp_path: Path, command: str) -> None:
    name = str(tmp_path / "trivial.yaml") if command == "validate" else "n_kernel_ucb"
    modules = loaded(tmp_path, command, name)
    found = {module for module in modules if module.startswith("coband.agents.")}
    assert "coband.simulator.maths.neural" not in modules
    assert "coband.agents.alone.n_kernel_ucb" in found
    assert not found & {
        f"coband.agents.{other}" for other in ("duets", "fn_ucb", "async_kernel_ucb", "coop_kernel_ucb")
    }
