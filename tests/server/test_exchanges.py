"""Servers, message by message: what they answer, for whom they wait and what they send again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from coband.agents.messages.asynchronous import Request
from coband.agents.messages.linear import Gradient, LinearUpload, PointsUpload
from coband.agents.messages.sharing import LostPointsRequest
from coband.agents.messages.synchronisation import SyncRequest
from coband.simulator.conformance.runs import algorithm, plan_of, problem_of, run, world
from coband.simulator.core.engine import Engine
from coband.simulator.core.node import ALL_AGENTS
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.maths.linalg.gram import Gram


def server_of(name: str, **config: Any) -> Any:
    """The server of two agents that have not said anything yet."""
    plan = plan_of({"agents": {"count": 2}, "schedule": {"kind": "rounds", "turns": 30}, "network": {}})
    entry = algorithm(name)
    return Engine(plan, entry, entry.config.model_validate(config), world(problem_of(name), 0, 2), Streams(0)).server


@pytest.mark.parametrize(("exchanges", "waits"), [("serial", True), ("interleaved", False)])
def test_a_server_waits_for_the_agent_of_the_exchange_that_others_wait_for(exchanges: str, waits: bool) -> None:
    server = server_of("async_kernel_ucb", server={"exchanges": exchanges})
    server.receive(Request(number=1, version=0), 0)
    assert (server.missed(0) is not None) == waits
    assert server.missed(1) is None


def test_exchanges_are_numbered_one_by_one() -> None:
    server = server_of("async_kernel_ucb", server={"exchanges": "interleaved"})
    answers = [server.receive(Request(number=1, version=0), agent)[0][1] for agent in (1, 0)]
    assert [answer.round for answer in answers] == [1, 2]


def descending() -> tuple[Any, Any]:
    """A server that both agents have sent their points, and its first question for gradients."""
    server = server_of("fed_glb_ucb")
    server.receive(SyncRequest(version=0), 0)
    for agent in (0, 1):
        outbox = server.receive(PointsUpload(W=Gram(np.eye(3)), count=3, pulls=3, round=1), agent)
    ((_, iterate),) = outbox
    assert iterate.kind == "iterate"
    return server, iterate


def test_a_descent_ends_when_an_agent_cannot_be_asked_for_its_gradient() -> None:
    server, iterate = descending()
    assert server.receive(Gradient(gradient=np.ones(3), step=1, round=1), 0) == []
    ((recipient, model),) = server.unreachable(iterate, 1)
    assert (recipient, model.kind) == (ALL_AGENTS, "model")


def test_patience_ends_with_the_phase_in_which_it_began() -> None:
    """An agent whose points came after all is not left out of the descent because they were late."""
    server = server_of("fed_glb_ucb")
    server.receive(SyncRequest(version=0), 0)
    ((_, timer),) = server.missed(1)
    for agent in (0, 1):
        server.receive(PointsUpload(W=Gram(np.eye(3)), count=3, pulls=3, round=1), agent)
    assert server.on_timer(timer) is None
    assert server.receive(Gradient(gradient=np.ones(3), step=1, round=1), 0) == []


def test_an_answer_is_sent_again_unless_there_is_a_newer_one() -> None:
    server = server_of("fed_lin_ucb")
    uploads = [LinearUpload(W=Gram(np.eye(3)), b=np.ones(3), pulls=3) for _ in range(2)]
    ((_, first),), ((_, second),) = (server.receive(upload, 0) for upload in uploads)
    assert not server.is_wanted(first, 0)
    assert server.is_wanted(second, 0)


def test_who_asks_for_all_points_gets_them_up_to_the_last() -> None:
    server: Any = run("one_kernel_ucb", {}, agents=2, schedule={"kind": "rounds", "turns": 3}).engine.server
    for agent in (0, 1):
        ((recipient, found),) = server.receive(LostPointsRequest(first=0), agent)
        assert recipient == agent
        assert list(found.positions) == [place for place in range(6) if server._owners[place] != agent]
        assert found.before == tuple(server._owners[:place].count(agent) for place in found.positions)
