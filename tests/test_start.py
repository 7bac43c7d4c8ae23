"""What importing `simulator` does: refuses foreign packages of the names of ours, and pins BLAS."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
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


@pytest.mark.parametrize("name", ["agents", "server"])
def test_foreign_packages_are_refused(name: str, tmp_path: Path) -> None:
    intruder = tmp_path / name / "__init__.py"
    intruder.parent.mkdir()
    intruder.write_text("raise SystemExit('it was imported')")
    result = start("import simulator", tmp_path)
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1] == (
        f"ImportError: coband needs its own package {name!r} in {ROOT.resolve()}, but Python finds {intruder}. Another "
        "distribution or the working directory has a package of that name (openai-agents installs one): install coband "
        "in a fresh virtual environment, and start it from another directory."
    )


def test_a_module_of_the_name_is_refused_too(tmp_path: Path) -> None:
    (tmp_path / "server.py").touch()
    result = start("import simulator", tmp_path)
    assert f"but Python finds {tmp_path / 'server.py'}" in result.stderr


def test_our_own_packages_are_fine() -> None:
    result = start("import simulator, agents, server; print(simulator.__name__)")
    assert (result.stdout, result.stderr) == ("simulator\n", "")


def test_blas_is_pinned_before_numpy_is_imported() -> None:
    code = f"import simulator, sys, os; print('numpy' in sys.modules, *[os.environ[name] for name in {PINNED!r}])"
    assert start(code).stdout == "False 1 1 1\n"


def test_what_the_user_has_set_stays() -> None:
    code = "import simulator, os; print(os.environ['OPENBLAS_NUM_THREADS'], os.environ['OPENBLAS_CORETYPE'])"
    assert start(code, OPENBLAS_NUM_THREADS="3", OPENBLAS_CORETYPE="Zen").stdout == "3 Zen\n"
