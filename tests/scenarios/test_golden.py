"""The communication counts of every quick scenario stay what they are."""

import pytest

from tests import golden
from tests.data_files import data_file
from tests.every import every
from tests.everyday import slow
from tests.versions import at_least


def needs_its_data(name: str) -> None:
    """Skip the test where the data of a scenario are not here, or are decomposed by another library."""
    needed = golden.data_file(name)
    if any(f"/{ratings}_" in name for ratings in ("movielens", "yelp")) and not at_least("scipy", "1.17"):
        pytest.skip(
            "counts are those of the singular vectors of scipy 1.17, whose last bits are not those of ARPACK before"
        )
    if needed is not None:
        data_file(needed)


@every("name", [slow(name) if name in golden.SMALLER else name for name in golden.scenarios()])
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
