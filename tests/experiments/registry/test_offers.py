"""Entry points found by the names in their files are those that Python finds."""

import sys
from importlib.machinery import PathFinder
from importlib.metadata import MetadataPathFinder, entry_points
from pathlib import Path

import pytest

from coband.simulator.plugins import entry_points as ours
from coband.simulator.plugins.offers import of_others, offers

GROUPS = ("coband.algorithms", "coband.problems", "coband.kernels", "coband.rewards")


@pytest.fixture(autouse=True)
def python_s_own_finders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other libraries that tests have loaded may have brought finders of packages with them.

    The package ``importlib_metadata`` also takes the search for distributions away from Python's own finder.
    """
    monkeypatch.setattr(PathFinder, "find_distributions", MetadataPathFinder.find_distributions, raising=False)
    own = [finder for finder in sys.meta_path if getattr(finder, "__module__", "").startswith("_frozen_importlib")]
    monkeypatch.setattr(sys, "meta_path", own)


def package(folder: Path, name: str, text: str) -> None:
    metadata = folder / f"{name}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n\n")
    (metadata / "entry_points.txt").write_text(text)


def found(group: str) -> list[tuple[str, str, str]]:
    points = ours._all_installed.__wrapped__().select(group=group)
    return sorted((point.name, point.value, ours.distribution(point)) for point in points)


def expected(group: str) -> list[tuple[str, str, str]]:
    return sorted((point.name, point.value, ours.distribution(point)) for point in entry_points(group=group))


@pytest.mark.parametrize("group", GROUPS)
def test_the_same_entry_points_as_python_finds(group: str) -> None:
    assert found(group) == expected(group)
    assert found(group)


def test_another_package_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    package(tmp_path, "silent", "[console_scripts]\nx = y:z\n")
    assert not of_others(offers() or [])
    package(tmp_path, "My_Plugin", "[coband.algorithms]\nmine = my_plugin:ALGORITHM\n")
    assert of_others(offers() or [])
    assert "my-plugin" in {offer.package for offer in offers() or []}
    assert ("mine", "my_plugin:ALGORITHM", "My_Plugin") in found("coband.algorithms")
    assert found("coband.algorithms") == expected("coband.algorithms")


def test_the_first_of_two_packages_of_a_name_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (second, first):
        folder.mkdir()
        monkeypatch.syspath_prepend(str(folder))
    package(first, "twice", "[console_scripts]\nx = y:z\n")
    package(second, "twice", "[coband.algorithms]\nhidden = twice:ALGORITHM\n")
    assert found("coband.algorithms") == expected("coband.algorithms")
    assert not of_others(offers() or [])


def test_archives_and_other_finders_are_left_to_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Finder:
        def find_spec(self, *_: object) -> None:
            return None

        def find_distributions(self, *_: object) -> list[object]:
            return []

    with monkeypatch.context() as patch:
        patch.setattr(sys, "meta_path", [*sys.meta_path, Finder()])
        assert offers() is None
    archive = tmp_path / "archive.zip"
    archive.write_bytes(b"PK\x05\x06" + bytes(18))
    with monkeypatch.context() as patch:
        patch.setattr(sys, "path", [*sys.path, str(archive)])
        assert offers() is None
        assert found("coband.algorithms") == expected("coband.algorithms")
