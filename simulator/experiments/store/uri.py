"""The URI of a database file: SQLite takes one for any name, where Python's plain names must be valid text."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote_from_bytes

LONGEST = 480
"""Bytes of the longest path of a run directory: SQLite takes 512, with its own endings for journals."""


def address(file: Path, mode: str = "ro") -> str:
    """The URI of a database file.

    Args:
        file: its name, in any bytes that the file system allows.
        mode: "ro", "rw" or "rwc" (which makes the file), as in SQLite's documentation.
    """
    return f"file:{quote_from_bytes(bytes(file.absolute()))}?mode={mode}"


def is_too_long(path: Path) -> bool:
    """Whether SQLite cannot open stores in a directory, because its path is too long."""
    return len(bytes(path.absolute())) > LONGEST
