"""coband: a discrete-event simulator for collaborative bandits.

This module is the public interface: how scenarios are run and runs are read, and what an algorithm, a problem, a kernel
or a test of one is written with. Names are imported when they are first used, so that ``import coband`` takes no time
and pins BLAS before numpy is loaded.
"""

from __future__ import annotations

import ast
import importlib
import os
import sys
from typing import Any

__version__ = "0.1.0"


def homes(stub: str) -> dict[str, tuple[str, str]]:
    """Return for each name that a stub file imports for others the module it is from, and its name there."""
    with open(stub, encoding="utf-8") as file:
        imports = [node for node in ast.parse(file.read()).body if isinstance(node, ast.ImportFrom)]
    return {alias.asname or alias.name: (str(node.module), alias.name) for node in imports for alias in node.names}


def imported(module: str, name: str, home_of: dict[str, tuple[str, str]]) -> Any:
    """Import a name that `homes` has found; it may be that of a module itself.

    Raises:
        AttributeError: ``module``, whose names these are, has no such name.
    """
    if name not in home_of:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    home, there = home_of[name]
    try:
        return getattr(importlib.import_module(home), there)
    except AttributeError:
        return importlib.import_module(f"{home}.{there}")


_HOME_OF = homes(os.path.join(os.path.dirname(__file__), "__init__.pyi"))
__all__ = sorted(_HOME_OF, key=lambda name: (not name.isupper(), name[0].islower(), name))  # constants, classes, others


def _pin_blas() -> bool:
    """Let BLAS use one thread per process and one kind of kernel: faster for small matrices, and reproducible.

    Environment variables that the user has set stay.

    Returns:
        Whether it has any effect on this process: numpy reads these variables when it is imported.
    """
    kind = os.environ.get("OPENBLAS_CORETYPE")
    for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    if sys.platform == "linux" and os.uname().machine == "x86_64" and "OPENBLAS_CORETYPE" not in os.environ:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as cpus:
            if " avx2 " in cpus.read(8192):
                os.environ["OPENBLAS_CORETYPE"] = "Haswell"
    return "numpy" not in sys.modules or os.environ.get("OPENBLAS_CORETYPE") == kind


def __getattr__(name: str) -> Any:
    """Import a public name at its first use."""
    return imported(__name__, name, _HOME_OF)


def __dir__() -> list[str]:
    return __all__


BLAS_IS_PINNED = _pin_blas()
"""False if numpy was imported before; `coband.run` then leaves the computations to worker processes."""
