"""What messages may hold: payloads finite numbers, and the rest, which costs nothing, none that were learnt."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass

import numpy as np

from coband.simulator.core.nodes.message import Message

HEADER = (bool, int, str, np.integer, np.bool_, type(None))
"""What a header field may hold, by itself or in a tuple."""


def stowaway(message: Message) -> str | None:
    """Return the name of an attribute that is not payload and carries more than a header may; None: there is none."""
    declared = {item.name: item.metadata.get("payload", False) for item in fields(message)}
    for name in (name for name, is_payload in declared.items() if not is_payload):
        value = getattr(message, name)
        if not all(isinstance(item, HEADER) for item in (value if isinstance(value, tuple) else (value,))):
            return name
    undeclared = [name for name in vars(message) if name not in declared and not hasattr(type(message), name)]
    return min(undeclared, default=None)


def unfinite(message: Message) -> str | None:
    """Return the name of a payload field that holds NaN, or an array with infinity; None: there is none.

    A single infinity is larger than all other numbers, as the loss of a model without data, and may be meant.
    """
    return next((name for name in message.payload_fields() if not _is_finite(getattr(message, name))), None)


def _is_finite(value: object) -> bool:
    if isinstance(value, tuple | list):
        return all(map(_is_finite, value))
    if is_dataclass(value):
        return all(_is_finite(getattr(value, item.name)) for item in fields(value))
    if isinstance(value, float):
        return not math.isnan(value)
    numbers = np.asarray(0.0 if value is None else value)
    return not np.issubdtype(numbers.dtype, np.inexact) or bool(np.isfinite(numbers).all())
