"""Which of many alike cases run every day: the whole suite stays within minutes, and ``make slow`` runs the others."""

from collections.abc import Iterable
from typing import Any

import pytest


def everyday(first: int, cases: Iterable[Any]) -> list[Any]:
    """All cases, as parameters of a test; those after the ``first`` are slow. A tuple holds several parameters."""
    return [case if place < first else slow(case) for place, case in enumerate(cases)]


def slow(case: Any) -> Any:
    """A case that ``make slow`` runs."""
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow)
