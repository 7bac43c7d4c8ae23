"""Sums over all uploads that servers keep, such as W = sum x x^T and b = sum y x, and checks of their invariants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from coband.agents.messages.linear import LinearUpload, PointsUpload
from coband.simulator.arrays import FloatArray
from coband.simulator.maths.linalg.gram import Gram, GrowingGram

TOLERANCE = 1e-8


class SquaresCheck:
    """Checks that a sum of squares W is symmetric and positive semidefinite, once per version.

    Args:
        name: name of W in messages.
        lam: ridge parameter, where the sum only grows: log det(I + W/lam) and the version never fall; else None.
    """

    def __init__(self, name: str = "sum of squares", lam: float | None = None) -> None:
        self._name, self._lam = name, lam
        self._version, self._last = 0, (0, 0.0)

    def violations(self, W: Gram | FloatArray, version: int) -> Iterator[str]:
        """Yield one sentence for each violated invariant; W is a matrix (p, p) or the diagonal (p,) of one."""
        if version != self._version:
            self._version = version
            yield from self._violated(W if isinstance(W, np.ndarray) else W.dense(), version)

    def _violated(self, W: FloatArray, version: int) -> Iterator[str]:
        what = f"the server's {self._name} of version {version}"
        if W.ndim == 2 and not np.allclose(W, W.T, atol=TOLERANCE * (1 + np.abs(W).max(initial=0.0))):
            yield f"{what} is not symmetric"
        values = np.asarray(np.linalg.eigvalsh(W) if W.ndim == 2 else W, dtype=np.float64)
        if values.size and values.min() < -TOLERANCE * (1 + values.max()):
            yield f"{what} has the eigenvalue {values.min():.3g} < 0"
        if self._lam is None:
            return
        last, gain = self._last
        now = float(np.log1p(np.maximum(values, 0.0) / self._lam).sum())
        if now < gain - TOLERANCE * (1 + gain) or version < last:
            yield f"log det fell from {gain:.9g} (version {last}) to {now:.9g} (version {version})"
        self._last = (version, now)


def sum_mismatch(name: str, kept: FloatArray, total: FloatArray, uploads: int) -> Iterator[str]:
    """Yield a sentence if a server's sum differs from the total of its uploads by more than rounding errors.

    Args:
        name: name of the sum in the message.
        kept: the server's sum.
        total: the total of the uploads.
        uploads: number of uploads.
    """
    size = TOLERANCE * (1 + np.abs(total).max(initial=0.0))
    if kept.shape != total.shape or not np.allclose(kept, total, rtol=TOLERANCE, atol=size):
        yield f"{name} is not the sum of the {uploads} uploads that were taken in"


class LinearSums:
    """W and b, summed over all uploads.

    Args:
        dimension: d.
        lam: ridge parameter, for the invariants.
    """

    def __init__(self, dimension: int, lam: float) -> None:
        self._gram = GrowingGram(dimension)
        self.b: FloatArray = np.zeros(dimension)
        self._check = SquaresCheck(lam=lam)

    @property
    def gram(self) -> Gram:
        """W = sum x x^T."""
        return self._gram.matrix

    def add(self, W: Gram, b: FloatArray | None = None) -> None:
        self._gram.add_matrix(W)
        if b is not None:
            self.b = self.b + b

    def broken_invariants(self, version: int) -> Iterator[str]:
        """Yield the violations that :class:`SquaresCheck` finds."""
        return self._check.violations(self.gram, version)

    def discrepancies(self, uploads: Sequence[LinearUpload | PointsUpload]) -> Iterator[str]:
        """Yield a sentence for each of W and b that is not the sum over these uploads."""
        W = sum((upload.W.dense() for upload in uploads), start=np.zeros(self.gram.shape))
        b = sum((upload.b for upload in uploads if isinstance(upload, LinearUpload)), start=np.zeros_like(self.b))
        yield from sum_mismatch("W", self.gram.dense(), W, len(uploads))
        yield from sum_mismatch("b", self.b, b, len(uploads))
