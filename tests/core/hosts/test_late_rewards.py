"""Rewards that come late, or are refused; what every algorithm does meanwhile is in ``test_every_algorithm``."""

from pathlib import Path

import pytest

from coband.extensions.conformance import runs
from coband.simulator.core.hosts import late_rewards
from coband.simulator.core.nodes.node import Agent
from coband.simulator.core.records import trace as tr
from coband.simulator.core.records.invariants import InvariantViolation
from coband.simulator.experiments.scenario.loading import loads
from coband.simulator.scenario_errors import ScenarioError

SCENARIO = """
name: late
agents: {{count: 2, reward_delay: 3}}
schedule: {schedule}
problem: {problem}
algorithms: [{{algorithm: {algorithm}}}]
"""


def _waits(name: str) -> bool:
    return bool(runs.algorithm(name).needs_rewards)


def test_those_that_need_rewards_at_once_are_refused() -> None:
    tasks = "{kind: pure_exploration, features: {kind: table, tasks: similar, size: 3, ones: 1}}"
    for name in filter(_waits, runs.registry().algorithms):
        batches = runs.batches(name)
        domain = "{kind: fixed_domain, domain: {kind: ball, dimension: 3, points: 9}, reward: {kind: cosine}}"
        schedule = "{kind: phases}" if batches else "{kind: rounds, turns: 9}"
        with pytest.raises(ScenarioError) as error:
            loads(SCENARIO.format(schedule=schedule, problem=tasks if batches else domain, algorithm=name))
        why = "batches, which end with their rewards" if batches else "the reward of a pull before its next turn"
        assert why in str(error.value), name
        assert "leave out agents.reward_delay" in str(error.value)


def test_a_reward_comes_when_its_delay_is_over() -> None:
    run = runs.run("lin_ucb", {}, agents=2, agent={"reward_delay": 2.5}, schedule={"kind": "rounds", "turns": 4})
    choices = {row.seq: row.time for row in run.events(tr.CHOOSE)}
    assert [row.time - choices[row.cause] for row in run.events(tr.REWARD)] == [2.5] * 8
    assert [row.time for row in run.events(tr.CHOOSE)] == [1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0]
    assert run.result.simulated_time == 6.5
    known = [agent.unshared for agent in run.engine.agents if isinstance(agent, Agent)]
    assert known == [4, 4]
    assert run.result.ages.pulls.tolist() == [0, 1, 2, 3, 4, 5, 5, 6]  # of others' pulls it knows none


def test_rewards_of_who_is_away_come_when_it_is_back() -> None:
    away = {"outages": [{"start": 2.0, "end": 9.0, "nodes": [0]}]}
    run = runs.run(
        "lin_ucb", {}, agents=1, agent={"reward_delay": 2.0}, network=away, schedule={"kind": "rounds", "turns": 1}
    )
    assert [row.time for row in run.events(tr.REWARD)] == [9.0]


def test_a_reward_that_never_comes_is_outstanding(tmp_path: Path) -> None:
    (tmp_path / "up.csv").write_text("agent,up,down\n0,0,2\n1,0,\n")
    gone = {"reward_delay": 2.0, "availability": {"kind": "trace", "file": str(tmp_path / "up.csv")}}
    run = runs.run("fed_lin_ucb", {}, agents=2, agent=gone, schedule={"kind": "rounds", "turns": 1})
    assert (run.result.turns, run.result.totals["outstanding"]) == (2, 1)


def test_rewards_that_are_not_told_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(late_rewards, "observe_late", lambda agent, pull: [])
    with pytest.raises(InvariantViolation, match="agents hold 0, which must make 6 in all"):
        runs.run("lin_ucb", {}, agent={"reward_delay": 2.0}, schedule={"kind": "rounds", "turns": 2}, checks="cheap")
