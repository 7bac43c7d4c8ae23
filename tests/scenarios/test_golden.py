"""The communication counts of every quick scenario stay what they are."""

from __future__ import annotations

from tests import golden
from tests.data_files import data_file
from tests.every import every
from tests.everyday import slow


def needs_its_data(name: str) -> None:
    """Skip the test where the data of a scenario are not here."""
    needed = golden.data_file(name)
    if needed is not None:
        data_file(needed)


@every(
    "name",
    [slow(name) if name in golden.SMALLER else name for name in golden.scenarios()],
)
def test_counts_are_those_on_file(name: str) -> None:
    needs_its_data(name)
    assert golden.counts(name) == golden.lock().counts[name]


@every("name", golden.SMALLER)
def test_counts_at_smaller_sizes_are_those_on_file(name: str) -> None:
    needs_its_data(name)
    assert golden.counts(name, golden.SMALLER[name]) == golden.lock(golden.SMALL_FILE).counts[name]


def test_every_quick_scenario_is_on_file_and_nothing_else() -> None:
    assert sorted(golden.lock().counts) == sorted(golden.scenarios())
    assert sorted(golden.lock(golden.SMALL_FILE).counts) == sorted(golden.SMALLER)
