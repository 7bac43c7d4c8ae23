"""Which modules are mutated, and by which tests a mutant of each should be noticed, the quickest first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
WHOLE = ("simulator/core", "agents", "server")

_NETWORK = (
    "tests/core/network/test_mechanisms.py",
    "tests/core/audit/test_planted.py",
    "tests/core/checks",
    "tests/core/network/test_network_runs.py",
    "tests/core/network/test_unicast.py",
    "tests/core/hosts/test_faults.py",
    "tests/core/network/test_local.py",
)
_ASYNC = (
    "tests/agents/test_mechanisms.py",
    "tests/server",
    "tests/agents/test_async_variants.py",
    "tests/agents/test_equivalence.py",
)
_CORE = ("tests/core", "tests/agents/test_equivalence.py")
_AGENTS = ("tests/agents", "tests/server")
TESTS: dict[str, tuple[str, ...]] = {
    "agents/async_kernel_ucb.py": _ASYNC,
    "server/async_kernel_ucb.py": _ASYNC,
    "simulator/core/audit/ledger.py": _NETWORK,
    "simulator/core/network": _NETWORK,
    "simulator/core": _CORE,
    "agents": _AGENTS,
    "server": _AGENTS,
}
"""By module or folder; the longest path that holds a module counts."""
_WORDS = "async or mechanisms or statistics"
KEYWORDS = {"agents/async_kernel_ucb.py": _WORDS, "server/async_kernel_ucb.py": _WORDS}
"""Of these tests, those with one of the words in their module, name or parameters alone."""


def modules(names: tuple[str, ...] = WHOLE) -> Iterator[str]:
    """The modules in these folders and files, in order."""
    for name in names:
        place = ROOT / name
        files = sorted(place.rglob("*.py")) if place.is_dir() else [place]
        yield from (str(file.relative_to(ROOT)) for file in files if file.name != "__init__.py")


def tests_of(module: str) -> tuple[str, ...]:
    """The tests that a mutant of a module has to pass to survive."""
    return TESTS[max((place for place in TESTS if module.startswith(place)), key=len)]
