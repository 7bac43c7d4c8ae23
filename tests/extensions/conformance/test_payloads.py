"""What messages may hold, as the kit says it."""

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest

from coband.extensions.conformance import NonConformance, cases
from coband.extensions.conformance.communication import stowaway, unfinite
from coband.simulator.arms import ArmSet
from coband.simulator.core.algorithm import Algorithm
from coband.simulator.core.nodes.message import Message, payload
from coband.simulator.core.nodes.node import Outbox
from tests.extensions.conformance.toys import Tally, Teller, toy


class Laden(Message):
    kind: ClassVar[str] = "laden"
    values: Any = payload()
    more: Any = None


@pytest.mark.parametrize("hidden", [np.ones(2), 0.5, [1, 2], (1, 0.5), {"model": 1}])
def test_what_is_not_payload_and_carries_numbers(hidden: Any) -> None:
    assert Laden(values=np.ones(1)).scalars == 1  # every run looks at the first of its class
    assert stowaway(Laden(values=np.ones(1), more=hidden)) == "more"


@pytest.mark.parametrize("said", [3, "up", True, (1, "a"), None, np.int64(2)])
def test_what_a_header_may_hold(said: Any) -> None:
    assert stowaway(Laden(values=np.ones(1), more=said)) is None


@pytest.mark.parametrize(
    ("value", "finite"),
    [(np.array([1.0, np.nan]), False), (np.array([np.inf]), False), (np.nan, False), ((1.0, np.nan), False),
     (np.inf, True), (np.array([1, 2]), True), (None, True)],
)  # fmt: skip
def test_numbers_that_are_none(value: Any, finite: bool) -> None:
    assert unfinite(Laden(values=value)) == (None if finite else "values")


class Burdened(Teller):
    """Hides a model in its messages."""

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        outbox = super().observe(arms, arm, reward)
        for _, message in outbox:
            vars(message)["model"] = np.ones(9)
        return outbox


class Lost(Teller):
    """Sends what is not a number."""

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        self.unshared = 0
        return [(-1, Tally(total=np.nan, pulls=1))]


@pytest.mark.parametrize(
    ("agent", "sentence"),
    [
        (Burdened, r"^'model' of a 'tally' of node \d is not payload and more than a header may be$"),
        (Lost, r"^Tally\.total of node \d is not finite$"),
    ],
)
def test_messages_that_hold_what_they_must_not(
    agent: type[Teller], sentence: str, install: Callable[[Algorithm], str]
) -> None:
    (case,) = [case for case in cases(install(toy(agent))) if str(case).endswith("-rounds-as_declared")]
    with pytest.raises(NonConformance, match=sentence):
        case.check()
