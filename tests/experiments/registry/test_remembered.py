"""Answers that are kept beside compiled code: they equal the truth, and are given up when anything changes."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coband.simulator.experiments.registry import remembered as module
from coband.simulator.experiments.registry.catalogue import catalogue, describe
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.registry.remembered import REGISTRY, remembered
from coband.simulator.offers import Offer

OWN = Offer("coband", "somewhere", b"[coband.algorithms]\nx = y:Z\n")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[int]:
    """Let answers be kept in a folder, as in a process without the registry; holds a 1 for each one computed."""
    place = tmp_path / "kept.json"
    monkeypatch.setattr(module, "REGISTRY", "coband.not_there")
    monkeypatch.setattr(module, "file", lambda: place)
    monkeypatch.setattr(module, "offers", lambda: [OWN])
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    return []


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


@pytest.mark.parametrize("found", [None, [OWN, Offer("plugin", "elsewhere", OWN.text)]])
def test_nothing_is_kept_beside_other_packages(
    asked: list[int], monkeypatch: pytest.MonkeyPatch, found: list[Offer] | None
) -> None:
    monkeypatch.setattr(module, "offers", lambda: found)
    for _ in range(2):
        remembered("list", answer(asked))
    assert (len(asked), module.file().exists()) == (2, False)


def test_nothing_is_kept_where_python_keeps_no_compiled_code(asked: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    remembered("list", answer(asked))
    assert not module.file().exists()


def test_nothing_is_kept_where_the_registry_is_loaded(asked: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REGISTRY", REGISTRY)
    for _ in range(2):
        remembered("list", answer(asked))
    assert (len(asked), module.file().exists()) == (2, False)


@pytest.mark.parametrize("damaged", ["", "{", "[]", '{"state": 1}', '{"state": "other", "answers": {"list": 0}}'])
def test_a_damaged_file_is_replaced(asked: list[int], damaged: str) -> None:
    module.file().write_text(damaged)
    assert remembered("list", answer(asked)) == [1, {"a": None}]
    assert json.loads(module.file().read_text())["answers"] == {"list": [1, {"a": None}]}


def test_a_folder_that_cannot_be_written_is_no_error(asked: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "file", lambda: Path(os.devnull) / "kept.json")
    assert remembered("list", answer(asked)) == [1, {"a": None}]


def test_an_error_is_not_kept(asked: list[int]) -> None:
    def fail() -> Any:
        raise KeyError("nothing")

    with pytest.raises(KeyError):
        remembered("describe nothing", fail)
    assert not module.file().exists()


def test_kept_answers_equal_the_truth(asked: list[int]) -> None:
    registry = Registry.installed()
    truths = {"list": lambda: catalogue(registry), "matern": lambda: describe("matern", registry)}
    truths |= {name: lambda name=name: describe(name, registry) for name in ("async_kernel_ucb", "network", "regret")}
    for _ in range(2):
        for question, compute in truths.items():
            assert json.dumps(remembered(question, compute)) == json.dumps(compute())
