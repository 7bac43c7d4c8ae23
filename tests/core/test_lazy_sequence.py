"""Nodes that are made when they first act: the same runs, and only as many nodes as act."""

from typing import Any

import pytest

from coband.extensions.conformance import runs
from coband.simulator.core.nodes.lazy_sequence import LazySequence, each, made

FLEET: dict[str, Any] = {"agents": 50, "schedule": {"kind": "one_at_a_time", "turns": 40}, "checks": "cheap"}


def test_a_member_is_made_once_when_it_is_asked_for() -> None:
    asked: list[int] = []
    later = LazySequence(5, lambda place: asked.append(place) or f"node {place}")
    assert (len(later), asked) == (5, [0])  # the first one, which complains of what none can do
    assert (later[3], later[3], later[-1], later[1:3]) == ("node 3", "node 3", "node 4", ["node 1", "node 2"])
    assert asked == [0, 3, 4, 1, 2]
    assert sorted(made(later)) == [f"node {place}" for place in range(5)]
    with pytest.raises(IndexError):
        later[5]


def test_looking_at_all_keeps_none() -> None:
    asked: list[int] = []
    later = LazySequence(4, lambda place: asked.append(place) or place)
    assert list(each(later)) == [0, 1, 2, 3]
    assert list(later.made) == [0]
    assert list(made([1, 2])) == list(each([1, 2])) == [1, 2]


@pytest.mark.parametrize("name", ["fed_lin_ucb", "dis_lin_ucb", "async_lin_ucb", "lin_ucb", "async_kernel_ucb"])
def test_runs_are_those_of_nodes_that_are_all_there(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = runs.run(name, {}, **FLEET)
    agents, hosts = run.engine.agents, run.engine._hosts
    assert isinstance(agents, LazySequence)
    assert isinstance(hosts, LazySequence)
    acting = {agent for agent, *_ in run.pulls} | {0}
    if name in ("fed_lin_ucb", "lin_ucb"):  # whose server writes to nobody else
        assert set(agents.made) == acting
        assert set(hosts.made) <= acting | {50}
    for module in ("nodes", "hosts"):
        monkeypatch.setattr(f"coband.simulator.core.making.{module}.made_later", lambda setup: False)
    whole = runs.run(name, {}, **FLEET)
    assert isinstance(whole.engine.agents, list)
    assert whole.result.fingerprint == run.result.fingerprint
    assert whole.result.by_agent == run.result.by_agent
    assert whole.result.totals == run.result.totals


@pytest.mark.parametrize(
    "scenario",
    [
        {"checks": "full"},
        {"schedule": {"kind": "rounds", "turns": 2}},
        {"agent": {"availability": {"kind": "markov_on_off", "mean_up": 5.0, "mean_down": 5.0}}},
    ],
    ids=["full checks", "rounds", "availability"],
)
def test_where_somebody_looks_at_all_agents_they_are_all_there(scenario: dict[str, Any]) -> None:
    assert isinstance(runs.run("fed_lin_ucb", {}, **(FLEET | scenario)).engine.agents, list)
