"""Finished jobs on disk: one file each, named after its address, so that nothing runs twice and nothing gets lost."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from coband.simulator.experiments.store.directory import replace_bytes
from coband.simulator.experiments.store.packed import CachedResult, decompressed, unpacked


class ResultCache:
    """The done-files of a sweep, and the traces beside them.

    Args:
        directory: where they are; made when the first one is written.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def file(self, address: str, level: str = "") -> Path:
        """Where the job with this address is, or would be; with a level, where its trace is."""
        return self._directory / address[:2] / f"{address}.{f'{level}.sqlite' if level else 'json'}.gz"

    def get(self, address: str) -> CachedResult | None:
        """A finished job; None when it is not there, or was cut off by a power failure."""
        with suppress(FileNotFoundError, ValueError):
            return unpacked(self.file(address).read_bytes())
        return None

    def trace(self, address: str, level: str) -> bytes | None:
        """The file in which a finished job recorded itself, if it is there and whole."""
        with suppress(FileNotFoundError, ValueError):
            return decompressed(self.file(address, level).read_bytes())
        return None

    def put(self, address: str, content: bytes, level: str = "") -> None:
        """Keep a finished job, or with a level its trace, whole or not at all.

        Raises:
            OSError: there is no room, or no permission.
        """
        file = self.file(address, level)
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_bytes(file, content)
