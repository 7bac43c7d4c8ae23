"""Finished jobs on disk: one file each, named after its address, so that nothing runs twice and nothing gets lost."""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from operator import methodcaller
from pathlib import Path
from typing import Any

from coband.simulator.experiments.runs.results import Record

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class CachedResult:
    """What a finished job has given: its record, and rows of the store by table."""

    record: Record
    tables: Mapping[str, Rows]


def packed(record: Record, tables: Mapping[str, Rows]) -> bytes:
    """The content of a done-file: JSON, compressed by gzip; the rows come without the number of the job."""
    rows = {table: [row[1:] for row in rows] for table, rows in tables.items()}
    text = json.dumps({"record": record, "tables": rows}, allow_nan=False, default=methodcaller("item"))
    return gzip.compress(text.encode(), compresslevel=3, mtime=0)


def unpacked(content: bytes) -> CachedResult:
    """The job in a done-file.

    Raises:
        ValueError: it is not whole.
    """
    try:
        found = json.loads(gzip.decompress(content))
        return CachedResult(found["record"], found["tables"])
    except (OSError, EOFError, zlib.error, KeyError) as error:
        raise ValueError(f"not a done-file: {error}") from error


class ResultCache:
    """The done-files of a sweep.

    Args:
        directory: where they are; made when the first one is written.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def file(self, address: str) -> Path:
        """Where the job with this address is, or would be."""
        return self._directory / address[:2] / f"{address}.json.gz"

    def get(self, address: str) -> CachedResult | None:
        """A finished job; None when it is not there, or was cut off by a power failure."""
        try:
            return unpacked(self.file(address).read_bytes())
        except (FileNotFoundError, ValueError):
            return None

    def put(self, address: str, content: bytes) -> None:
        """Keep a finished job, whole or not at all.

        Raises:
            OSError: there is no room, or no permission.
        """
        file = self.file(address)
        draft = file.with_name(f".{file.name}.new")
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            draft.write_bytes(content)
            os.replace(draft, file)
        except OSError:
            draft.unlink(missing_ok=True)
            raise
