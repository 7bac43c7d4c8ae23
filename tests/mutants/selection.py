"""Which modules are mutated, and which tests should notice it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
WHOLE = ("simulator/core", "agents", "server")

TESTS = ("tests/core", "tests/agents", "tests/server", "tests/conformance", "tests/oracles")
"""Folders of the tests that a mutant has to pass to survive, as far as they run the statement that it changes."""

DECLARED = ("tests/agents/test_parameters.py", "tests/agents/test_declarations.py")
"""Tests of what modules declare, which run at import: they look at it without running a statement of the module."""


def modules(names: tuple[str, ...] = WHOLE) -> Iterator[str]:
    """The modules in these folders and files, in order."""
    for name in names:
        place = ROOT / name
        files = sorted(place.rglob("*.py")) if place.is_dir() else [place]
        yield from (str(file.relative_to(ROOT)) for file in files if file.name != "__init__.py")


def files_with_tests() -> list[str]:
    """The files with these tests, in order."""
    found = [file for name in TESTS for file in sorted((ROOT / name).rglob("test_*.py"))]
    return [str(file.relative_to(ROOT)) for file in found]
