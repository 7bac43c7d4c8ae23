"""Products of features with symmetric matrices, and which of them pay when most features are zero."""

from __future__ import annotations

import math

import numpy as np

from coband.simulator.arrays import FloatArray
from coband.simulator.maths.linalg.gram import Base, Gram, ScaledIdentity
from coband.simulator.maths.linalg.matrices import dsymv

LARGE = 600
"""Features from which on sparse ones are looked for."""

SPARSITY = 4
"""A row of features is sparse when at most one in so many is not zero."""


def quadratic(G: FloatArray, P: FloatArray | Gram) -> FloatArray:
    """g^T P g for the rows of G (..., n, p), P (p, p) or a diagonal (p,); clipped at 0, shape (..., n)."""
    values: FloatArray
    if isinstance(P, Gram) and P.base is not None and not len(P.rows):
        values = _forms(G, P.base)
    elif isinstance(P, Gram):
        projected = G @ P.rows.T
        values = P.sign * inner(projected, projected)
        if P.base is not None:
            values += _forms(G, P.base)
    else:
        values = (G * G) @ P if P.ndim == 1 else _forms(G, P)
    return np.maximum(values, 0.0, out=values)


def times(P: Base, g: FloatArray) -> FloatArray:
    """P g for a symmetric P (p, p) and g (p,)."""
    if isinstance(P, ScaledIdentity):
        return P.scale * g
    if is_sparse(g):
        support = np.flatnonzero(g)
        return g[support] @ P[support]
    product = dsymv(1.0, P.T, g)  # reads half of P
    return product


def is_sparse(G: FloatArray) -> bool:
    """Whether the entries of P that the rows of G (..., p) meet are so few that picking them out pays.

    So it is with arms that stand in blocks of their own: most inputs are 0, and so are the gradients of their weights.
    """
    width = G.shape[-1]
    if width < LARGE:
        return False
    counts = np.count_nonzero(G.reshape(-1, width), axis=1)
    return bool(SPARSITY * int(counts.max(initial=0)) < width)


def _rows_times(G: FloatArray, P: Base) -> FloatArray:
    """G P for a symmetric P (p, p) and G (..., p)."""
    return G * P.scale if isinstance(P, ScaledIdentity) else G @ P


def _forms(G: FloatArray, P: Base) -> FloatArray:
    """g^T P g for the rows of G (..., n, p), (..., n)."""
    *leading, width = G.shape
    if width < LARGE and G.ndim == 2:
        return inner(_rows_times(G, P), G)
    if width < LARGE:
        flat = G.reshape(math.prod(leading), width)
        return inner(_rows_times(flat, P), flat).reshape(leading)
    if G.ndim == 1:
        return inner(_rows_times(G, P), G)
    *leading, rows, width = G.shape
    slices = G.reshape(math.prod(leading), rows, width)
    values = np.array(
        [_sparse_forms(part, P) if is_sparse(part) else inner(_rows_times(part, P), part) for part in slices]
    )
    return values.reshape(*leading, rows)


def _sparse_forms(G: FloatArray, P: Base) -> FloatArray:
    values = np.empty(len(G))
    for row, g in enumerate(G):
        support = np.flatnonzero(g)
        picked = g[support]
        if isinstance(P, ScaledIdentity):
            values[row] = _rows_times(picked, P) @ picked
        else:
            places = support[:, None] * len(P) + support
            values[row] = picked @ P.ravel().take(places) @ picked
    return values


def inner(A: FloatArray, B: FloatArray) -> FloatArray:
    """a . b for the rows of A and B (..., p), shape (...)."""
    products: FloatArray
    if A.ndim == 2:
        products = np.einsum("ij,ij->i", A, B)
        return products
    *leading, width = A.shape
    rows = math.prod(leading)
    products = np.einsum("ij,ij->i", A.reshape(rows, width), B.reshape(rows, width))
    return products.reshape(leading)
