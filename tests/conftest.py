"""What holds for the whole suite: its order, and that nothing in it depends on how busy the machine is."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

TESTS = Path(__file__).parent
CHEAP_TO_DEAR = (
    "house",
    "maths",
    "problems",
    "core",
    "oracles",
    "agents",
    "server",
    "conformance",
    "experiments",
    "reference",
    "live",
    "cli",
    "api",
    "ui",
    "attacks",
    "mutants",
    "scenarios",
    "docs",
    "packaging",
)
"""The folders of tests in the order in which they run: a mistake shows as early as it can."""
ONE_BY_ONE = ("scenarios", "docs")  # their tests share nothing, and take long

settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


def pytest_configure(config: pytest.Config) -> None:
    """Let Ctrl-C work, in the programs that tests start too: a shell's background jobs inherit that it is ignored."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Cheap tests first; of several processes, one gets all tests of a module, and makes its fixtures once."""
    places = {item: item.path.relative_to(TESTS) for item in items if item.path.is_relative_to(TESTS)}
    ranks = {folder: rank for rank, folder in enumerate(CHEAP_TO_DEAR)}
    items.sort(key=lambda item: ranks[places[item].parts[0]] if item in places else len(ranks))
    for item, place in places.items():
        if place.parts[0] not in ONE_BY_ONE:
            item.add_marker(pytest.mark.xdist_group(place.as_posix()))
