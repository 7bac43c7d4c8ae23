"""The LAPACK and BLAS routines that coband uses, as ``scipy.linalg.lapack`` and ``scipy.linalg.blas`` have them.

SciPy keeps them in two compiled modules. These are loaded here without the rest of ``scipy.linalg``, whose import takes
longer than that of all of coband; where they are not found, ``scipy.linalg`` is imported. The functions are the same
either way.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scipy.linalg.blas import dgemm, dsymv, dsyrk, dtrmm
    from scipy.linalg.lapack import dposv, dpotrf, dpotri, dsyev, dtrtri, dtrtrs

__all__ = ["dgemm", "dposv", "dpotrf", "dpotri", "dsyev", "dsymv", "dsyrk", "dtrmm", "dtrtri", "dtrtrs"]


def _compiled(name: str) -> Any:
    """The compiled module of this name in ``scipy.linalg``; None where SciPy does not have it there."""
    package = find_spec("scipy.linalg")
    found = (
        None if package is None else PathFinder.find_spec(f"scipy.linalg.{name}", package.submodule_search_locations)
    )
    if found is None or found.loader is None:
        return None
    if found.name not in sys.modules:
        module = module_from_spec(found)
        found.loader.exec_module(module)
        sys.modules[found.name] = module  # scipy.linalg takes it from here when it is imported later
    return sys.modules[found.name]


if not TYPE_CHECKING:
    _lapack = _compiled("_flapack") or import_module("scipy.linalg.lapack")
    _blas = _compiled("_fblas") or import_module("scipy.linalg.blas")
    dgemm, dsymv, dsyrk, dtrmm = _blas.dgemm, _blas.dsymv, _blas.dsyrk, _blas.dtrmm
    dposv, dpotrf, dpotri = _lapack.dposv, _lapack.dpotrf, _lapack.dpotri
    dsyev, dtrtri, dtrtrs = _lapack.dsyev, _lapack.dtrtri, _lapack.dtrtrs
