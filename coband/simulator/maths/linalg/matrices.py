"""Updates of square matrices without temporaries: at m of some hundreds, allocating costs as much as computing. The
LAPACK and BLAS routines that coband uses are here too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from coband.simulator.arrays import FloatArray
from coband.simulator.scenario_errors import BrokenOff

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


class NotDefiniteError(BrokenOff, np.linalg.LinAlgError):
    """A matrix is not positive definite in floating point, although lam > 0 makes it so; the text says which."""


def lam_is_lost(lam: float, pivot: int) -> NotDefiniteError:
    """lam I + W is found to be not positive definite at a pivot."""
    text = f"lam I + W is not positive definite (pivot {pivot}), lam(={lam})"
    return NotDefiniteError(f"{text}; give a larger lam, or smaller features (of networks: a smaller lr).")


def definite(solver: Callable[..., FloatArray], *arrays: FloatArray) -> FloatArray:
    """What a solver of numpy makes of a matrix lam I + W and perhaps right sides.

    Raises:
        NotDefiniteError: lam is lost beside W.
    """
    try:
        return solver(*arrays)
    except np.linalg.LinAlgError:
        raise NotDefiniteError("lam I + W is singular in floating point; give a larger lam.") from None


def padded(matrix: FloatArray, m: int, diagonal: float = 0.0) -> FloatArray:
    """A row-major copy of the square ``matrix`` continued to (m, m): ``diagonal`` on the diagonal, zeros elsewhere."""
    size = len(matrix)
    grown = np.empty((m, m))
    grown[:size, :size] = matrix
    grown[size:] = grown[:size, size:] = 0.0
    grown.flat[size * (m + 1) :: m + 1] = diagonal
    return grown


def add_outer(matrix: FloatArray, scale: float, R: FloatArray) -> None:
    """``matrix += scale R R^T`` in place, for a row-major symmetric matrix (m, m) and R (m, p)."""
    if R.size:
        # The transpose is the column-major view that BLAS overwrites; the matrix is symmetric.
        dgemm(scale, R, R, beta=1.0, c=matrix.T, trans_b=1, overwrite_c=1)


def solve_definite(A: FloatArray, B: FloatArray) -> FloatArray:
    """A^(-1) B for a symmetric positive definite A (m, m), of which the lower triangle is read, and B (m,) or (m, r).

    Raises:
        NotDefiniteError: A is not positive definite, or has entries that are not numbers.
    """
    columns = B if B.ndim > 1 else B[:, None]
    if not columns.size:
        return np.zeros_like(B)
    _, solved, info = dposv(A, columns, lower=1)
    if info:
        raise NotDefiniteError(f"a matrix is not positive definite (pivot {info}); give a larger lam, or xi.")
    found: FloatArray = solved if B.ndim > 1 else solved[:, 0]
    return found


def repeat_alike(solved: FloatArray, X: FloatArray) -> None:
    """Make the rows of ``solved`` (n, m) that belong to equal points X (n, d) equal to the last bit.

    The last bits of products and solves depend on the place in them, and ties between equal arms are to be exact.
    """
    last = X[:, -1].tolist()
    if len(set(last)) < len(last):
        first: dict[bytes, int] = {}
        for row, point in enumerate(np.ascontiguousarray(X)):
            same = first.setdefault(point.tobytes(), row)
            if same != row:
                solved[row] = solved[same]
