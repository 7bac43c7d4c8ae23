"""What a message carries, found out without the code that the ledger relies on: its numbers, and copies of it."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from dataclasses import Field, fields, is_dataclass
from functools import cache
from typing import Any, TypeVar

import numpy as np

from coband.simulator.core.nodes.message import Message

HEADER = (bool, int, str, np.integer, np.bool_, type(None))
"""What a header field may hold, alone or in a tuple: it costs nothing, so it must not carry what was learnt."""
ROUNDING = 1e-6
"""Relative to the largest entry: how far apart two ways to compute one payload may be."""
IMMUTABLE = (bool, int, float, str, type(None))
M = TypeVar("M", bound=Message)


@cache
def _declared(kind: Any) -> tuple[Field[Any], ...]:
    return fields(kind)


def _fields(value: Any) -> tuple[Field[Any], ...]:
    return _declared(value.__class__)


@cache
def _slots(kind: Any) -> tuple[str, ...]:
    """The attributes for which a class and its ancestors have slots."""
    return tuple(name for ancestor in kind.__mro__ for name in getattr(ancestor, "__slots__", ()))


def numbers_in(message: Message) -> int:
    """Scalars of the payload, counted entry by entry."""
    marked = [item.name for item in _fields(message) if item.metadata.get("payload")]
    return sum(_count(getattr(message, name)) for name in marked)


def _count(value: object) -> int:
    if value is None:
        return 0
    if isinstance(value, tuple | list):
        return sum(map(_count, value))
    if is_dataclass(value):
        return sum(_count(getattr(value, item.name)) for item in _fields(value))
    return math.prod(np.asarray(value).shape)


def stowaway(message: Message) -> str | None:
    """The name of something beside the payload that carries more than a header may; None: there is none."""
    header = {item.name for item in _fields(message) if not item.metadata.get("payload")}
    for name in header:
        value = getattr(message, name)
        if not all(isinstance(item, HEADER) for item in (value if isinstance(value, tuple) else (value,))):
            return name
    declared = {item.name for item in _fields(message)}
    undeclared = [name for name in vars(message) if name not in declared and not hasattr(type(message), name)]
    return min(undeclared, default=None)


def frozen(message: M) -> M:
    """A copy of all that a message declares, which shares no memory with it and cannot be written to."""
    made = object.__new__(type(message))
    for item in _fields(message):
        object.__setattr__(made, item.name, _frozen(getattr(message, item.name)))
    return made


def _frozen(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return type(value)(map(_frozen, value))
    if type(value) in IMMUTABLE:
        return value
    made = copy.deepcopy(value)
    for array in _arrays_of(made):
        array.flags.writeable = False
    return made


def _arrays_of(value: Any) -> Iterator[np.ndarray[Any, Any]]:
    parts = [getattr(value, name, None) for name in _slots(value.__class__)] + list(
        getattr(value, "__dict__", {}).values()
    )
    yield from (part for part in (value, *parts) if isinstance(part, np.ndarray))


def difference(one: Message, other: Message, rounding: float = ROUNDING) -> str | None:
    """The first field in which two messages differ, payloads by more than rounding; None: they are alike."""
    if type(one) is not type(other):
        return "kind"
    for item in _fields(one):
        close = rounding if item.metadata.get("payload") else 0.0
        if not _alike(getattr(one, item.name), getattr(other, item.name), close):
            return item.name
    return None


def _alike(one: Any, other: Any, rounding: float) -> bool:
    if isinstance(one, tuple | list):
        same = type(one) is type(other) and len(one) == len(other)
        return same and all(_alike(*pair, rounding) for pair in zip(one, other, strict=True))
    if one is None or other is None or isinstance(one, str) or (isinstance(one, int) and isinstance(other, int)):
        return bool(one == other)
    if is_dataclass(one):
        return type(one) is type(other) and all(
            _alike(getattr(one, item.name), getattr(other, item.name), rounding) for item in _fields(one)
        )
    return _close(np.asarray(one), np.asarray(other), rounding)


def _close(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any], rounding: float) -> bool:
    if one.shape != other.shape:
        return False
    if one.dtype == other.dtype and one.tobytes() == other.tobytes():
        return True
    if not rounding or not np.issubdtype(one.dtype, np.inexact):
        return np.array_equal(one, other, equal_nan=np.issubdtype(one.dtype, np.inexact))
    largest = float(np.abs(one[np.isfinite(one)]).max(initial=0.0))
    return np.allclose(one, other, rtol=0.0, atol=rounding * max(largest, ROUNDING), equal_nan=True)


def unfinite(message: Message) -> str | None:
    """The name of a payload field that holds NaN, or an array with infinity; None: there is none.

    Infinity alone is larger than all others, as the loss of a model without data, and may be meant.
    """
    marked = [item.name for item in _fields(message) if item.metadata.get("payload")]
    return next((name for name in marked if not _is_finite(getattr(message, name))), None)


def _is_finite(value: object) -> bool:
    if isinstance(value, tuple | list):
        return all(map(_is_finite, value))
    if is_dataclass(value):
        return all(_is_finite(getattr(value, item.name)) for item in _fields(value))
    if isinstance(value, float):
        return not math.isnan(value)
    numbers = np.asarray(0.0 if value is None else value)
    return not np.issubdtype(numbers.dtype, np.inexact) or bool(np.isfinite(numbers).all())
