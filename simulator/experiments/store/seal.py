"""Checksums of the pages of a finished store: the last eight bytes of each page, which SQLite leaves alone.

SQLite keeps as many bytes at the end of each page free as byte 20 of the file says. A sealed page holds a CRC-32 there,
over its number and the rest of its content, and the file's change counter. SQLite increases that counter with every
write, so that a store changed by SQL can be told from a damaged one.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

PAGE_SIZE = 16384  # fewer, larger pages: bulk copies take half the time that they take with SQLite's default
RESERVED = 8
MAGIC = b"SQLite format 3\0"
_SEAL = struct.Struct("<II")
_COUNTER, _PAGES, _VALID_FOR = 24, 28, 92
"""Offsets in page 1 of the change counter, the number of pages, and the counter at which that number was right."""
_FIXED = struct.pack(">HBBBBBB", PAGE_SIZE, 1, 1, RESERVED, 64, 32, 32)
"""Bytes 16 to 23 of a sealed file: size of pages, the rollback journal, reserved bytes, and constants."""


@dataclass(frozen=True)
class SealCheck:
    """What the checksums of a file say.

    Attributes:
        state: "open" (not sealed: the run goes on, was killed, or an older coband wrote it), "whole", "changed" (by
            SQL, after the end of the run) or "damaged".
        where: the damaged pages in words; empty unless damaged.
    """

    state: str
    where: str = ""


def create(file: Path) -> None:
    """Write an empty database whose pages have room for checksums.

    Raises:
        OSError: it cannot be written, or is there already.
    """
    page = bytearray(PAGE_SIZE)
    page[:24] = MAGIC + _FIXED
    page[_PAGES : _PAGES + 4] = struct.pack(">I", 1)
    page[100] = 13  # a leaf of a table, without cells
    page[105:107] = struct.pack(">H", PAGE_SIZE - RESERVED)  # where cells begin: at the end
    with file.open("xb") as stream:
        stream.write(page)


def seal(file: Path) -> None:
    """Write the checksum of each page, from the last to the first, which makes the store a sealed one.

    Args:
        file: a store made by :func:`create`, in one file, which nobody has open.

    Raises:
        OSError: it cannot be written.
    """
    with file.open("r+b") as stream:
        counter = _number(stream.read(100), _COUNTER)
        for number in range(os.fstat(stream.fileno()).st_size // PAGE_SIZE, 0, -1):
            stream.seek((number - 1) * PAGE_SIZE)
            page = stream.read(PAGE_SIZE)
            stream.seek(number * PAGE_SIZE - RESERVED)
            stream.write(_seal_of(number, page, counter))


def check(file: Path) -> SealCheck:
    """Compare all pages with their checksums.

    Raises:
        OSError: it cannot be read.
    """
    with file.open("rb") as stream:
        head = stream.read(PAGE_SIZE)
        states = [_state(number, page) for number, page in _pages(stream)]
    sealed = next((index for index, state in enumerate(states) if state == "whole"), None)
    sound = head[:24] == _expected(head)
    if sealed is None and (not sound or head[-RESERVED:] == bytes(RESERVED)):
        return SealCheck("damaged", "its end") if sound and len(head) < PAGE_SIZE else SealCheck("open")
    if sound and set(states[:sealed]) == {"bare"} and set(states[sealed:]) == {"whole"}:
        return SealCheck("open")  # its driver was killed while it sealed the pages, from the last to the first
    counter, sealed_at = _number(head, _COUNTER), _SEAL.unpack(head[-RESERVED:])[1]
    if sound and counter == _number(head, _VALID_FOR) and counter > sealed_at:
        return SealCheck("changed")
    pages = _number(head, _PAGES) if states[0] == "whole" else len(states)
    if set(states) == {"whole"} and pages == len(states):
        return SealCheck("whole")
    return SealCheck("damaged", _where(states, pages))


def _expected(head: bytes) -> bytes:
    """How a store begins; the two versions are 2 while the write-ahead log is in use."""
    found = bytearray(MAGIC + _FIXED)
    if head[18:20] == b"\2\2":
        found[18:20] = b"\2\2"
    return bytes(found)


def _pages(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    stream.seek(0)
    number = 1
    while page := stream.read(PAGE_SIZE):
        yield number, page
        number += 1


def _state(number: int, page: bytes) -> str:
    """ "whole", "bare" (without a checksum) or "damaged"."""
    if len(page) < PAGE_SIZE:
        return "damaged"
    kept = page[-RESERVED:]
    if kept == bytes(RESERVED):
        return "bare"
    return "whole" if kept == _seal_of(number, page, _SEAL.unpack(kept)[1]) else "damaged"


def _seal_of(number: int, page: bytes, counter: int) -> bytes:
    start = zlib.crc32(struct.pack("<II", number, counter))
    return _SEAL.pack(zlib.crc32(memoryview(page)[:-RESERVED], start), counter)


def _number(page: bytes, offset: int) -> int:
    return int.from_bytes(page[offset : offset + 4], "big")


def _where(states: list[str], pages: int) -> str:
    """The damaged pages in words, such as "pages 2, 5-7 of 12"."""
    bad = [number for number, state in enumerate(states, 1) if state != "whole"]
    bad += range(len(states) + 1, pages + 1)
    if not bad:
        return f"its end, after page {pages}"
    runs: list[list[int]] = []
    for number in bad:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    words = [str(first) if first == last else f"{first}-{last}" for first, last in runs]
    shown = ", ".join(words[:8]) + (", ..." if len(words) > 8 else "")
    return f"page{'s' * (len(bad) > 1)} {shown} of {max(pages, len(states))}"
