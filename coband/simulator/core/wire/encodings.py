"""Encodings: real numbers as whole numbers of fixed widths, and back; values of payloads as arrays.

An encoding turns n numbers into parts; a part is so many codes of so many bits each, which depend on n alone. So the
bits of a field are known exactly, and the parts one after the other are what a link carries.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import BeforeValidator, Field, model_validator

from coband.simulator.arrays import FloatArray
from coband.simulator.core.config import Config, word_is_kind
from coband.simulator.core.nodes.message import EXACT, Message
from coband.simulator.core.wire.packing import Codes
from coband.simulator.core.wire.senders import DeltaSender, FeedbackSender, Sender
from coband.simulator.plugins.kinds import Kinds
from coband.simulator.plugins.promises import finite, returns

ROUNDING = 1e-12
Fields = Mapping[str, FloatArray]


def reals(message: Message) -> dict[str, FloatArray]:
    """The real numbers of a message, by field; of several matrices in one field, nothing."""
    values = {name: getattr(message, name) for name in message.payload_fields() if message.meaning(name) not in EXACT}
    known = {name: value for name, value in values.items() if value is not None and not isinstance(value, tuple)}
    return {name: np.asarray(value, dtype=np.float64) for name, value in known.items()}


def semidefinite(matrix: FloatArray) -> FloatArray:
    """The matrix symmetrised, and with the smallest multiple of the identity that makes it positive semidefinite.

    Like `damaged` it takes the diagonal, (d,), for a diagonal matrix.
    """
    if matrix.ndim == 1:
        return matrix - float(matrix.min(initial=0.0))
    symmetric = 0.5 * (matrix + matrix.T)
    smallest = float(np.linalg.eigvalsh(symmetric)[0]) if len(matrix) else 0.0
    if smallest < 0.0:
        symmetric.flat[:: len(matrix) + 1] -= smallest
    return symmetric


def damaged(matrix: FloatArray) -> float:
    """The least eigenvalue of a matrix symmetrised; 0 for one that is positive semidefinite up to rounding."""
    found = np.sort(matrix) if matrix.ndim == 1 else np.linalg.eigvalsh(0.5 * (matrix + matrix.T))
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


SCALE_BITS = 32
"""Bits of a scale that is sent along, as a float32."""


class BaseEncoding(Config):
    """Base of encodings, which make messages smaller.

    Attributes:
        exact: it gives back what it was given, and draws nothing.
        sums: it is for sums and models: of an arm or a reward alone it would leave too little.
        remembers: its senders keep something of messages until they know what has become of them.
    """

    remembers: ClassVar[bool] = False
    exact: ClassVar[bool] = False
    sums: ClassVar[bool] = False

    @property
    def acknowledged(self) -> bool:
        """Whether it needs to know what receivers have."""
        return False

    @abstractmethod
    @returns(
        "a list of (how many codes, bits of each)",
        lambda found, n: all(np.shape(part) == (2,) and np.asarray(part).dtype.kind in "iu" for part in found),
    )
    def widths(self, n: int) -> Sequence[tuple[int, int]]:
        """(how many codes, bits of each) of every part of n numbers."""

    @abstractmethod
    def encode(self, values: FloatArray, rng: np.random.Generator) -> Sequence[Codes]:
        """The parts of n finite numbers, (n,); ``rng``: the stream of this message."""

    @abstractmethod
    @returns(
        "an array of {n} finite numbers",
        lambda found, parts, n: finite(found, n),
    )
    def decode(self, parts: Sequence[Codes], n: int) -> FloatArray:
        """The n numbers that parts say."""

    def size(self, n: int) -> int:
        """Bits of n numbers."""
        return sum(count * width for count, width in self.widths(n))

    def sender(self) -> Sender:
        """The sending end of a link."""
        return Sender(self)


class Float64(BaseEncoding):
    """64 bits, exact."""

    kind: Literal["float64"]
    exact: ClassVar[bool] = True

    def widths(self, n: int) -> Sequence[tuple[int, int]]:
        return [(n, 64)]

    def encode(self, values: FloatArray, rng: np.random.Generator) -> Sequence[Codes]:
        return [np.ascontiguousarray(values).view(np.uint64)]

    def decode(self, parts: Sequence[Codes], n: int) -> FloatArray:
        values: FloatArray = parts[0].view(np.float64)
        return values


class _Rounded(BaseEncoding):
    """Rounded to the nearest number of a shorter format; what is too large for it becomes its largest number."""

    _format: ClassVar[tuple[Any, Any]]

    def widths(self, n: int) -> Sequence[tuple[int, int]]:
        return [(n, 8 * np.dtype(self._format[0]).itemsize)]

    def encode(self, values: FloatArray, rng: np.random.Generator) -> Sequence[Codes]:
        number, code = self._format
        largest = float(np.finfo(number).max)
        return [np.clip(values, -largest, largest).astype(number).view(code).astype(np.uint64)]

    def decode(self, parts: Sequence[Codes], n: int) -> FloatArray:
        number, code = self._format
        values: FloatArray = parts[0].astype(code).view(number).astype(np.float64)
        return values


class Float32(_Rounded):
    """32 bits: 24 significant ones, rounded to nearest."""

    kind: Literal["float32"]
    _format: ClassVar[tuple[Any, Any]] = (np.float32, np.uint32)


class Float16(_Rounded):
    """16 bits: 11 significant ones, rounded to nearest; numbers up to 65,504."""

    kind: Literal["float16"]
    _format: ClassVar[tuple[Any, Any]] = (np.float16, np.uint16)


class BFloat16(BaseEncoding):
    """16 bits: 8 significant ones, rounded to nearest, with the range of float32."""

    kind: Literal["bfloat16"]

    def widths(self, n: int) -> Sequence[tuple[int, int]]:
        return [(n, 16)]

    def encode(self, values: FloatArray, rng: np.random.Generator) -> Sequence[Codes]:
        largest = np.ldexp(255.0, 120)
        clipped = np.clip(values, -largest, largest)
        step = np.ldexp(1.0, np.maximum(np.frexp(clipped)[1], -125) - 8)  # a power of two: dividing by it is exact
        rounded = np.clip(np.rint(clipped / step) * step, -largest, largest).astype(np.float32)
        return [(rounded.view(np.uint32) >> np.uint32(16)).astype(np.uint64)]

    def decode(self, parts: Sequence[Codes], n: int) -> FloatArray:
        return (parts[0].astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)


def _scale(value: float) -> Codes:
    """A scale as a float32, rounded up, so that no number is outside of it."""
    rounded = np.float32(min(value, float(np.finfo(np.float32).max)))
    if float(rounded) < value:
        rounded = np.nextafter(rounded, np.float32(np.finfo(np.float32).max))
    return np.array([rounded], dtype=np.float32).view(np.uint32).astype(np.uint64)


def _scale_of(code: Codes) -> float:
    return float(code.astype(np.uint32).view(np.float32)[0])


class Stochastic(BaseEncoding):
    """Rounded up or down at random to one of 2^bits equidistant numbers in [-s, s], without bias (Alistarh et al.
    2017); the scale s is sent along in 32 bits."""

    kind: Literal["stochastic"]
    bits: int = Field(ge=1, le=32)
    """Bits of each number."""
    scale: Literal["max", "norm"] = "max"
    """s: the largest absolute number of the field, or their Euclidean norm."""

    def widths(self, n: int) -> Sequence[tuple[int, int]]:
        return [(1, SCALE_BITS), (n, self.bits)]

    def encode(self, values: FloatArray, rng: np.random.Generator) -> Sequence[Codes]:
        size = np.abs(values).max(initial=0.0) if self.scale == "max" else np.linalg.norm(values)
        code, levels = _scale(float(size)), 2**self.bits - 1
        scale = _scale_of(code)
        clipped = np.clip(values, -scale, scale)
        places = (clipped / scale + 1.0) * (levels / 2.0) if scale else np.zeros(len(values))
        low = np.floor(places)
        return [code, (low + (rng.random(len(values)) < places - low)).astype(np.uint64)]

    def decode(self, parts: Sequence[Codes], n: int) -> FloatArray:
        shares: FloatArray = parts[1].astype(np.float64) * (2.0 / (2**self.bits - 1)) - 1.0
        return _scale_of(parts[0]) * shares


class Sign(BaseEncoding):
    """The sign of each number, 1 bit, times the mean of their absolute values, 32 bits (Karimireddy et al. 2019)."""

    kind: Literal["sign"]
    sums: ClassVar[bool] = True

    def widths(self, n: int) -> Sequence[tuple[int, int]]:
        return [(1, SCALE_BITS), (n, 1)]

    def encode(self, values: FloatArray, rng: np.random.Generator) -> Sequence[Codes]:
        return [_scale(float(np.abs(values).mean()) if len(values) else 0.0), (values >= 0).astype(np.uint64)]

    def decode(self, parts: Sequence[Codes], n: int) -> FloatArray:
        return _scale_of(parts[0]) * (2.0 * parts[1].astype(np.float64) - 1.0)


class Top(BaseEncoding):
    """The numbers of largest absolute value, exact, with their places; the others become 0."""

    kind: Literal["top"]
    sums: ClassVar[bool] = True
    keep: int = Field(ge=1)
    """How many are sent, in 64 bits and ceil(log2 n) for the place of each of n."""

    def widths(self, n: int) -> Sequence[tuple[int, int]]:
        return [(min(self.keep, n), 64), (min(self.keep, n), index_bits(n))]

    def encode(self, values: FloatArray, rng: np.random.Generator) -> Sequence[Codes]:
        places = np.sort(np.argsort(-np.abs(values), kind="stable")[: self.keep])
        return [values[places].view(np.uint64), places.astype(np.uint64)]

    def decode(self, parts: Sequence[Codes], n: int) -> FloatArray:
        values = np.zeros(n)
        values[parts[1].astype(np.intp)] = parts[0].view(np.float64)
        return values


class _Wrapping(BaseEncoding):
    """Encodes something else than the numbers themselves, by another encoding."""

    sums: ClassVar[bool] = True
    remembers: ClassVar[bool] = True
    of: AnyEncoding
    """The encoding of what is sent."""

    @model_validator(mode="after")
    def _adds_once(self) -> _Wrapping:
        if self.of.remembers and ErrorFeedback in (type(self), type(self.of)):
            raise ValueError(
                "error_feedback goes with no delta and no other error_feedback, since what was left out would be added "
                "again and again; leave one of them out"
            )
        return self

    @property
    def acknowledged(self) -> bool:
        return self.of.acknowledged

    def widths(self, n: int) -> Sequence[tuple[int, int]]:
        return self.of.widths(n)

    def encode(self, values: FloatArray, rng: np.random.Generator) -> Sequence[Codes]:
        return self.of.encode(values, rng)

    def decode(self, parts: Sequence[Codes], n: int) -> FloatArray:
        return self.of.decode(parts, n)


class Delta(_Wrapping):
    """The difference to what the same link carried last in this field, as far as its receiver has acknowledged it.

    Both ends know that as it was decoded. Where there is none of the same size, it counts as zero.
    """

    kind: Literal["delta"]

    @property
    def acknowledged(self) -> bool:
        return True

    def sender(self) -> Sender:
        return DeltaSender(self.of)


class ErrorFeedback(_Wrapping):
    """Adds to the numbers what was lost of earlier ones of the link, and keeps what is lost of them now (Karimireddy et
    al. 2019); the difference is kept by the sender."""

    kind: Literal["error_feedback"]

    def sender(self) -> Sender:
        return FeedbackSender(self.of)


ENCODINGS: Kinds[type[BaseEncoding]] = Kinds.of(
    "encodings", BaseEncoding, (Float64, Float32, Float16, BFloat16, Stochastic, Sign, Top, Delta, ErrorFeedback)
)


_Word = Literal["float64", "float32", "float16", "bfloat16", "sign"]
AnyEncoding = Annotated[
    Annotated[BaseEncoding, ENCODINGS.field()],
    BeforeValidator(word_is_kind, json_schema_input_type=_Word | Annotated[BaseEncoding, ENCODINGS.field()]),
]


def index_bits(n: int) -> int:
    """Bits that tell n things apart: ceil(log2 n)."""
    return max(0, n - 1).bit_length()
