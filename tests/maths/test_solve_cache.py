"""Solves that are remembered: who asks twice is answered once, and never about other points."""

import numpy as np
import pytest

from coband.simulator.arrays import FloatArray
from coband.simulator.maths.linalg.caches import SolveCache

POINTS = np.random.default_rng(0).standard_normal((4, 2))


@pytest.fixture
def asked() -> list[FloatArray]:
    return []


@pytest.fixture
def cache(asked: list[FloatArray]) -> SolveCache:
    def solve(X: FloatArray, known: int) -> FloatArray:
        asked.append(X)
        return np.arange(1.0, known + 1)[:, None] * X.sum(axis=1)

    return SolveCache(solve)


def test_the_last_points_and_any_of_them_are_not_solved_again(cache: SolveCache, asked: list[FloatArray]) -> None:
    whole = cache(POINTS, 3)
    assert np.array_equal(cache(POINTS.copy(), 3), whole)
    assert np.array_equal(cache(POINTS[[2, 0]], 2), whole[:2, [2, 0]])
    assert len(asked) == 1


@pytest.mark.parametrize("other", [POINTS + 1.0, np.ones((4, 3)), np.ones((2, 4)), np.vstack([POINTS, POINTS[:1]])])
def test_other_points_are_solved_by_themselves(cache: SolveCache, asked: list[FloatArray], other: FloatArray) -> None:
    cache(POINTS, 3)
    assert np.array_equal(cache(other, 3), np.arange(1.0, 4.0)[:, None] * other.sum(axis=1))
    assert len(asked) == 2


def test_more_rows_than_were_solved_for_are_solved_anew(cache: SolveCache, asked: list[FloatArray]) -> None:
    cache(POINTS, 3)
    assert cache(POINTS, 4).shape == (4, 4)
    assert len(asked) == 2
