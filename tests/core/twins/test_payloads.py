"""Copies of messages share nothing with them, and payloads are alike up to rounding."""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from coband.simulator.arrays import FloatArray
from coband.simulator.core.nodes.message import Message, payload
from coband.simulator.core.twins.payloads import difference, frozen
from tests.every import every


class Laden(Message):
    kind: ClassVar[str] = "laden"
    values: FloatArray = payload()


@dataclass(frozen=True, kw_only=True)
class Parts:
    first: float
    second: float


def test_a_copy_shares_nothing_and_cannot_be_written_to() -> None:
    message = Laden(values=np.arange(3.0), round=2)
    copy = frozen(message)
    assert difference(copy, message) is None
    message.values[1] = 7.0
    assert copy.values.tolist() == [0.0, 1.0, 2.0]
    assert difference(copy, message) == "values"
    assert difference(copy, replace(copy, round=3)) == "round"
    with pytest.raises(ValueError, match="read-only"):
        copy.values[0] = 1.0


@every(
    ("one", "other", "same"),
    [
        (1.0, 1.0 + 1e-9, True),
        (0, -0.0, True),
        (1, 2, False),
        (np.array([1.0, math.nan]), np.array([1.0 + 1e-9, math.nan]), True),
        (np.array([1.0, 0.0]), np.array([1.0, 1e-3]), False),
        (np.array([1e3, 0.0]), np.array([1e3, 1e-4]), True),
        (np.array([1e-3, 0.0]), np.array([1e-3, 1e-8]), False),
        (np.array([1, 2]), np.array([1.0, 2.0]), True),
        (1, np.array([1.0, 1.0]), False),
        ((1.0, 2.0), [1.0, 2.0], False),
        ([1.0], [1.0, 2.0], False),
        ("up", "up\0", False),
        (Parts(first=1.0, second=2.0), Parts(first=1.0, second=2.0 + 1e-9), True),
        (Parts(first=1.0, second=2.0), Parts(first=1.0, second=3.0), False),
        (np.array([1.0]), np.array([1.0]).view(np.int64), False),
    ],
)
def test_payloads_are_alike_up_to_rounding(one: Any, other: Any, same: bool) -> None:
    assert (difference(Laden(values=one), Laden(values=other)) is None) == same


@pytest.mark.parametrize(("one", "other"), [(1, 1.0 + 1e-9), (1.0 + 1e-9, 1), (1.0, 1), (1.0, 1.0 + 1e-9), (None, 0.0)])
def test_parts_of_a_payload_are_compared_like_a_payload(one: Any, other: Any) -> None:
    """Numbers that are counted must be equal, and measured ones up to rounding: alone, in a tuple and in a list."""
    pairs: list[tuple[Any, Any]] = [(one, other), ((one,), (other,)), ([0.5, (one, 2)], [0.5, (other, 2)])]
    found = {difference(Laden(values=first), Laden(values=second)) for first, second in pairs}
    assert len(found) == 1
