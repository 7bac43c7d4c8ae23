"""How several test processes share the tests (pytest-xdist)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdist.scheduler import LoadScopeScheduling


class Spread(LoadScopeScheduling):
    """Units of tests, each for one process, in the order of the tests.

    Groups of pytest-xdist 3.8 (``xdist_group``) have no effect under pytest 9.2, which does not read names they set.

    Args:
        config: of pytest.
        log: where xdist notes what it does.
        unit: the unit of a test's name; tests of one unit run in one process, which makes their fixtures once.
    """

    def __init__(self, config: Any, log: Any, unit: Callable[[str], str]) -> None:
        super().__init__(config, log)
        self._unit = unit

    def _split_scope(self, nodeid: str) -> str:
        return self._unit(nodeid)
