from typing import Any

import numpy as np
import pytest

from coband.simulator.core.randomness.streams import Streams
from coband.simulator.experiments.runs.job import as_declared
from coband.simulator.problems.rewards import as_noise
from coband.simulator.problems.world import (
    BLOCK_MEMORY,
    LONGEST_BLOCK,
    LONGEST_EXPECTED,
    Blocks,
    FixedArmsWorld,
    InstanceError,
    Problem,
    longest_block,
)
from coband.simulator.scenario_errors import BrokenOff


def numbers(lengths: list[int], longest: int = 16, expected: int | None = None) -> Blocks[int]:
    """Turn t holds t; `lengths` collects how many turns were drawn at once."""

    def draw(turns: int) -> list[int]:
        start = sum(lengths) + 1
        lengths.append(turns)
        return list(range(start, start + turns))

    return Blocks(draw, longest, expected)


def test_blocks_double_up_to_the_longest() -> None:
    lengths: list[int] = []
    blocks = numbers(lengths)
    assert [blocks.at(turn) for turn in range(1, 61)] == list(range(1, 61))
    assert lengths == [4, 8, 16, 16, 16]


@pytest.mark.parametrize(
    ("longest", "expected", "turns", "found"),
    [
        (64, 40, 40, [4, 8, 16, 12]),
        (64, 3, 3, [4]),
        (64, 13, 13, [4, 8, 4]),
        (64, 200, 200, [4, 8, 16, 32, 64, 64, 12]),
        (64, 40, 100, [4, 8, 16, 12, 4, 8, 16, 16, 16]),
        (2, 5, 9, [2, 2, 2, 2, 2]),
    ],
)
def test_blocks_end_with_the_turns_that_are_expected(longest: int, expected: int, turns: int, found: list[int]) -> None:
    lengths: list[int] = []
    blocks = numbers(lengths, longest, expected)
    assert [blocks.at(turn) for turn in range(1, turns + 1)] == list(range(1, turns + 1))
    assert lengths == found


def test_blocks_may_be_asked_again_and_may_skip_turns() -> None:
    blocks = numbers([])
    assert [blocks.at(turn) for turn in (1, 1, 3, 2, 30, 29, 200)] == [1, 1, 3, 2, 30, 29, 200]


def test_what_is_drawn_already_can_be_seen_ahead() -> None:
    drawn = iter(range(1, 100))
    blocks = Blocks(lambda turns: [next(drawn) for _ in range(turns)])
    assert blocks.upcoming(2) == ([1, 2, 3, 4], 1)
    assert blocks.upcoming(5) == (list(range(5, 13)), 0)
    assert blocks.at(7) == 7


@pytest.mark.parametrize("turn", [0, -1])
def test_turns_start_at_one(turn: int) -> None:
    with pytest.raises(ValueError, match=rf"^turn\(={turn}\) must be >= 1: an agent's turns start at 1"):
        numbers([]).at(turn)


def test_turns_left_behind_are_refused() -> None:
    blocks = numbers([])
    blocks.at(5)
    with pytest.raises(ValueError, match=r"^turn\(=4\) must be >= 5: "):
        blocks.at(4)


def test_memory_bounds_the_blocks_of_many_agents() -> None:
    assert longest_block(100, 400) == LONGEST_BLOCK
    turns = longest_block(10_000, 400)
    assert 1 < turns < LONGEST_BLOCK
    assert turns * 10_000 * 400 * 8 <= BLOCK_MEMORY
    assert longest_block(10_000, 10**6) == 1
    assert longest_block(100, 400, expected=True) == LONGEST_EXPECTED
    longer = longest_block(500, 400, expected=True)
    assert LONGEST_BLOCK < longer < LONGEST_EXPECTED
    assert longer * 500 * 400 * 8 <= BLOCK_MEMORY / 4
    assert longest_block(10_000, 400, expected=True) == turns


def test_one_stream_in_pieces_is_the_same_stream() -> None:
    whole, pieces = np.random.default_rng(1), np.random.default_rng(1)
    together = whole.standard_normal((13, 4))
    assert np.array_equal(together, np.concatenate([pieces.standard_normal((n, 4)) for n in (1, 2, 4, 6)]))


class Listed:
    dimension, fixed_arms, shape = 2, False, None

    def arms(self, agent: int, turn: int) -> Any:
        return [[0.0, 1.0]] if self.shape is None else np.zeros(self.shape)


class Planned(Problem):
    world: Any = None

    def build(self, streams: Any, agents: int, base: Any = None) -> Any:
        return self.world


def test_a_world_of_a_plugin_that_is_none_is_told_of() -> None:
    streams, wrong = Streams(0), Listed()
    said = r"Planned\.build returned a NoneType, which lacks dimension, fixed_arms, arms; "
    with pytest.raises(BrokenOff, match=said):
        as_declared(Planned(), None)
    with pytest.raises(BrokenOff, match=r"Listed\.arms returned no array; return an array \(n, 2\), as dimension is 2"):
        as_declared(Planned(), wrong)  # type: ignore[arg-type]
    wrong.shape = (3,)  # type: ignore[assignment]
    with pytest.raises(BrokenOff, match=r"Listed\.arms returned an array of shape \(3,\); "):
        as_declared(Planned(), wrong)  # type: ignore[arg-type]
    for arms, means in ((np.zeros(3), np.zeros(3)), (np.zeros((3, 1)), np.zeros(2))):
        with pytest.raises(InstanceError, match="one for each of them"):
            FixedArmsWorld(arms, means, as_noise(0.1), streams, {})
