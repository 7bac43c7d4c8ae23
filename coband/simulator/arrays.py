"""Types of numpy arrays, for every part of the program; and a refusal of those that no machine like this one holds."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
IndexArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]

GIB = 2.0**30
SMALL = GIB
"""Bytes that any machine has; for arrays of less nobody looks."""


class TooLarge(MemoryError):
    """An array is larger than the memory of this machine; the text says what it is for, and what to change."""


def require_room(what: str, *shape: float, instead: str) -> None:
    """Refuse an array of 64-bit numbers that is larger than the memory of this machine, before it is made.

    Args:
        what: it is for, such as "the covariance of a domain of 100,000 points".
        shape: of the array, or the number of its entries.
        instead: what to change.

    Raises:
        TooLarge: it is.
    """
    size = 8.0 * math.prod(shape)
    if size > SMALL and size > (memory := machine_memory()):
        here = f"this machine has {in_gib(memory)} of memory"
        raise TooLarge(f"there is no room for {what}: about {in_gib(size)}, and {here}; {instead}")


def machine_memory() -> float:
    """Bytes of memory that this machine has in all."""
    import psutil  # only what is large asks

    return float(psutil.virtual_memory().total)


def in_gib(size: float) -> str:
    """A number of bytes for people."""
    number = size / GIB
    return f"{number:,.0f} GiB" if number >= 10 else f"{number:.2g} GiB"
