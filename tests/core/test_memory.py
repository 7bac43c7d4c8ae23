"""What algorithms say of the memory of their nodes, in bytes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coband.simulator.core import memory
from coband.simulator.core.memory import Memory, RunSize
from tests.core.toys import TOY, ToyConfig

SIZE = RunSize(config=None, agents=3)


@pytest.mark.parametrize(
    ("numbers", "when", "expected"),
    [
        ("N*T", "", 8.0 * 3 * 2),
        ("N*T", "N > 5", 0.0),
        ("N*T", "N < 5", 8.0 * 3 * 2),
        ("N*T", "mode == 'exact'", 8.0 * 3 * 2),
        ("N*T", "mode != 'exact'", 0.0),
        ("N*d", "", None),
        ("N*d", "mode != 'exact'", 0.0),
        ("N*T", "d > 5", None),
        (lambda run: 7 * run.agents, "", 8.0 * 7 * 3),
        (lambda run: 7 * run.agents, "N > 5", 0.0),
        (lambda run: run.turns, "", None),
    ],
)
def test_memory_is_counted_where_its_condition_holds_and_all_sizes_are_known(
    numbers: str, when: str, expected: float | None
) -> None:
    part = Memory("what", numbers, "less of it", when=when)
    assert part.size(SIZE, {"N": 3, "T": 2, "mode": "exact"}) == expected


def test_the_sizes_that_are_known_before_a_run() -> None:
    assert SIZE.quantities == {"N": 3}
    known = RunSize(None, agents=3, turns=10, dimension=2, arms=5, fixed=0)
    assert known.quantities == {"N": 3, "T": 10, "t": 4, "d": 2, "K": 5, "M": 0}
    assert list(known.quantities) == list(memory.QUANTITIES)
    assert all(memory.QUANTITIES.values())


def test_memory_may_speak_of_quantities_that_the_algorithm_names() -> None:
    """Of one that is not known before the run no memory is counted."""
    part, other = Memory("what", "both", "less of it"), Memory("what else", "of_dimension", "less of it")
    where = {"of_dimension": "2*d", "twice": "2*N", "both": "twice + size"}
    algorithm = replace(TOY, where=where, memory=(part, other))
    assert algorithm.memory_of(RunSize(ToyConfig(size=4), agents=3)) == [(part, 8.0 * (2 * 3 + 4))]


def described(run: RunSize) -> float:
    """One number for each agent.

    Whatever it does.
    """
    return float(run.agents)


def test_memory_is_put_into_words() -> None:
    """By its formula, or by the first line of what its function says of itself."""
    found = [Memory("what", numbers, "less of it").words for numbers in ("N*T", described, lambda run: 1.0)]
    assert found == ["N*T", "One number for each agent", "computed from the sizes of the run"]
