"""Copies of messages, and how two messages differ."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import Field, fields, is_dataclass
from functools import cache
from typing import Any, TypeVar

import numpy as np

from coband.simulator.core.nodes.message import Message

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
