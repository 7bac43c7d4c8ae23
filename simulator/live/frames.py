"""Frames: a length of four bytes, then so many bytes."""

from __future__ import annotations

import asyncio
import struct

from coband.simulator.live.codec import WireError

LENGTH = struct.Struct(">I")
GREETING = 1 << 16
"""Bytes of the largest frame before the other end has shown its token."""
LARGEST = 1 << 26
"""Bytes of the largest frame after that, unless the user says otherwise."""


def framed(body: bytes) -> bytes:
    """A body with its length before it."""
    return LENGTH.pack(len(body)) + body


async def read(reader: asyncio.StreamReader, largest: int) -> bytes:
    """The body of the next frame.

    Raises:
        WireError: it is longer than ``largest`` bytes; nothing of it is read.
        asyncio.IncompleteReadError: the connection has ended.
    """
    (length,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
    if length > largest:
        raise WireError(f"a frame of {length} bytes, where {largest} are allowed")
    return await reader.readexactly(length)
