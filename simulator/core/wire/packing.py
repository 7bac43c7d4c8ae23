"""Codes of fixed widths as bytes, and back."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.uint64]


def packed(parts: Sequence[Codes], widths: Sequence[tuple[int, int]]) -> bytes:
    """The codes of all parts one after the other, the highest bit first, filled up with zeros to whole bytes."""
    bits = [
        (codes[:, None] >> np.arange(width, dtype=np.uint64)[::-1]).astype(np.uint8).ravel() & 1
        for codes, (_, width) in zip(parts, widths, strict=True)
    ]
    return np.packbits(np.concatenate(bits)).tobytes() if bits else b""


def unpacked(raw: bytes, widths: Sequence[tuple[int, int]]) -> list[Codes]:
    """The parts that `packed` was given.

    Raises:
        ValueError: there are more or fewer bytes than the widths say.
    """
    if len(raw) != math.ceil(sum(count * width for count, width in widths) / 8):
        raise ValueError(f"{len(raw)} bytes, where codes of {list(widths)} are expected")
    bits, start, parts = np.unpackbits(np.frombuffer(raw, np.uint8)).astype(np.uint64), 0, []
    for count, width in widths:
        table = bits[start : start + count * width].reshape(count, width)
        parts.append((table << np.arange(width, dtype=np.uint64)[::-1]).sum(axis=1, dtype=np.uint64))
        start += count * width
    return parts
