"""The sending ends of links: what a delta or an error feedback needs to know of earlier messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from coband.simulator.arrays import FloatArray
from coband.simulator.core.wire.packing import Codes
from coband.simulator.scenario_errors import BrokenOff


class Coder(Protocol):
    """What encodes and decodes numbers (`core.wire.encodings.BaseEncoding`)."""

    def widths(self, n: int) -> Sequence[tuple[int, int]]:
        """(how many codes, bits of each) of every part of n numbers."""

    def encode(self, values: FloatArray, rng: np.random.Generator) -> Sequence[Codes]:
        """The parts of the numbers."""

    def decode(self, parts: Sequence[Codes], n: int) -> FloatArray:
        """The n numbers of parts."""

    def sender(self) -> Sender:
        """The sending end of a link."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """What is sent of a field, and what the receiver makes of it; ``reference``: the number of the message from which
    differences count, 0 for none."""

    parts: Sequence[Codes]
    decoded: FloatArray
    reference: int = 0


def _fits(codes: Codes, declared: tuple[int, int]) -> bool:
    """Whether a part has so many codes of so many bits."""
    count, width = declared
    return codes.dtype == np.uint64 and codes.shape == (count,) and all(code < 1 << width for code in codes.tolist())


class Sender:
    """The sending end of one field of one kind of message on one link; messages are numbered as they are sent."""

    _untried = True

    def __init__(self, encoding: Coder) -> None:
        self._encoding = encoding

    def encode(self, number: int, values: FloatArray, rng: np.random.Generator) -> Encoded:
        """Encode the numbers of a message."""
        parts, n = self._encoding.encode(values, rng), len(values)
        decoded = self._encoding.decode(parts, n)
        if self._untried:
            self._untried = False
            kind, widths = type(self._encoding).__name__, self._encoding.widths(n)
            if decoded.shape != (n,):
                raise BrokenOff(f"{kind}.decode returned numbers of shape {decoded.shape}, and was asked for {n}")
            if len(parts) != len(widths) or not all(map(_fits, parts, widths)):
                raise BrokenOff(
                    f"{kind}.encode returned no uint64 codes whose numbers and bits are {widths}, as widths says"
                )
        return Encoded(parts, decoded)

    def acknowledged(self, number: int) -> None:
        """The receiver has a message."""

    def lost(self, number: int) -> None:
        """The receiver will never have a message; its sender knows."""

    def repeated(self, number: int) -> None:
        """A message that was lost is sent once more, as it was."""

    def joined(self) -> None:
        """The next message has a receiver that none of the earlier ones went to."""


class DeltaSender(Sender):
    """Sends differences to the last message that was acknowledged."""

    def __init__(self, inner: Coder) -> None:
        self._inner = inner.sender()
        self._open: dict[int, FloatArray] = {}
        self._acknowledged: tuple[int, FloatArray] = 0, np.empty(0)

    def encode(self, number: int, values: FloatArray, rng: np.random.Generator) -> Encoded:
        reference, known = self._acknowledged
        if len(known) != len(values):
            reference, known = 0, np.zeros(len(values))
        found = self._inner.encode(number, values - known, rng)
        self._open[number] = found.decoded + known
        return Encoded(found.parts, self._open[number], reference)

    def acknowledged(self, number: int) -> None:
        self._inner.acknowledged(number)
        if number in self._open and number > self._acknowledged[0]:
            self._acknowledged = number, self._open[number]
            self._open = {other: values for other, values in self._open.items() if other > number}

    def lost(self, number: int) -> None:
        self._inner.lost(number)

    def repeated(self, number: int) -> None:
        self._inner.repeated(number)

    def joined(self) -> None:
        """A receiver without any reference gets a message that needs none."""
        self._inner.joined()
        self._open, self._acknowledged = {}, (0, np.empty(0))


class FeedbackSender(Sender):
    """Adds what earlier messages have left out."""

    def __init__(self, inner: Coder) -> None:
        self._inner = inner.sender()
        self._left_out = np.empty(0)
        self._excess: dict[int, FloatArray] = {}  # what the receiver has of a message beyond its numbers

    def encode(self, number: int, values: FloatArray, rng: np.random.Generator) -> Encoded:
        if len(self._left_out) != len(values):
            self._left_out = np.zeros(len(values))
        wanted = values + self._left_out
        found = self._inner.encode(number, wanted, rng)
        self._left_out, self._excess[number] = wanted - found.decoded, found.decoded - values
        return found

    def acknowledged(self, number: int) -> None:
        self._inner.acknowledged(number)
        self._excess.pop(number, None)

    def lost(self, number: int) -> None:
        self._inner.lost(number)
        self._add(number, 1.0)

    def repeated(self, number: int) -> None:
        self._inner.repeated(number)
        self._add(number, -1.0)

    def joined(self) -> None:
        self._inner.joined()

    def _add(self, number: int, sign: float) -> None:
        excess = self._excess.get(number)
        if excess is not None and len(excess) == len(self._left_out):
            self._left_out = self._left_out + sign * excess
