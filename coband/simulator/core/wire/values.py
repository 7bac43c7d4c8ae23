"""Values of payloads as arrays, and back; messages with other values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from coband.simulator.arrays import FloatArray
from coband.simulator.core.nodes.message import EXACT, Message

ROUNDING = 1e-12
Fields = Mapping[str, FloatArray]


def reals(message: Message) -> dict[str, FloatArray]:
    """The real numbers of a message, by field; of several matrices in one field, nothing."""
    values = {name: getattr(message, name) for name in message.payload_fields() if message.meaning(name) not in EXACT}
    known = {name: value for name, value in values.items() if value is not None and not isinstance(value, tuple)}
    return {name: np.asarray(value, dtype=np.float64) for name, value in known.items()}


def semidefinite(matrix: FloatArray) -> FloatArray:
    """The matrix symmetrised, and with the smallest multiple of the identity that makes it positive semidefinite."""
    symmetric = 0.5 * (matrix + matrix.T)
    smallest = float(np.linalg.eigvalsh(symmetric)[0]) if len(matrix) else 0.0
    if smallest < 0.0:
        symmetric.flat[:: len(matrix) + 1] -= smallest
    return symmetric


def damaged(matrix: FloatArray) -> float:
    """The least eigenvalue of a matrix symmetrised; 0 for one that is positive semidefinite up to rounding."""
    found = np.linalg.eigvalsh(0.5 * (matrix + matrix.T))
    least, size = (float(found[0]), float(np.abs(found).max())) if len(found) else (0.0, 0.0)
    return least if least < -ROUNDING * size else 0.0


def of_the_form(value: Any, entries: FloatArray) -> Any:
    """Entries in the form in which a payload had its value: a number, an array, or what stands for a matrix."""
    if isinstance(value, int | float | np.number):
        return float(entries)
    entries.flags.writeable = False
    return entries if isinstance(value, np.ndarray) else value.with_entries(entries)


def replaced(message: Message, values: Mapping[str, Any]) -> Message:
    """A message with other values in some fields and the same headers."""
    made: Message = object.__new__(type(message))
    made.__dict__.update({item.name: getattr(message, item.name) for item in fields(message)} | dict(values))
    return made
