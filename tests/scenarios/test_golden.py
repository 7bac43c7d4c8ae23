"""The communication counts of every quick scenario stay what they are."""

from __future__ import annotations

import pytest

from tests import golden
from tests.data_files import data_file


@pytest.mark.parametrize("name", golden.scenarios())
def test_counts_are_those_on_file(name: str) -> None:
    needed = golden.data_file(name)
    if needed is not None:
        data_file(needed)
    assert golden.counts(name) == golden.lock().counts[name]


def test_every_quick_scenario_is_on_file_and_nothing_else() -> None:
    assert sorted(golden.lock().counts) == sorted(golden.scenarios())
