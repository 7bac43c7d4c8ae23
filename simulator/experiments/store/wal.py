"""Checks a write-ahead log, which SQLite reads up to the first frame that is not whole, without an error."""

from __future__ import annotations

import struct
from pathlib import Path

HEADER, FRAME = 32, 24
"""Bytes of the log's header, and of that of each frame, which is a page of the file."""
MASK = 0xFFFFFFFF


def damage(file: Path) -> str | None:
    """Where the log beside a database file is damaged, in words; None if it is whole, or if there is none.

    Frames of an earlier use of the log, and a last frame that was being written when its process was killed, are no
    damage.

    Raises:
        OSError: it cannot be read.
    """
    log = file.with_name(f"{file.name}-wal")
    content = log.read_bytes() if log.is_file() else b""
    if len(content) <= HEADER:
        return None
    big = content[3] & 1
    size, salts, sums = int.from_bytes(content[8:12], "big"), content[16:24], _sums(content[:24], (0, 0), bool(big))
    if struct.pack(">II", *sums) != content[24:32] or size < 512:
        return "the header of its write-ahead log"
    step = FRAME + size
    starts = range(HEADER, len(content) - step + 1, step)
    ours = [content[start + 8 : start + 16] == salts for start in starts]
    for number, start in enumerate(starts):
        head, page = content[start : start + FRAME], content[start + FRAME : start + step]
        sums = _sums(page, _sums(head[:8], sums, bool(big)), bool(big))
        if not ours[number] or struct.pack(">II", *sums) != head[16:24]:
            return f"frame {number + 1} of its write-ahead log" if any(ours[number:]) else None
    return None


def _sums(content: bytes, start: tuple[int, int], big: bool) -> tuple[int, int]:
    """SQLite's checksum of some bytes, continued from ``start``."""
    first, second = start
    for one, two in struct.iter_unpack(">II" if big else "<II", content):
        first = (first + one + second) & MASK
        second = (second + two + first) & MASK
    return first, second
