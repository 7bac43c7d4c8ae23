"""coband: a discrete-event simulator for collaborative bandits."""

from __future__ import annotations

import importlib.util
import os
import sys

_SIBLINGS = ("agents", "server")


def _refuse_intruders() -> None:
    """Make sure that ``agents`` and ``server`` are ours: other distributions install packages of these names too.

    Raises:
        ImportError: names the intruder and the remedy.
    """
    home = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    for name in _SIBLINGS:
        spec = importlib.util.find_spec(name)
        found = None if spec is None else spec.origin or next(iter(spec.submodule_search_locations or ()), None)
        if found is None or os.path.realpath(found) != os.path.join(home, name, "__init__.py"):
            raise ImportError(
                f"coband needs its own package {name!r} in {home}, but Python finds {found or 'none'}. Another "
                "distribution or the working directory has a package of that name (openai-agents installs one): "
                "install coband in a fresh virtual environment, and start it from another directory."
            )


def _pin_blas() -> None:
    """One thread per run and one kind of BLAS kernel: faster for matrices of this size, and reproducible.

    Works when it comes before numpy's import; what the user has set stays.
    """
    for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    if sys.platform == "linux" and os.uname().machine == "x86_64" and "OPENBLAS_CORETYPE" not in os.environ:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as cpus:
            if " avx2 " in cpus.read(8192):
                os.environ["OPENBLAS_CORETYPE"] = "Haswell"


_refuse_intruders()
_pin_blas()
