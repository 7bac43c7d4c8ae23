"""The communication counts of every quick scenario stay what they are: every day of those that cover all features."""

import pytest

from tests import golden
from tests.data_files import data_file
from tests.every import every
from tests.everyday import slow
from tests.versions import at_least

FEATURES = {name: golden.features(name) for name in golden.scenarios()}
EVERYDAY = golden.covering(FEATURES)


def needs_its_data(name: str) -> None:
    """Skip the test where the data of a scenario are not here, or are decomposed by another library."""
    needed = golden.data_file(name)
    if any(f"/{ratings}_" in name for ratings in ("movielens", "yelp")) and not at_least("scipy", "1.17"):
        pytest.skip(
            "counts are those of the singular vectors of scipy 1.17, whose last bits are not those of ARPACK before"
        )
    if needed is not None:
        data_file(needed)


@every("name", [name if name in EVERYDAY and name not in golden.SMALLER else slow(name) for name in FEATURES])
def test_counts_are_those_on_file(name: str) -> None:
    needs_its_data(name)
    assert golden.counts(name) == golden.lock().counts[name]


@every("name", [name if name in EVERYDAY else slow(name) for name in golden.SMALLER])
def test_counts_at_smaller_sizes_are_those_on_file(name: str) -> None:
    needs_its_data(name)
    assert golden.counts(name, golden.SMALLER[name]) == golden.lock(golden.SMALL_FILE).counts[name]


def test_every_quick_scenario_is_on_file_and_nothing_else() -> None:
    assert sorted(golden.lock().counts) == sorted(golden.scenarios())
    assert sorted(golden.lock(golden.SMALL_FILE).counts) == sorted(golden.SMALLER)


def test_every_day_has_each_feature_of_any_quick_scenario_by_few_of_them() -> None:
    assert set().union(*(FEATURES[name] for name in EVERYDAY)) == set().union(*FEATURES.values())
    some = "algorithm rclb, loss, default bfloat16, mechanism tree, topology complete, partitions, name yelp".split(
        ", "
    )
    assert set(some) <= set().union(*FEATURES.values())
    assert golden.covering({"a": {"1", "2"}, "b": {"2", "3", "4"}, "c": {"4"}}) == ["a", "b"]
    assert len(EVERYDAY) < 0.6 * len(FEATURES)
