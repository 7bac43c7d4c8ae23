"""Tables that grow at the end, against stacks of all rows: small ones without spare room, large ones, forks."""

import numpy as np
import pytest

from coband.simulator.maths.linalg.gram import GramOf, GrowingGram
from coband.simulator.maths.linalg.growing_rows import GrowingRows


@pytest.mark.parametrize("width", [1, 5, 60, 300])
@pytest.mark.parametrize("seed", range(3))
def test_tables_are_stacks_whose_views_never_change(width: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    tables = [(GrowingRows(width), np.empty((0, width)))]
    seen = []
    for _ in range(40):
        place = int(rng.integers(len(tables)))
        table, stack = tables[place]
        rows = rng.standard_normal((int(rng.integers(0, 4)), width))
        table.append(rows)
        stack = np.vstack([stack, rows])
        tables[place] = table, stack
        known = int(rng.integers(len(stack) + 1))
        for found, expected in ((table.all, stack), (table.leading(known), stack[:known])):
            np.testing.assert_array_equal(found, expected)
            assert not found.flags.writeable
            seen.append((found, expected))
        if rng.random() < 0.2:
            tables.append((table.forked(known), stack[:known]))
        rows += 1.0  # what was appended is a copy
    for found, expected in seen:
        np.testing.assert_array_equal(found, expected)


def test_few_rows_take_no_more_than_they_are() -> None:
    table = GrowingRows(5)
    table.append(np.ones((3, 5)))
    assert table.all.base is None
    assert table.forked(3).all is table.all


@pytest.mark.parametrize("cadence", [1, 4, 500])
def test_sums_of_rows_that_somebody_else_keeps_are_those_of_ones_own(cadence: int) -> None:
    rng, rows = np.random.default_rng(5), GrowingRows(3)
    own, of = GrowingGram(3, cadence), GramOf(rows, cadence)
    for size in (1, 1, 3, 1, 6, 1, 1, 2):
        G = rng.standard_normal((size, 3))
        rows.append(G)
        for gram in (own, of):
            gram.add(G)
        found, expected = of.matrix, own.matrix
        np.testing.assert_array_equal(found.rows, expected.rows)
        np.testing.assert_array_equal(found.dense(), expected.dense())
        assert (found.base is None) == (expected.base is None)
