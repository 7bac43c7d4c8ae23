"""Servers of agents that go on together or not at all: how the exchange ends for everybody."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from coband.agents.messages.epochs import BatchRewards, Projection
from coband.agents.messages.exploration import ArmMeans
from coband.agents.messages.synchronisation import SyncAbandoned
from coband.simulator.conformance.runs import algorithm, batches, plan_of, problem_of, run, world
from coband.simulator.core.engine import Engine
from coband.simulator.core.message import Message
from coband.simulator.core.node import ALL_AGENTS, SERVER
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.core.timers import OutOfPatience

UPLOADS: dict[str, Message] = {
    "duets": Projection(v=np.ones(2), pulls=7, round=1),
    "bpe": BatchRewards(rewards=np.ones(7), pulls=7, round=1),
    "co_kernel_fc": ArmMeans(counts=np.array([3, 2, 2]), means=np.ones(3), pulls=7, round=1),
}


def server_of(name: str) -> Any:
    """The server of two agents that have not said anything yet."""
    schedule = {"kind": "phases"} if batches(name) else {"kind": "rounds", "turns": 30}
    plan = plan_of({"agents": {"count": 2}, "schedule": schedule, "network": {}})
    entry = algorithm(name)
    config = entry.config.model_validate({"via": "server"} if name == "co_kernel_fc" else {})
    return Engine(plan, entry, config, world(problem_of(name), 0, 2), Streams(0)).server


def agents_of(name: str) -> Any:
    """Two agents after a run in which nothing was lost."""
    return run(name, {"via": "server"} if name == "co_kernel_fc" else {}, agents=2).engine.agents


def said(outbox: Any) -> list[tuple[Any, str]]:
    return [(recipient, message.kind) for recipient, message in outbox]


@pytest.mark.parametrize("name", UPLOADS)
def test_an_agent_that_goes_on_alone_ends_the_exchange_for_everybody(name: str) -> None:
    server = server_of(name)
    assert said(server.receive(SyncAbandoned(round=1), 0)) == [(ALL_AGENTS, "sync_abandoned")]
    assert said(server.receive(SyncAbandoned(round=1), 1)) == []  # it knows that by now


@pytest.mark.parametrize("name", UPLOADS)
def test_who_sends_data_after_the_end_is_told_not_to_wait_and_its_pulls_count_as_received(name: str) -> None:
    server = server_of(name)
    server.close()
    for number, agent in enumerate((1, 0), start=1):
        assert said(server.receive(UPLOADS[name], agent)) == [(agent, "sync_abandoned")]
        assert server.applied == 7 * number
    assert server.rounds == 0


@pytest.mark.parametrize("name", UPLOADS)
def test_an_agent_that_cannot_be_reached_or_is_silent_for_long_ends_the_exchange_once(name: str) -> None:
    for given_up in ("unreachable", "go_on"):
        server = server_of(name)
        about = (OutOfPatience(about=0, number=1), 0) if given_up == "go_on" else (UPLOADS[name], 0)
        end = getattr(server, given_up)
        assert said(end(*about)) == [(ALL_AGENTS, "sync_abandoned")]
        assert said(end(*about) or []) == []
        assert said(server.undelivered(UPLOADS[name], 1)) == []
        assert server.missed(1) is None


@pytest.mark.parametrize("name", ["co_kernel_fc", "duets"])
def test_who_goes_on_alone_says_so_once(name: str) -> None:
    agent = agents_of(name)[0]
    agent.done, agent.alone = False, False
    assert said(agent.part())
    assert agent.part() == []


@pytest.mark.parametrize("name", ["co_kernel_fc", "duets"])
def test_who_has_stopped_or_goes_on_alone_waits_for_nobody(name: str) -> None:
    waiting, done = agents_of(name)
    waiting.done, waiting.alone = False, False
    assert said(waiting.missed(SERVER))
    waiting.alone = True
    assert waiting.missed(SERVER) is None
    done.done, done.alone = True, False
    assert done.missed(SERVER) is None


@pytest.mark.parametrize("name", ["co_kernel_fc", "duets"])
def test_who_loses_patience_goes_on_alone_unless_it_has_stopped_or_does_so_already(name: str) -> None:
    waiting, done = agents_of(name)
    timer = OutOfPatience(about=SERVER, number=1)
    waiting.done, waiting.alone = False, False
    assert said(waiting.go_on(timer, SERVER))
    assert waiting.alone
    assert waiting.go_on(timer, SERVER) is None
    done.done, done.alone = True, False
    assert done.go_on(timer, SERVER) is None
    assert not done.alone
