"""Answers that are kept in the cache directory: they equal the truth, and are given up when anything changes."""

import errno
import json
import os
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from coband.simulator.experiments.registry import remembered as module
from coband.simulator.experiments.registry.catalogue import catalogue
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.registry.remembered import REGISTRY, remembered
from coband.simulator.reference.items import look_up

OWN = EntryPoint("x", "y:Z", "coband.algorithms")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[int]:
    """Let answers be kept in a folder, as in a process without the registry; holds a 1 for each one computed."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(module, "REGISTRY", "coband.not_there")
    monkeypatch.setattr(module, "offered", lambda: [OWN])
    monkeypatch.setattr(module, "distribution", lambda point: "coband" if point is OWN else "another")
    return []


def kept() -> list[Path]:
    return [path for path in Path(os.environ["XDG_CACHE_HOME"]).rglob("*") if path.is_file()]


def answer(asked: list[int], value: Any = (1, {"a": None})) -> Callable[[], Any]:
    def compute() -> Any:
        asked.append(1)
        return value

    return compute


def test_an_answer_is_computed_once(asked: list[int]) -> None:
    given = [remembered(question, answer(asked)) for question in ("list", "list", "describe x", "list")]
    assert (given, len(asked)) == ([[1, {"a": None}]] * 4, 2)


def test_another_state_of_the_sources_needs_another_answer(
    asked: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source = tmp_path / "source.py"
    source.write_text("x = 1\n")
    monkeypatch.setattr(module, "_files", lambda folder: [module._line(str(source))])
    remembered("list", answer(asked))
    os.utime(source, ns=(1, 1))
    remembered("list", answer(asked))
    source.write_text("x = 12\n")
    remembered("list", answer(asked))
    remembered("list", answer(asked))
    assert len(asked) == 3


def test_every_source_and_scenario_counts() -> None:
    package = Path(module.__file__).parents[3]
    lines = list(module._files(package))
    expected = {str(path) for part in ("agents", "server", "simulator") for path in (package / part).rglob("*.py")}
    expected |= {str(path) for path in (package / "scenarios").rglob("*.yaml")}
    assert len(expected) > 300
    assert not expected - {line.rsplit(" ", 2)[0] for line in lines}


def test_nothing_is_kept_beside_other_packages(asked: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "offered", lambda: [OWN, EntryPoint("other", "y:Z", "coband.kernels")])
    for _ in range(2):
        remembered("list", answer(asked))
    assert (len(asked), kept()) == (2, [])


def test_answers_are_kept_where_python_keeps_no_bytecode(asked: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for _ in range(2):
        remembered("list", answer(asked))
    assert (len(asked), kept()) == (1, [module.file()])


@pytest.mark.parametrize(
    ("chosen", "folder"), [(None, "home/.cache"), ("relative", "home/.cache"), ("{}/elsewhere", "elsewhere")]
)
def test_the_cache_directory_is_the_user_s(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, chosen: str | None, folder: str
) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    given = {"HOME": "{}/home", "USERPROFILE": "{}/home"} | ({"XDG_CACHE_HOME": chosen} if chosen else {})
    for name, value in given.items():
        monkeypatch.setenv(name, value.format(tmp_path))
    assert module.file().parent == tmp_path / folder / "coband" / "answers"


def test_each_installation_and_python_has_a_file_of_its_own(asked: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    remembered("list", answer(asked))
    monkeypatch.setattr(module, "PACKAGE", Path("/elsewhere/coband"))
    monkeypatch.setattr(module, "_files", lambda folder: [])
    remembered("list", answer(asked))
    monkeypatch.setattr(sys, "implementation", SimpleNamespace(cache_tag="cpython-399"))
    remembered("list", answer(asked))
    assert (len(asked), len(kept())) == (3, 3)


def test_nothing_is_kept_where_the_registry_is_loaded(asked: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REGISTRY", REGISTRY)
    for _ in range(2):
        remembered("list", answer(asked))
    assert (len(asked), kept()) == (2, [])


@pytest.mark.parametrize("damaged", ["", "{", "[]", '{"state": 1}', '{"state": "other", "answers": {"list": 0}}'])
def test_a_damaged_file_is_replaced(asked: list[int], damaged: str) -> None:
    place = module.file()
    place.parent.mkdir(parents=True)
    place.write_text(damaged)
    assert remembered("list", answer(asked)) == [1, {"a": None}]
    assert json.loads(place.read_text())["answers"] == {"list": [1, {"a": None}]}
    assert kept() == [place]


def test_a_folder_that_cannot_be_written_is_no_error(asked: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", os.devnull)
    assert remembered("list", answer(asked)) == [1, {"a": None}]


def test_a_full_disk_leaves_no_part_of_a_file(asked: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(draft: Path, place: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    assert remembered("list", answer(asked)) == [1, {"a": None}]
    assert kept() == []


def test_an_error_is_not_kept(asked: list[int]) -> None:
    def fail() -> Any:
        raise KeyError("nothing")

    with pytest.raises(KeyError):
        remembered("describe nothing", fail)
    assert kept() == []


def test_kept_answers_equal_the_truth(asked: list[int]) -> None:
    registry = Registry.installed()
    truths = {"list": lambda: catalogue(registry), "matern": lambda: look_up("matern", registry)}
    truths |= {name: lambda name=name: look_up(name, registry) for name in ("async_kernel_ucb", "network", "regret")}
    for _ in range(2):
        for question, compute in truths.items():
            assert json.dumps(remembered(question, compute)) == json.dumps(compute())
