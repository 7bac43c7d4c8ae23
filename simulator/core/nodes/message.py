"""Messages, whose size is computed from what they carry.

A message is a frozen dataclass. Fields marked with :func:`payload` are the real numbers that a link has to carry and
that the ledger counts; everything else (versions, positions, counts of pulls) is header.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, ClassVar, overload

import numpy as np


def payload(*shape: str) -> Any:
    """Mark a dataclass field as payload: its scalars are counted.

    Args:
        shape: of an array, a letter for each axis: one letter stands for one size in a message, ``d`` for the arm
            dimension. What comes from another process is held to it; without, any shape is taken.
    """
    return field(metadata={"payload": True, "shape": shape})


_SIZES: dict[type, int] = {int: 1, float: 1, type(None): 0}
"""Scalars of the values that are met most often."""


def size_of(value: object) -> int:
    """Number of scalars in a payload value: the sum of array sizes, 1 for a number, 0 for None.

    An array is whatever has a ``shape``, so that a matrix may be kept in fewer numbers than it has entries.
    """
    size = _SIZES.get(type(value))
    if size is not None:
        return size
    if isinstance(value, np.ndarray):
        return value.size
    if isinstance(value, (int, float)):
        return 1
    if isinstance(shape := getattr(value, "shape", None), tuple) and shape:
        return math.prod(shape)
    if isinstance(value, np.number):
        return 1
    if isinstance(value, (tuple, list)):
        return sum(size_of(item) for item in value)
    if is_dataclass(value):
        return sum(size_of(getattr(value, item.name)) for item in fields(value))
    raise TypeError(f"a payload of type {type(value).__name__} has no size in scalars; use arrays or numbers")


class _Scalars:
    """Payload size in scalars: computed from the payload at its first use, and then kept in the message.

    ``functools.cached_property`` takes a lock for that before Python 3.12, which costs more than the count itself.
    """

    @overload
    def __get__(self, message: None, owner: type) -> _Scalars: ...

    @overload
    def __get__(self, message: Message, owner: type) -> int: ...

    def __get__(self, message: Message | None, owner: type) -> _Scalars | int:
        if message is None:
            return self
        found = 0
        for name in message.payload_fields():
            value = getattr(message, name)
            size = _SIZES.get(type(value))
            found += size_of(value) if size is None else size
        message.__dict__["scalars"] = found
        return found


@dataclass(frozen=True, kw_only=True, eq=False)
class Message:
    """Base of all messages.

    Header fields, which cost nothing: ``round`` (communication round, -1 if unknown), ``version`` (of the model it is
    about, -1 if none), ``pulls`` (how many pulls' statistics an upload brings that the server does not have yet),
    ``known`` (how many pulls' statistics the model in it has, of all agents; -1 if it has none or nobody counts them).
    Three are written by conversations (``core.talks``) when they send it: ``talk`` (its number,
    0 if nobody cares), ``answers`` (number of the question that it answers or continues), ``asks`` (1: for an answer;
    2: its sender waits for a message to all).
    """

    kind: ClassVar[str] = "message"
    _payload_fields: ClassVar[tuple[str, ...]] = ()
    round: int = -1
    version: int = -1
    pulls: int = 0
    known: int = -1
    talk: int = field(default=0, init=False)
    answers: int = field(default=0, init=False)
    asks: int = field(default=0, init=False)

    @classmethod
    def payload_fields(cls) -> tuple[str, ...]:
        """Names of the fields that are payload, in order of declaration."""
        if "_payload_fields" not in cls.__dict__:
            cls._payload_fields = tuple(item.name for item in fields(cls) if item.metadata.get("payload"))
        return cls._payload_fields

    scalars = _Scalars()
    """Payload size in scalars: computed from the payload, never typed in by hand."""
