"""Which candidates of a search are evaluated again: those that no other of their algorithm dominates, well spread."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coband.simulator.arrays import FloatArray
from coband.simulator.experiments.statistics.dominance import non_dominated


def layers(means: FloatArray) -> list[int]:
    """The layer of each row: 0 for those that no row beats, 1 for those that only rows of layer 0 beat, and so on.

    Args:
        means: one row per point, low being better, shape (points, objectives).
    """
    found, left, layer = [0] * len(means), list(range(len(means))), 0
    while left:
        front = {left[i] for i, free in enumerate(non_dominated(means[left])) if free}
        for index in front:
            found[index] = layer
        left = [index for index in left if index not in front]
        layer += 1
    return found


def finalists(entries: Sequence[int], means: FloatArray, most: int) -> list[int]:
    """The rows to evaluate again, in their order: whole layers first, of the layer that does not fit the best spread.

    Layers are those of each entry by itself, since an algorithm's own trade-off is worth knowing where another one
    beats it; rows that no row at all beats come first within a layer. Each entry has one row at least.

    Args:
        entries: what each row belongs to.
        means: shape (points, objectives).
        most: how many, at least one for each entry.
    """
    own = np.array(entries)
    rank = np.zeros(len(own), dtype=int)
    for entry in set(entries):
        rows = np.flatnonzero(own == entry)
        rank[rows] = layers(means[rows])
    beaten = ~np.array(non_dominated(means), dtype=bool)
    scaled = _scaled(means)
    chosen = [_middle(scaled, np.flatnonzero((own == entry) & (rank == 0))) for entry in dict.fromkeys(entries)]
    for layer, worse in sorted({(int(a), bool(b)) for a, b in zip(rank, beaten, strict=True)}):
        left = [i for i in np.flatnonzero((rank == layer) & (beaten == worse)).tolist() if i not in chosen]
        while left and len(chosen) < most:
            distances = np.abs(scaled[left][:, None, :] - scaled[chosen][None, :, :]).max(axis=2).min(axis=1)
            chosen.append(left.pop(int(distances.argmax())))
    return sorted(chosen[:most])


def compromise(means: FloatArray) -> int:
    """The row whose largest loss is smallest, each objective on the scale from its best (0) to its worst (1) value.

    Args:
        means: of the rows that are not dominated, shape (points, objectives).
    """
    return _middle(_scaled(means), np.arange(len(means)))


def _middle(scaled: FloatArray, rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> int:
    part = scaled[rows]
    return int(rows[np.lexsort((part.sum(axis=1), part.max(axis=1)))[0]])


def _scaled(means: FloatArray) -> FloatArray:
    """Each column from 0 to 1, after asinh, which is a logarithm for large numbers."""
    bent = np.arcsinh(means)
    width = np.ptp(bent, axis=0)
    found: FloatArray = (bent - bent.min(axis=0)) / np.where(width > 0, width, 1.0)
    return found
