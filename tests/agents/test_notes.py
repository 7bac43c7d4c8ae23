"""What nodes note is explained where they note it, so that `coband trace show` can say what a number means."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.traces.meaning import meanings

ROOT = Path(__file__).parents[2]


def notes(file: Path) -> Iterator[tuple[str, str]]:
    """(class, event) of every note that has a number."""
    for item in ast.parse(file.read_text(encoding="utf-8")).body:
        for call in ast.walk(item) if isinstance(item, ast.ClassDef) else ():
            if (
                isinstance(call, ast.Call)
                and isinstance(call.func, ast.Attribute)
                and call.func.attr == "note"
                and any(word.arg == "value" for word in call.keywords)
                and isinstance(call.args[0], ast.Constant)
            ):
                assert isinstance(item, ast.ClassDef)
                yield item.name, str(call.args[0].value)


def explained(file: Path) -> Iterator[tuple[str, str]]:
    """(class, event) of every explanation."""
    for item in ast.parse(file.read_text(encoding="utf-8")).body:
        for line in item.body if isinstance(item, ast.ClassDef) else ():
            if isinstance(line, ast.AnnAssign) and ast.unparse(line.target) == "noted":
                assert isinstance(item, ast.ClassDef)
                yield from ((item.name, event) for event in ast.literal_eval(ast.unparse(line.value or ast.Dict())))


FILES = sorted(file for folder in ("agents", "server") for file in (ROOT / folder).glob("*.py"))


def test_every_number_that_is_noted_is_explained() -> None:
    noted = {found for file in FILES for found in notes(file)}
    assert len(noted) > 10
    assert noted == {found for file in FILES for found in explained(file)}


@pytest.mark.parametrize(
    ("algorithm", "events"),
    [
        ("async_kernel_ucb", {"trigger", "apply"}),
        ("duets", {"trigger", "apply", "eliminate"}),
        ("co_kernel_fc", {"eliminate", "stop"}),
        ("approx_dis_kernel_ucb", {"trigger", "apply"}),
        ("n_kernel_ucb", set()),
        ("of another package", set()),
    ],
)
def test_explanations_are_inherited(algorithm: str, events: set[str]) -> None:
    assert set(meanings(algorithm)) == events


def test_explanations_of_every_algorithm_can_be_read() -> None:
    for name in Registry.installed().algorithms:
        assert all(text and text == text.strip() for text in meanings(name).values())
