"""Tests of a module run in one process, but for those that share nothing and take long."""

from pathlib import Path

import pytest

pytest.importorskip("xdist", reason="several processes run tests with pytest-xdist: pip install -e '.[dev]'")

from tests.spread import ONE_BY_ONE, unit

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("name", "together"),
    [
        ("tests/house/test_spread.py::test_units[a::b]", "tests/house/test_spread.py"),
        ("tests/scenarios/test_golden.py::test_counts[x.yaml]", "tests/scenarios/test_golden.py::test_counts[x.yaml]"),
        ("tests/docs/test_pages.py::test_page[tutorial.md]", "tests/docs/test_pages.py::test_page[tutorial.md]"),
        ("tests/docs/test_web_pages.py::test_search", "tests/docs/test_web_pages.py"),
    ],
)
def test_units(name: str, together: str) -> None:
    assert unit(name) == together


def test_what_runs_one_by_one_is_there() -> None:
    assert [place for place in ONE_BY_ONE if not (ROOT / place).exists()] == []
