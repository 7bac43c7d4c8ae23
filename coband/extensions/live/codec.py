"""Messages as bytes, and bytes as messages, checked against the fields that their class declares.

A message is (name of its class, values of its fields). Arrays are sent as their raw numbers. Nothing but numbers,
texts, None, tuples of these, arrays and sums of squares (``Gram``) can be sent; nothing that is received is executed.
An array has nothing in it but numbers, and a sum of squares nothing but arrays, so that nothing is nested without end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgpack
import numpy as np

from coband import SERVER, Address, FloatArray, Message, UnsupportedScenario
from coband.extending import gram

ARRAY, GRAM = 1, 2
DTYPES = {"f": np.dtype("<f8"), "i": np.dtype("<i8"), "b": np.dtype("|b1")}
LARGEST_RANK, LARGEST_AXIS, LARGEST_SIDE = 4, 1 << 40, 1 << 20
LONGEST_HEAD, INTEGERS = 64, 1 << 63
SMALL = 1 << 12
"""Bytes that cannot claim to hold much."""
Extension = Callable[[int, bytes], Any]
Check = Callable[[Any], str | None]
"""What is wrong with a value; None: nothing."""


class WireError(ValueError):
    """Something was received that nobody may send; the text says what is wrong with it."""


def pack(value: Any) -> bytes:
    """Numbers, texts, arrays, sums of squares, and lists and mappings of these, as bytes."""
    packed: bytes = PACKER.pack(value)
    return packed


def no_extension(code: int, raw: bytes) -> Any:
    """Take none."""
    raise WireError(f"extension {code}, where none is allowed")


def unpack(raw: bytes, extension: Extension = no_extension) -> Any:
    """The value again, with tuples where there were lists.

    Args:
        extension: makes what is not in msgpack itself: of its code and bytes.

    Raises:
        WireError: the bytes are not such a value.
    """
    try:
        if len(raw) > SMALL:
            _check_complete(raw)
        return msgpack.unpackb(raw, ext_hook=extension, raw=False, use_list=False, strict_map_key=True)
    except WireError:
        raise
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException) as error:
        raise WireError(f"these bytes cannot be read ({type(error).__name__})") from None


def _check_complete(raw: bytes) -> None:
    """Find the end without making anything: room is made for all items of a list as soon as it says how many it has."""
    unpacker = msgpack.Unpacker(max_buffer_size=len(raw))
    unpacker.feed(raw)
    unpacker.skip()


def _packed(value: Any) -> Any:
    if isinstance(value, gram.Gram):  # as the rows that it is made of: who follows it takes those that are new
        return msgpack.ExtType(GRAM, msgpack.packb([value.sign < 0, value.rows, _base_part(value)], default=_packed))
    if isinstance(value, np.ndarray):
        return msgpack.ExtType(ARRAY, _array_parts(value))
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a value of type {type(value).__name__} cannot be sent")


PACKER = msgpack.Packer(default=_packed)
"""Makes the outermost value; to make another one for each takes as long again."""


def _base_part(value: gram.Gram) -> FloatArray | float | None:
    """A multiple of I goes as its one number."""
    return value.base.scale if isinstance(value.base, gram.ScaledIdentity) else value.base


def _array_parts(array: np.ndarray[Any, Any]) -> bytes:
    """Kind, order and shape, then the numbers; the order is kept, as the last bits of products depend on it."""
    kind = {"f": "f", "i": "i", "u": "i", "b": "b"}.get(array.dtype.kind)
    if kind is None:
        raise TypeError(f"an array of {array.dtype} cannot be sent")
    order = "F" if array.ndim > 1 and array.flags.f_contiguous and not array.flags.c_contiguous else "C"
    numbers = array.astype(DTYPES[kind], copy=False).tobytes(order)  # type: ignore[arg-type]
    head: bytes = msgpack.packb((kind + order, array.shape))
    return head + numbers


def _arrays(code: int, raw: bytes) -> Any:
    return _array(raw) if code == ARRAY else no_extension(code, raw)


def _arrays_and_sums(code: int, raw: bytes) -> Any:
    return _gram(unpack(raw, _arrays)) if code == GRAM else _arrays(code, raw)


def _array(raw: bytes) -> np.ndarray[Any, Any]:
    unpacker = msgpack.Unpacker(max_buffer_size=LONGEST_HEAD, ext_hook=no_extension)
    unpacker.feed(raw[:LONGEST_HEAD])
    try:
        (form, shape), start = unpacker.unpack(), unpacker.tell()
    except WireError:
        raise
    except (ValueError, TypeError, msgpack.UnpackException):
        raise WireError("an array without a head") from None
    if not isinstance(form, str) or form[:1] not in DTYPES or form[1:] not in ("C", "F"):
        raise WireError(f"an array of unknown form {form!r:.20}")
    whole = isinstance(shape, list) and len(shape) <= LARGEST_RANK
    if not whole or not all(isinstance(size, int) and 0 <= size < LARGEST_AXIS for size in shape):
        raise WireError("an array of impossible shape")
    dtype = DTYPES[form[:1]]
    if math.prod(shape) * dtype.itemsize != len(raw) - start:
        raise WireError(f"an array of shape {tuple(shape)} with {len(raw) - start} bytes")
    order: Literal["C", "F"] = "F" if form[1:] == "F" else "C"
    in_bytes: np.ndarray[Any, Any] = np.ndarray(tuple(shape), dtype, raw, start, order=order)
    array = in_bytes.copy(order="K")  # numpy aligns its own memory
    array.flags.writeable = False
    return array


def _gram(parts: Any) -> gram.Gram:
    if not isinstance(parts, tuple) or len(parts) != 3 or not isinstance(parts[0], bool):
        raise WireError("a sum of squares without its parts")
    down, rows, base = parts
    if not _is_matrix(rows) or not (base is None or isinstance(base, float) or _is_matrix(base)):
        raise WireError("a sum of squares that is not made of matrices")
    if rows.shape[1] > LARGEST_SIDE:
        raise WireError(f"a sum of squares of {rows.shape[1]} columns, where {LARGEST_SIDE} are allowed")
    if isinstance(base, float):
        base = gram.ScaledIdentity(rows.shape[1], base)
    elif base is not None and base.shape != (rows.shape[1], rows.shape[1]):
        raise WireError(f"a sum of squares of shapes {rows.shape} and {base.shape}")
    return (gram.Downdate if down else gram.Gram)(rows, base)


def _is_matrix(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == DTYPES["f"] and value.ndim == 2


class Codec:
    """Writes and reads the messages of one algorithm.

    Args:
        kinds: the classes that its nodes send; no others are accepted.
        dimension: arm dimension, the ``d`` of declared shapes.

    Raises:
        UnsupportedScenario: a message has a field that cannot be sent.
    """

    extension: Extension = staticmethod(_arrays_and_sums)

    def __init__(self, kinds: Iterable[type[Message]], dimension: int) -> None:
        self._kinds = {kind.__name__: kind for kind in dict.fromkeys(kinds)}
        self._checks = {name: _checks_of(kind) for name, kind in self._kinds.items()}
        self._dimension = dimension

    def encode(self, message: Message) -> bytes:
        name = type(message).__name__
        if self._kinds.get(name) is not type(message):
            raise UnsupportedScenario(
                f"a {name} was sent, which the algorithm does not declare in `messages`, so that no other process "
                "accepts it; declare it"
            )
        return pack([name, *self._parts_of(message)])

    def _parts_of(self, message: Message) -> list[Any]:
        """What follows the name."""
        return [[getattr(message, item.name) for item in fields(message)]]

    def decode(self, raw: bytes, source: Address = SERVER) -> Message:
        """A message of bytes; ``source``: its sender.

        Raises:
            WireError: it is not a message of this algorithm, or a field is not what its class declares.
        """
        value = unpack(raw, self.extension)
        if not isinstance(value, tuple) or len(value) < 2:
            raise WireError("a message without a name and fields")
        name, *parts = value
        kind = self._kinds.get(name) if isinstance(name, str) else None
        if kind is None:
            shown = repr(name[:40]) if isinstance(name, str) else f"of type {type(name).__name__}"
            raise WireError(f"a message {shown} that this algorithm does not have")
        found, more = self._values_of(kind, parts, source)
        for field, check in self._checks[name]:
            if (wrong := check(found[field])) is not None:
                raise WireError(f"{name}.{field} {wrong}")
        self._check_shapes(kind, found)
        stamps = {item.name: found.pop(item.name) for item in fields(kind) if not item.init}
        message = kind(**found)
        vars(message).update(stamps | more)
        if not all(-1 <= number < 1 << 31 for number in (message.round, message.version)):
            raise WireError(f"a {name} of round {message.round} and version {message.version}")
        return message

    def _values_of(self, kind: type[Message], parts: Sequence[Any], source: Address) -> tuple[dict[str, Any], Any]:
        """The values of all fields in order, not checked yet, and what else is known of the message."""
        if len(parts) != 1 or not isinstance(parts[0], tuple):
            raise WireError("a message without a name and fields")
        expected = len(self._checks[kind.__name__])
        if len(parts[0]) != expected:
            raise WireError(f"a {kind.__name__} with {len(parts[0])} fields instead of {expected}")
        return {item.name: value for item, value in zip(fields(kind), parts[0], strict=True)}, {}

    def _check_shapes(self, kind: type[Message], found: Mapping[str, Any]) -> None:
        """Each letter of the declared shapes stands for one size in a message; d for the arm dimension."""
        sizes = {"d": self._dimension}
        for item in fields(kind):
            shape, value = item.metadata.get("shape", ()), found[item.name]
            if not shape or value is None:
                continue
            given = value.shape
            if len(given) != len(shape):
                raise WireError(f"{kind.__name__}.{item.name} has shape {given} instead of ({', '.join(shape)})")
            for letter, size in zip(shape, given, strict=True):
                if sizes.setdefault(letter, size) != size:
                    raise WireError(
                        f"{kind.__name__}.{item.name} has shape {given}, where {letter} is {sizes[letter]} in "
                        f"({', '.join(shape)})"
                    )


def _checks_of(kind: type[Message]) -> list[tuple[str, Check]]:
    hints = get_type_hints(kind)
    return [(item.name, _check_of(hints[item.name], f"{kind.__name__}.{item.name}")) for item in fields(kind)]


def _check_of(hint: Any, where: str) -> Check:
    """The check of a declared type."""
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return _any_of([_check_of(part, where) for part in get_args(hint)], hint)
    if origin is tuple:
        item, *more = get_args(hint)
        if more == [...]:
            return _each(_check_of(item, where))
    if origin is np.ndarray:
        return _array_of(get_args(get_args(hint)[1])[0], where)
    if hint in _SIMPLE:
        return _SIMPLE[hint]
    raise UnsupportedScenario(f"{where} is declared as {hint}, which cannot be sent between processes")


def _integer(value: Any) -> str | None:
    if not isinstance(value, int) or isinstance(value, bool):
        return "is not an integer"
    return None if -INTEGERS <= value < INTEGERS else "is too large"


def _number(value: Any) -> str | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return "is not a number"
    return None if math.isfinite(value) else "is not finite"


def _sum_of_squares(value: Any) -> str | None:
    if not isinstance(value, gram.Gram):
        return "is not a sum of squares"
    base = _base_part(value)
    finite = np.isfinite(value.rows).all() and (base is None or np.isfinite(base).all())
    return None if finite else "has entries that are not finite"


_SIMPLE: dict[Any, Check] = {
    int: _integer,
    float: _number,
    bool: lambda value: None if isinstance(value, bool) else "is neither true nor false",
    str: lambda value: None if isinstance(value, str) else "is not text",
    NoneType: lambda value: None if value is None else "is not None",
    gram.Gram: _sum_of_squares,
}


def _any_of(checks: list[Check], hint: Any) -> Check:
    def check(value: Any) -> str | None:
        found = [wrong for one in checks if (wrong := one(value)) is not None]
        return None if len(found) < len(checks) else found[0] if value is not None else f"must be {hint}"

    return check


def _each(one: Check) -> Check:
    def check(value: Any) -> str | None:
        if not isinstance(value, tuple):
            return "is not a tuple"
        return next((wrong for item in value if (wrong := one(item)) is not None), None)

    return check


def _array_of(kind: type[np.generic], where: str) -> Check:
    dtype = DTYPES.get(np.dtype(kind).kind)
    if dtype is None:
        raise UnsupportedScenario(f"{where} is an array of {kind}, which cannot be sent between processes")

    def check(value: Any) -> str | None:
        if not isinstance(value, np.ndarray) or value.dtype != dtype:
            return f"is not an array of {dtype.name}"
        return None if dtype.kind != "f" or np.isfinite(value).all() else "has entries that are not finite"

    return check
