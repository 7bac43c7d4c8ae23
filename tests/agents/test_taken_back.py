"""An upload that did not get through is the agent's news again, whichever copy of it comes back."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import pytest

from coband.agents.messages.synchronisation import SyncStart
from coband.simulator.arms import ArmSet
from coband.simulator.conformance.runs import algorithm, plan_of, problem_of, world
from coband.simulator.core.engine import Engine
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.randomness.streams import Streams

NETWORK = {"width": 4, "steps": 2}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "dis_lin": ("dis_lin_ucb", {}),
    "discounted": ("discounted_dis_lin_ucb", {"gamma": 0.9}),
    "fed_glb": ("fed_glb_ucb", {}),
    "fn": ("fn_ucb", NETWORK),
    "fn diagonal": ("fn_ucb", {**NETWORK, "diagonal": True}),
    "dis_kernel": ("dis_kernel_ucb", {}),
}


def agent_of(name: str, config: dict[str, Any]) -> Any:
    """An agent that has not pulled yet, and asks for no synchronisation."""
    plan = plan_of({"agents": {"count": 2}, "schedule": {"kind": "rounds", "turns": 30}, "network": {}})
    entry = algorithm(name)
    given = entry.config.model_validate({**config, "threshold": 1e9})
    return Engine(plan, entry, given, world(problem_of(name), 0, 2), Streams(0)).agents[0]


def contents(message: Message) -> list[Any]:
    return [np.asarray(getattr(message, name)).tolist() for name in message.payload_fields()]


@pytest.mark.parametrize("lost", [1, 2])
@pytest.mark.parametrize("case", CASES)
def test_a_copy_of_an_upload_can_be_taken_back(case: str, lost: int) -> None:
    """One of two uploads is lost; whether it or a copy comes back, the next one and later choices are the same."""
    results = []
    for back in (lambda upload: upload, deepcopy):
        rng, agent = np.random.default_rng(0), agent_of(*CASES[case])

        def pull(agent: Any = agent, rng: np.random.Generator = rng) -> int:
            arms = ArmSet(rng.normal(size=(5, 3)))
            arm: int = agent.choose(arms)
            assert agent.observe(arms, arm, float(rng.random())) == []
            return arm

        uploads = {}
        for round in (1, 2, 3):
            for _ in range(round):
                pull()
            if round < 3:
                uploads[round] = agent.upload(SyncStart(round=round, version=0))
        agent.take_back(back(uploads[lost]))
        again = agent.upload(SyncStart(round=3, version=0))
        results.append((contents(again), [pull() for _ in range(5)]))
        assert contents(again) != contents(uploads[lost])
    assert results[0] == results[1]
