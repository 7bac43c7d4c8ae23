"""A finished job as bytes: what a worker sends back, and what a done-file holds."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import methodcaller
from typing import Any

from coband.simulator.experiments.runs.results import Record
from coband.simulator.experiments.store import schema

Rows = list[tuple[Any, ...]]
LEVEL = 3
"""Of compression."""


@dataclass(frozen=True)
class CachedResult:
    """What a finished job has given.

    Attributes:
        tables: rows of the store by table.
        read: file -> digest of its content, of those that the user's code has read.
        unknown: what that code did besides, so that nobody knows whether its results would be the same again.
    """

    record: Record
    tables: Mapping[str, Rows]
    read: Mapping[str, str] = field(default_factory=dict)
    unknown: str = ""


def packed(
    record: Record, tables: Mapping[str, Rows], read: Mapping[str, str] | None = None, unknown: str = ""
) -> bytes:
    """The content of a done-file: JSON, compressed by gzip; the rows come without the number of the job."""
    rows = {table: [row[1:] for row in rows] for table, rows in tables.items()}
    beside = {"read": dict(read or {}), "unknown": unknown} if read or unknown else {}
    content = {"record": record, "tables": rows, **beside}
    text = json.dumps(content, allow_nan=False, default=methodcaller("item")).encode()
    return compressed(text)


def unpacked(content: bytes) -> CachedResult:
    """The job in a done-file.

    Raises:
        ValueError: it is not whole, which gzip's checksum says.
    """
    try:
        found = json.loads(decompressed(content))
        record, rows = found["record"], found["tables"]
        if not isinstance(record, dict) or not set(rows) <= set(schema.OF_RESULTS):
            raise ValueError("not a done-file: no record, or other tables than those of a job")
        read, unknown = found.get("read", {}), found.get("unknown", "")
        if not isinstance(read, dict) or not isinstance(unknown, str):
            raise ValueError("not a done-file: what the job has read is of another form")
        return CachedResult(record, rows, read, unknown)
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a done-file: {error}") from error


def compressed(content: bytes) -> bytes:
    """The content, compressed by gzip; the same bytes for the same content."""
    return gzip.compress(content, compresslevel=LEVEL, mtime=0)


def decompressed(content: bytes) -> bytes:
    """What :func:`compressed` was given.

    Raises:
        ValueError: it is not whole.
    """
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"not a done-file: {error}") from error
