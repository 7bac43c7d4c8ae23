"""An upload that did not get through is the agent's news again, whichever copy of it comes back."""

from copy import deepcopy
from typing import Any

import numpy as np
import pytest

from coband.agents.messages.linear import PrivateModel
from coband.agents.messages.synchronisation import SyncStart
from coband.simulator.arms import ArmSet
from coband.simulator.core.nodes.message import Message
from tests.agents.beside import agent_of

NETWORK = {"width": 4, "steps": 2}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "dis_lin": ("dis_lin_ucb", {}),
    "discounted": ("discounted_dis_lin_ucb", {"gamma": 0.9}),
    "fed_glb": ("fed_glb_ucb", {}),
    "fn": ("fn_ucb", NETWORK),
    "fn diagonal": ("fn_ucb", {**NETWORK, "diagonal": True}),
    "dis_kernel": ("dis_kernel_ucb", {}),
}


def contents(message: Message) -> list[Any]:
    return [np.asarray(getattr(message, name)).tolist() for name in message.payload_fields()]


@pytest.mark.parametrize("lost", [1, 2])
@pytest.mark.parametrize("case", CASES)
def test_a_copy_of_an_upload_can_be_taken_back(case: str, lost: int) -> None:
    """One of two uploads is lost; whether it or a copy comes back, the next one and later choices are the same."""
    results = []
    for back in (lambda upload: upload, deepcopy):
        rng, agent = np.random.default_rng(0), agent_of(*CASES[case], threshold=1e9)

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


def test_private_sums_that_come_back_leave_what_was_sent_before_them() -> None:
    """An agent that has gone on from a model without its upload knows so when that comes back, and later."""
    rng, agent = np.random.default_rng(0), agent_of("fed_ucb", {"horizon": 30}, threshold=1e9)

    def sent(round: int) -> Any:
        for _ in range(round):
            arms = ArmSet(rng.normal(size=(5, 3)))
            agent.observe(arms, agent.choose(arms), float(rng.random()))
        return agent.upload(SyncStart(round=round, version=0))

    def told(round: int, upload: Any) -> None:
        agent.adopt(PrivateModel(W=2 * upload.W, b=upload.b, version=round, round=round, known=9))

    first = sent(1)
    told(1, first)
    second = sent(2)
    told(2, first)
    assert agent.estimator.fresh == 0
    agent.take_back(second)
    assert agent.estimator.fresh == 2
    told(3, first)
    assert agent.estimator.fresh == 2
    told(4, sent(4))
    assert agent.estimator.fresh == 0
