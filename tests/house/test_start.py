"""What importing `coband` does: it pins BLAS, and imports public names when they are used."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import coband

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
    assert sorted(listed) == sorted(coband.__all__)
    constants, classes = [n for n in listed if n.isupper()], [n for n in listed if n[0].isupper() and not n.isupper()]
    assert coband.__all__ == [*sorted(constants), *sorted(classes), *sorted(n for n in listed if n[0].islower())]


def test_blas_is_pinned_before_numpy_is_imported() -> None:
    code = f"import coband, sys, os; print('numpy' in sys.modules, *[os.environ[name] for name in {PINNED!r}])"
    assert start(code).stdout == "False 1 1 1\n"


def test_what_the_user_has_set_stays() -> None:
    code = "import coband, os; print(os.environ['OPENBLAS_NUM_THREADS'], os.environ['OPENBLAS_CORETYPE'])"
    assert start(code, OPENBLAS_NUM_THREADS="3", OPENBLAS_CORETYPE="Zen").stdout == "3 Zen\n"
