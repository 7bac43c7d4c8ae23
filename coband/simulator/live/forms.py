"""The form of a payload value: what a process has to know to make the value again of its numbers."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from coband.simulator.arrays import FloatArray
from coband.simulator.core.nodes.message import unary_bits
from coband.simulator.live.codec import DTYPES, LARGEST_RANK, WireError
from coband.simulator.maths.linalg.gram import Downdate, Gram

NOTHING, UNARY = "n", "u"
EXACT_BITS = 64
"""Of a number that is sent as it is."""
GRAMS: dict[str, type[Gram]] = {"G": Gram, "D": Downdate}
ARRAYS = {kind + order for kind in DTYPES for order in "CF"}
LARGEST = 1 << 24
"""Numbers of the largest array: an encoding may leave most of them out, so that few bytes could claim many."""


class Form(NamedTuple):
    """The form of one value.

    Attributes:
        code: n for None; u for whole numbers in a unary code; f, i or b for a number; these with C or F, the order in
            memory, for an array; G or D for a sum of squares or what is left of one.
        shape: of an array or a matrix; of a unary code, how many numbers and how many bits.
    """

    code: str
    shape: tuple[int, ...] = ()

    @classmethod
    def of(cls, value: Any, unary: bool = False) -> Form:
        """The form of a value that messages may have."""
        if value is None:
            return cls(NOTHING)
        if unary:
            return cls(UNARY, (len(value), unary_bits(value)))
        if isinstance(value, Gram):
            return cls("D" if value.sign < 0 else "G", value.shape)
        kind = np.asarray(value).dtype.kind.replace("u", "i")
        if not isinstance(value, np.ndarray):
            return cls(kind)
        flipped = value.ndim > 1 and value.flags.f_contiguous and not value.flags.c_contiguous
        return cls(kind + "CF"[flipped], value.shape)

    @classmethod
    def read(cls, given: Any) -> Form:
        """A form that another process has sent.

        Raises:
            WireError: it is none.
        """
        if isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str) and isinstance(given[1], tuple):
            form = cls(*given)
            sizes = all(isinstance(size, int) and 0 <= size <= LARGEST for size in form.shape)
            if sizes and len(form.shape) <= LARGEST_RANK and math.prod(form.shape) <= LARGEST and form._fits:
                return form
        raise WireError(f"a value of unknown form {given!r:.60}")

    @property
    def _fits(self) -> bool:
        """Whether the shape is one of the code."""
        if self.code in GRAMS:
            return len(self.shape) == 2 and self.shape[0] == self.shape[1]
        if self.code == UNARY:
            return len(self.shape) == 2
        return self.code in ARRAYS or ((self.code == NOTHING or self.code in DTYPES) and not self.shape)

    def made(self, entries: Any) -> Any:
        """The value that has these entries: an array of the shape."""
        if self.code in GRAMS:
            return GRAMS[self.code](np.empty((0, len(entries))), entries)
        if self.code in DTYPES:
            return entries.item()
        entries.flags.writeable = False
        return entries

    def exactly(self, entries: FloatArray) -> Any:
        """The same of entries that are as they were sent, in the same order in memory."""
        ordered = np.asfortranarray(entries) if self.code.endswith("F") else entries
        return self.made(ordered.astype(DTYPES[self.code[0]], copy=False) if self.code not in GRAMS else ordered)
