"""A node that returns the call of an ``async def`` as its outbox: the mistake, the node and what to write are named."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from coband.simulator.arms import ArmSet
from coband.simulator.core.conversations import Talks
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import SERVER, Address, Outbox
from tests.core.toys import TOY, News, Report, ToyAgent, ToyConfig, ToyServer, run_on_toys

ROUNDS: dict[str, Any] = {"kind": "rounds", "turns": 3}


class Forgetful(Talks, ToyAgent):
    """Forgets `begin`."""

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        return self.share(reward)  # type: ignore[return-value]

    async def share(self, reward: float) -> None:
        await self.ask(SERVER, Report(values=np.array([reward]), pulls=0), reply=News)


class Slow(ToyServer):
    """Handles messages in an ``async def``."""

    async def receive(self, message: Message, source: Address) -> None:  # type: ignore[override]
        return None


def _run(**parts: Any) -> None:
    plan = {"agents": {"count": 2}, "schedule": ROUNDS, "network": {}, **parts}
    run_on_toys(replace(TOY, agent=Forgetful), ToyConfig(), plan, seed=0)


@pytest.mark.filterwarnings("error")  # also that a coroutine was never awaited
@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"schedule": {"kind": "one_at_a_time", "turns": 3}},
        {"agents": {"count": 2, "reward_delay": 1}},
        {"agents": {"count": 2, "compute": {"kind": "constant", "value": 1}}},
        {"network": {"topology": {"kind": "ring"}}},
    ],
)
def test_a_turn_that_does_not_begin_its_conversation(parts: dict[str, Any]) -> None:
    says = r"py:\d+: Forgetful\.observe returned Forgetful\.share\(.*; write `.*self\.begin\(self\.share\(\.\.\.\)\)"
    with pytest.raises(TypeError, match=says):
        _run(**parts)


@pytest.mark.filterwarnings("error")
def test_a_server_that_handles_messages_in_a_coroutine() -> None:
    server = replace(TOY, server=f"{__name__}:Slow")
    with pytest.raises(TypeError, match=r"\.py:\d+: Slow\.receive returned Slow\.receive\(.*nodes that talk"):
        run_on_toys(server, ToyConfig(), {"agents": {"count": 2}, "schedule": ROUNDS, "network": {}}, seed=0)
