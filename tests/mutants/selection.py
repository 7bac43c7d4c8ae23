"""Which modules are mutated, and which tests should notice it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
WHOLE = ("simulator/core", "agents", "server")
SAMPLED = tuple(f"simulator/{name}" for name in ("maths", "problems", "experiments", "analysis", "live", "ui"))
"""Packages of which a sample is tested, by ``--sample``."""

TESTS = ("tests/core", "tests/agents", "tests/server", "tests/conformance", "tests/oracles")
"""Folders of the tests that a mutant has to pass to survive, as far as they run the statement that it changes."""
FURTHER = ("tests/cli", "tests/api")
"""Those that a mutant of a sampled package has to pass besides, with the packages' own."""

DECLARED = ("tests/agents/test_parameters.py", "tests/agents/test_declarations.py")
"""Tests of what modules declare, which run at import: they look at it without running a statement of the module."""


def modules(names: Sequence[str] = WHOLE) -> Iterator[str]:
    """The modules in these folders and files, in order."""
    for name in names:
        place = ROOT / name
        files = sorted(place.rglob("*.py")) if place.is_dir() else [place]
        yield from (str(file.relative_to(ROOT)) for file in files if file.name != "__init__.py")


def package(module: str) -> str:
    """What a module is a part of, of which a sample is taken."""
    return next((name for name in (*WHOLE, *SAMPLED) if Path(module).is_relative_to(name)), module)


def nearby(module: str) -> str:
    """The folder of a module's own tests: that of its folder, or of the nearest one around it that has tests."""
    parts = Path(module).parent.parts
    place = Path("tests", *(parts[1:] if parts[:1] == ("simulator",) else parts))
    while not (ROOT / place).is_dir():
        place = place.parent
    return str(place)


def is_nearby(test: str, module: str) -> bool:
    """Whether a test, or a file of tests, is one of a module's own."""
    return Path(test.split("::")[0]).is_relative_to(nearby(module))


def files_with_tests(modules: Sequence[str] = (), own: bool = False) -> list[str]:
    """The files with tests that should notice changes of modules, their own first; ``own``: those of their folders."""
    if own:
        folders = [nearby(module) for module in modules]
    else:
        sampled = [name for name in dict.fromkeys(map(package, modules)) if name in SAMPLED]
        folders = [*(nearby(f"{name}/any.py") for name in sampled), *TESTS, *(FURTHER if sampled else ())]
    found = [file for name in folders for file in sorted((ROOT / name).rglob("test_*.py"))]
    return [str(file.relative_to(ROOT)) for file in dict.fromkeys(found)]
