"""Which versions of libraries a test has."""

from __future__ import annotations

from importlib.metadata import version


def at_least(library: str, wanted: str) -> bool:
    """Whether an installed library has this version or a later one, compared number by number."""
    here, there = ([int(part) for part in one.split(".") if part.isdecimal()] for one in (version(library), wanted))
    return here >= there
