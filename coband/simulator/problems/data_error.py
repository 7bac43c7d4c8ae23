"""The error about data that cannot be used."""

from __future__ import annotations

from pathlib import Path


class DataError(ValueError):
    """A dataset is unknown, missing or malformed; the text starts with the file and the line if they are known."""

    def __init__(self, message: str, path: Path | None = None, line: int | None = None) -> None:
        """Create the error.

        Args:
            message: what is wrong and what is expected.
            line: line number, counted from 1.
        """
        where = "" if path is None else f"{path}: " if line is None else f"{path}:{line}: "
        super().__init__(where + message)
        self.path = path
        self.line = line
