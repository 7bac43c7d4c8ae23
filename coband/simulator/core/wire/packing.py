"""Codes of fixed widths as bytes, and back; whole numbers in a unary code."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from coband.simulator.arrays import IntArray

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


def unary(numbers: IntArray) -> Codes:
    """Codes of one bit: of each number m, |m| ones, a zero, and a sign unless m = 0."""
    return np.array([bit for m in numbers.tolist() for bit in [1] * abs(m) + [0] + [m < 0] * (m != 0)], dtype=np.uint64)


def from_unary(bits: Codes, count: int) -> IntArray:
    """The whole numbers that have these codes.

    Raises:
        ValueError: so many numbers have other ones.
    """
    rest, found = iter(bits.tolist()), list[int]()
    for _ in range(count):
        size = sum(1 for _ in takewhile(bool, rest))
        found.append(-size if size and next(rest, 0) else size)
    numbers = np.array(found, dtype=np.int64)
    if not np.array_equal(unary(numbers), bits):
        raise ValueError(f"{len(bits)} bits that are not a unary code of {count} numbers")
    return numbers
