"""Streams that are kept as positions go on as generators that are kept do."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from coband.simulator.core.randomness.streams import Streams
from coband.simulator.problems.world import GoingOn, position

DRAWS: tuple[Callable[[np.random.Generator], Any], ...] = (
    lambda rng: rng.standard_normal(3),
    lambda rng: rng.random(),
    lambda rng: rng.integers(7, dtype=np.uint32),  # leaves half a word over
    lambda rng: rng.permutation(5),
)


@pytest.mark.parametrize("seed", range(5))
def test_one_generator_goes_on_with_many_streams(seed: int) -> None:
    choices, streams, going_on = np.random.default_rng(seed), Streams(seed), GoingOn(np.random.default_rng())
    kept = [streams("world", agent, "arms") for agent in range(4)]
    positions = [position(streams("world", agent, "arms")) for agent in range(4)]
    for _ in range(200):
        agent, draw = int(choices.integers(4)), DRAWS[int(choices.integers(len(DRAWS)))]
        rng = going_on.at(positions[agent])
        np.testing.assert_array_equal(draw(rng), draw(kept[agent]))
        positions[agent] = position(rng)
    assert len(set(positions)) == 4
