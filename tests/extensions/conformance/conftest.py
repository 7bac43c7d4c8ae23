"""Algorithms that are registered for one test."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from coband.extensions.conformance import runs
from coband.simulator.core.algorithm import Algorithm
from coband.simulator.experiments.registry.registry import Registry


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Callable[[Algorithm], str]:
    """Makes an algorithm the only one, and returns the name by which it is known."""

    def put(algorithm: Algorithm) -> str:
        broken = replace(algorithm, name="broken")
        monkeypatch.setattr(runs, "registry", lambda: Registry({"broken": broken}, Registry.installed().problems))
        return broken.name

    return put
