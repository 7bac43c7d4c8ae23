"""Frames as bytes, and bytes as frames: a length of four bytes, then (kind, fields ...), checked against the schema.

In a session it is (``NUMBERED``, number, kind, fields ...). Other frames are about the connection.

A session is what a hub and a station say to each other after the greeting; its frames are numbered, so that each end
knows whether the other has handled all of them.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from asyncio import StreamWriter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from coband.extensions.live import schema
from coband.extensions.live.codec import WireError, pack, unpack
from coband.extensions.live.schema import Frame, Kinds

LENGTH = struct.Struct(">I")
NUMBERED = "f"
GREETING = 1 << 16
"""Bytes of the largest frame of a station that is not admitted yet."""
LARGEST = 1 << 26
"""Bytes of the largest frame after that, unless the user says otherwise."""
SILENT = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 4, "TCP_USER_TIMEOUT": 30_000}
"""After 30 s in which the other end's machine has confirmed nothing, a connection has ended; where the system can."""
STRICT = ConfigDict(strict=True, allow_inf_nan=False)


def framed(body: bytes) -> bytes:
    """A body with its length before it."""
    return LENGTH.pack(len(body)) + body


def watch(writer: asyncio.StreamWriter) -> None:
    """Have a connection end when the other machine is gone without a word."""
    connection = writer.get_extra_info("socket")
    with suppress(OSError):  # it has ended already
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in SILENT.items():
            if hasattr(socket, name):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


async def read(reader: asyncio.StreamReader, largest: int) -> bytes:
    """The body of the next frame.

    Raises:
        WireError: it is longer than ``largest`` bytes; nothing of it is read.
        asyncio.IncompleteReadError, ConnectionError: the connection has ended.
    """
    (length,) = LENGTH.unpack(await _exactly(reader, LENGTH.size))
    if length > largest:
        more = "; `coband live run --max-frame MIB` allows larger ones" if largest > GREETING else ""
        raise WireError(f"a frame of {length} bytes, where {largest} are allowed{more}")
    return await _exactly(reader, length)


async def _exactly(reader: asyncio.StreamReader, size: int) -> bytes:
    try:
        return await reader.readexactly(size)
    except OSError as error:  # such as that there is no way to the other machine any more
        raise ConnectionError(error.errno, error.strerror) from error


def kind_of(kind: type[Frame]) -> str:
    """How a kind of frames is called."""
    return kind.__name__.lower()


def named(frame: Frame | str) -> str:
    """A frame, or what a kind is called, with its article."""
    kind = frame if isinstance(frame, str) else kind_of(type(frame))
    return kind if kind == "rows" else f"{'an' if kind[0] in 'ao' else 'a'} {kind}"


def parts(frame: Frame) -> tuple[Any, ...]:
    """A frame as it is packed: its kind and its fields."""
    return kind_of(type(frame)), *frame


def written(frame: Frame, number: int = 0) -> bytes:
    """A frame as it goes over the wire; ``number``: in its session, 0 outside of it."""
    return framed(pack((NUMBERED, number, *parts(frame)) if number else parts(frame)))


class Reader:
    """Reads the frames that one end may send.

    Args:
        plain: kinds outside of sessions.
        numbered: kinds of sessions.
    """

    def __init__(self, plain: Kinds, numbered: Kinds) -> None:
        self._plain, self._numbered = _checks(plain), _checks(numbered)

    def read(self, raw: bytes) -> tuple[int, Frame]:
        """(number, frame) of a body; the number is 0 outside of sessions.

        Raises:
            WireError: it is not such a frame; the text says why.
        """
        value = unpack(raw)
        if not isinstance(value, tuple) or not value:
            raise WireError("a frame that is not a list")
        if value[0] != NUMBERED:
            return 0, _checked(self._plain, value)
        if len(value) < 3 or type(value[1]) is not int or value[1] < 1:
            raise WireError("a frame of a session without its number and kind")
        return value[1], _checked(self._numbered, value[2:])

    def frame(self, value: Any) -> Frame:
        """A frame of its ``parts``.

        Raises:
            WireError: they are none.
        """
        if not isinstance(value, tuple) or not value:
            raise WireError("a frame that is not a list")
        return _checked(self._plain | self._numbered, value)


Checks = dict[str, tuple[type[Frame], Callable[[Any], Frame]]]
"""For each kind what makes a frame of fields, or raises a ValidationError."""


def _checks(kinds: Kinds) -> Checks:
    return {kind_of(kind): (kind, TypeAdapter(kind, config=STRICT).validator.validate_python) for kind in kinds}


def _checked(checks: Checks, value: tuple[Any, ...]) -> Frame:
    name, fields = value[0], value[1:]
    if not isinstance(name, str) or name not in checks:
        shown = repr(name[:20]) if isinstance(name, str) else f"of type {type(name).__name__}"
        raise WireError(f"a frame {shown}, which there is not")
    kind, check = checks[name]
    if len(fields) != len(kind._fields):
        raise WireError(f"{named(name)} with {len(fields)} fields instead of {len(kind._fields)}")
    try:
        return check(fields)
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_input=False, include_context=False)[0]
    field, *deeper = wrong["loc"]
    place = ".".join(map(str, [kind._fields[field] if isinstance(field, int) else field, *deeper]))
    raise WireError(f"{named(name)} whose {place:.80} is wrong: {wrong['msg'].lower():.200}")


FROM_STATION, FROM_HUB = Reader(*schema.FROM_STATION), Reader(*schema.FROM_HUB)


class Session:
    """One end of a session.

    Attributes:
        sent: frames sent so far.
        received: frames received so far.
    """

    def __init__(self, writer: StreamWriter) -> None:
        self.sent = self.received = 0
        self._writer = writer

    def post(self, frame: Frame) -> None:
        """Send a frame."""
        self.sent += 1
        self._write(written(frame, self.sent))

    def say(self, frame: Frame) -> None:
        """Send a frame about the connection."""
        self._write(written(frame))

    def _write(self, raw: bytes) -> None:
        if not self._writer.is_closing():
            self._writer.write(raw)

    def receive(self, number: int) -> None:
        """Count a frame that has come.

        Raises:
            WireError: it is not the one that is due.
        """
        if number != self.received + 1:
            raise WireError(f"frame {number} where frame {self.received + 1} was due")
        self.received = number

    def check(self, status: schema.Status) -> None:
        """Refuse a status that cannot be.

        Raises:
            WireError: why.
        """
        if status.handled > self.sent:
            raise WireError(f"{status.handled} frames received of {self.sent} sent")
        if status.sent != self.received:
            raise WireError(f"a status after {status.sent} frames, where {self.received} have come")
