"""Where random streams stand: in a large fleet most of them wait, and a generator that waits takes 700 bytes."""

from __future__ import annotations

import numpy as np

WORD, WHOLE = 32, 128
"""Bits of a word that is left over, and of a state or an increment."""


def position(rng: np.random.Generator) -> int:
    """Where a PCG64 stream stands, in one number of 64 bytes."""
    now = rng.bit_generator.state
    found, left = now["state"], now["has_uint32"] << WORD | now["uinteger"]
    at: int = (left << WHOLE | found["state"]) << WHOLE | found["inc"]
    return at


class GoingOn:
    """One generator that goes on where any of many streams stands.

    Args:
        rng: the generator, whose own state is lost.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def at(self, position: int) -> np.random.Generator:
        """The generator at a position, until it is asked for at another one."""
        whole = (1 << WHOLE) - 1
        state, left = position >> WHOLE & whole, position >> 2 * WHOLE
        self._rng.bit_generator.state = {
            "bit_generator": "PCG64",
            "state": {"state": state, "inc": position & whole},
            "has_uint32": left >> WORD,
            "uinteger": left & (1 << WORD) - 1,
        }
        return self._rng
