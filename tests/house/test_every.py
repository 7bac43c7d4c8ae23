"""Tests of many cases: each case is tried once, the slow ones apart, wherever among several lists they are."""

import inspect

import pytest

from tests.every import every
from tests.everyday import everyday

TRIED: list[tuple[str, int]] = []


@every("letter", ["a", "b"])
@every("number", everyday(2, range(4)))
def outer(letter: str, number: int) -> None:
    TRIED.append((letter, number))


@every("number", everyday(2, range(4)))
@every("letter", ["a", "b"])
def inner(letter: str, number: int) -> None:
    TRIED.append((letter, number))


@pytest.mark.parametrize("test", [outer, inner])
@pytest.mark.parametrize(("part", "numbers"), [("everyday", {0, 1}), ("slow", {2, 3})])
def test_slow_cases_of_one_of_several_lists_are_a_test_of_their_own(test: object, part: str, numbers: set[int]) -> None:
    assert callable(test)
    assert "part" in inspect.signature(test).parameters
    TRIED.clear()
    test(part=part)
    assert sorted(TRIED) == [(letter, number) for letter in "ab" for number in sorted(numbers)]
