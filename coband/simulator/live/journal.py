"""What a machine was given, on disk: enough to make it again after its process was killed."""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from coband.simulator.core.nodes.node import UnsupportedScenario
from coband.simulator.live.codec import WireError, pack, unpack
from coband.simulator.live.config import LiveError

HEAD = struct.Struct(">dI")


class JournalHeld(LiveError, UnsupportedScenario):
    """Another process writes a journal; a run that needs it is refused before anything of it is there."""


class Journal:
    """Appends to a file, which the operating system keeps when the process is killed.

    Each entry is (time, frame): a frame that the machine was given at that time, or, if empty, that its next event ran.
    The first entry holds what the process was told when it joined.

    Args:
        file: where; entries of an earlier process stay.

    Raises:
        JournalHeld: another process writes it.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        for_its_owner = partial(os.open, mode=0o600)
        self._stream = open(file, "ab", buffering=0, opener=for_its_owner)  # noqa: SIM115, closed by close
        self._lock = FileLock(f"{file}.lock")
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            self._stream.close()
            raise JournalHeld(
                f"{file} is the journal of a process that runs; wait for its end, or give another --journal"
            ) from None

    @property
    def begun(self) -> bool:
        return self._file.stat().st_size > 0

    def begin(self, facts: Any) -> None:
        self.write(0.0, pack(facts))

    def write(self, now: float, frame: bytes = b"") -> None:
        """Append an entry, whole or not at all, before it is acted upon; none after `close`.

        Raises:
            LiveError: there is no room, or the disk has gone.
        """
        if self._stream.closed:
            return
        entry = HEAD.pack(now, len(frame)) + frame
        try:
            written = self._stream.write(entry)
            if written < len(entry):
                os.truncate(self._file, self._file.stat().st_size - written)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            raise LiveError(f"{self._file} cannot be written: {error.strerror}; what is in it is kept") from error

    def read(self) -> tuple[Any, Iterator[tuple[float, bytes]]]:
        """What was told, None if the file is empty, and all other entries.

        An entry that was being written when the process was killed is cut off: nothing was done about it.

        Raises:
            LiveError: the file is no journal.
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
        told = self._first(content, entries[0][1] if entries else None)
        os.truncate(self._file, end)
        return told, iter(entries[1:])

    def _first(self, content: bytes, entry: bytes | None) -> Any:
        """The first entry, which is of time 0; None without one."""
        try:
            if any(content[:8]):
                raise WireError("another time")
            return None if entry is None else unpack(entry)
        except WireError:
            raise LiveError(f"{self._file} is no journal of this version of coband; give another --journal") from None

    def close(self) -> None:
        self._stream.close()
        self._lock.release()
