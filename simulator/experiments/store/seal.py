"""The seal of a finished store: a SHA-256 of its file, at the end of its first page, which SQLite leaves alone.

SQLite keeps as many bytes at the end of each page free as byte 20 of the file says. Those of the first page hold the
seal once the run has ended: the file's change counter, twice, and the SHA-256 of all other bytes. SQLite increases the
counter with every write, so that a store that was changed by SQL can be told from a damaged one.
"""

from __future__ import annotations

import hashlib
import struct
from io import BufferedRandom, BufferedReader
from pathlib import Path
from typing import Literal

State = Literal["open", "whole", "changed", "damaged"]
"""What a seal says: there is none (the run goes on, was killed, or an older coband wrote it), the file is what it was
when its run ended, it was changed by SQL since, or otherwise."""

PAGE_SIZE = 16384  # fewer, larger pages: bulk copies take half the time that they take with SQLite's default
MAGIC = b"SQLite format 3\0"
_SEAL = struct.Struct("<II32s")
"""The change counter, its complement, which tells a seal from anything else, and the SHA-256."""
RESERVED = _SEAL.size
_COUNTER, _PAGES, _VALID_FOR = 24, 28, 92
"""Offsets in page 1 of the change counter, the number of pages, and the counter at which that number was right."""
_FIXED = struct.pack(">HBBBBBB", PAGE_SIZE, 1, 1, RESERVED, 64, 32, 32)
"""Bytes 16 to 23 of a finished store: size of pages, the rollback journal, reserved bytes, and constants."""


def create(file: Path) -> None:
    """Write an empty database whose pages have room for a seal.

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
    """Seal a store.

    Args:
        file: a store made by :func:`create`, in one file, which nobody writes.

    Raises:
        OSError: it cannot be written.
    """
    with file.open("r+b") as stream:
        head = stream.read(PAGE_SIZE)
        counter = _number(head, _COUNTER)
        found = _SEAL.pack(counter, ~counter & 0xFFFFFFFF, _digest(head, stream))
        stream.seek(PAGE_SIZE - RESERVED)
        stream.write(found)


def check(file: Path, *, content: bool = True) -> State:
    """Compare a store with its seal.

    Args:
        content: compare the whole file, not only its change counter.

    Raises:
        OSError: it cannot be read.
    """
    with file.open("rb") as stream:
        head = stream.read(PAGE_SIZE)
        if len(head) < PAGE_SIZE:
            return "damaged" if head[:24] == MAGIC + _FIXED else "open"
        counter, complement, digest = _SEAL.unpack(head[-RESERVED:])
        if counter ^ complement != 0xFFFFFFFF:
            return "damaged" if head[:24] == MAGIC + _FIXED and any(head[-RESERVED:]) else "open"
        whole = not content or _digest(head, stream) == digest
    now, log = _number(head, _COUNTER), file.with_name(f"{file.name}-wal")
    if now > counter and now == _number(head, _VALID_FOR):
        return "changed"
    if whole and log.is_file() and log.stat().st_size:
        return "changed"  # SQLite reads what is in the log in the place of what is in the file
    return "whole" if whole else "damaged"


def _digest(head: bytes, stream: BufferedReader | BufferedRandom) -> bytes:
    """SHA-256 of the first page without its seal, and of what follows in the stream."""
    found = hashlib.sha256(memoryview(head)[:-RESERVED])
    return hashlib.file_digest(stream, lambda: found).digest()


def _number(page: bytes, offset: int) -> int:
    return int.from_bytes(page[offset : offset + 4], "big")
