"""What a machine was given, on disk: enough to make it again after its process was killed."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HEAD = struct.Struct(">dI")


def _for_its_owner(file: str, flags: int) -> int:
    """Open a file that nobody else may read."""
    return os.open(file, flags, 0o600)


class Journal:
    """Appends to a file, which the operating system keeps when the process is killed.

    Each entry is (time, frame): a frame that the machine was given at that time, or, if empty, that its next event ran.
    The first entry holds what the process was told when it joined.

    Args:
        file: where; entries of an earlier process stay.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._stream = open(file, "ab", buffering=0, opener=_for_its_owner)  # noqa: SIM115, closed by close

    @property
    def begun(self) -> bool:
        """Whether there is a first entry."""
        return self._file.stat().st_size > 0

    def begin(self, facts: dict[str, Any]) -> None:
        """Write the first entry."""
        self.write(0.0, json.dumps(facts).encode())

    def write(self, now: float, frame: bytes = b"") -> None:
        """Append an entry before it is acted upon."""
        self._stream.write(HEAD.pack(now, len(frame)) + frame)

    def read(self) -> tuple[dict[str, Any] | None, Iterator[tuple[float, bytes]]]:
        """What was told, None if the file is empty, and all other entries.

        An entry that was being written when the process was killed is cut off: nothing was done about it.
        """
        content = self._file.read_bytes()
        entries, end = [], 0
        while len(content) >= end + HEAD.size:
            now, length = HEAD.unpack_from(content, end)
            if len(content) < end + HEAD.size + length:
                break
            end += HEAD.size
            entries.append((now, content[end : end + length]))
            end += length
        os.truncate(self._file, end)
        return (json.loads(entries[0][1]) if entries else None), iter(entries[1:])

    def close(self) -> None:
        """Let go of the file."""
        self._stream.close()
