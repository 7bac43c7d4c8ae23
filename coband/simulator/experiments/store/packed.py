"""A finished job as bytes: what a worker sends back, and what a done-file holds."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
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
    """

    record: Record
    tables: Mapping[str, Rows]


def packed(record: Record, tables: Mapping[str, Rows]) -> bytes:
    """The content of a done-file: JSON, compressed by gzip; the rows come without the number of the job."""
    rows = {table: [row[1:] for row in rows] for table, rows in tables.items()}
    content = {"record": record, "tables": rows}
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
        return CachedResult(record, rows)
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
