"""Results by version."""

import gc

from coband.simulator.maths.linalg.caches import VersionCache, WeakCache


def test_each_version_is_built_once_and_the_oldest_is_forgotten() -> None:
    built: list[int] = []

    def build(version: int) -> str:
        built.append(version)
        return f"model {version}"

    versions: VersionCache[str] = VersionCache(capacity=2)
    for version in (1, 2, 2, 1, 3, 3, 2):
        assert versions.get(version, lambda version=version: build(version)) == f"model {version}"
    assert built == [1, 2, 3]
    assert versions.get(1, lambda: build(1)) == "model 1"
    assert versions.get(3, lambda: build(3)) == "model 3"
    assert built == [1, 2, 3, 1]


class Model:
    """Anything that can be held on to."""


def test_what_nobody_uses_any_more_is_forgotten() -> None:
    in_use: WeakCache[Model] = WeakCache()
    first = in_use.get("a", Model)
    assert in_use.get("a", Model) is first
    assert in_use.get("b", Model) is not first
    del first
    gc.collect()
    keeper = [in_use.get("c", Model), in_use.get("a", Model)]
    assert len(in_use._held) == len(keeper) == 2
