"""The kernels of a scenario, written out from differences and inner products: k(x, x) of a stationary one is 1."""

from functools import reduce
from typing import Any

import numpy as np

from tests.oracles.posterior import FloatArray, Kernel


def plain(spec: dict[str, Any]) -> Kernel:
    """The kernel that a scenario's ``kernel:`` block describes, as a function of X (n, d) and Y (m, d)."""
    return lambda X, Y: matrix(spec, X, Y)


def matrix(spec: dict[str, Any], X: FloatArray, Y: FloatArray) -> FloatArray:
    """The kernel matrix (n, m)."""
    kind = spec["kind"]
    if kind == "sum":
        return reduce(np.add, [matrix(term, X, Y) for term in spec["terms"]])
    if kind == "product":
        return reduce(np.multiply, [matrix(factor, X, Y) for factor in spec["factors"]])
    if spec.get("columns") is not None:
        X, Y = X[:, list(spec["columns"])], Y[:, list(spec["columns"])]
    if kind in ("linear", "polynomial"):
        inner: FloatArray = (X[:, None, :] * Y[None, :, :]).sum(axis=2)
        if kind == "linear":
            return spec.get("variance", 1.0) * inner + spec.get("bias", 0.0)
        return (spec.get("scale", 1.0) * inner + spec.get("bias", 1.0)) ** int(spec["degree"])
    squares: FloatArray = ((X[:, None, :] - Y[None, :, :]) ** 2).sum(axis=2)
    if kind == "gaussian":
        gamma = spec["gamma"] if "gamma" in spec else 1.0 / (2.0 * spec["length_scale"] ** 2)
        return np.exp(-gamma * squares)
    s = np.sqrt(squares) / spec["length_scale"]
    if spec["nu"] == 0.5:
        return np.exp(-s)
    if spec["nu"] == 1.5:
        return (1.0 + np.sqrt(3.0) * s) * np.exp(-np.sqrt(3.0) * s)
    return (1.0 + np.sqrt(5.0) * s + 5.0 * s**2 / 3.0) * np.exp(-np.sqrt(5.0) * s)
