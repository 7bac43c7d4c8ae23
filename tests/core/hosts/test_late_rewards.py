"""Rewards that come late: every algorithm goes on meanwhile and learns the same, or is refused."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coband.agents.messages.linear import LinearUpload
from coband.simulator.arms import ArmSet
from coband.simulator.conformance import graphs, kit, runs
from coband.simulator.core.audit import trace as tr
from coband.simulator.core.audit.invariants import InvariantViolation
from coband.simulator.core.checks.payloads import difference, frozen
from coband.simulator.core.hosts import late_rewards
from coband.simulator.core.hosts.outstanding import Outstanding, kept_of, observe_late
from coband.simulator.core.nodes.node import Agent, Outbox
from coband.simulator.core.nodes.outbox import SERVER, Later
from coband.simulator.experiments.scenario.input_problems import ScenarioError
from coband.simulator.experiments.scenario.loading import loads
from tests.agents.test_conformance import CASES
from tests.everyday import slow

LATE: dict[str, Any] = {"reward_delay": {"kind": "exponential", "rate": 0.2}}
UNEVEN: dict[str, Any] = {"kernel": {"kind": "linear"}, "threshold": 8.0}
"""Deviations that differ between arms from the first turn on."""
SCENARIO = """
name: late
agents: {{count: 2, reward_delay: 3}}
schedule: {schedule}
problem: {problem}
algorithms: [{{algorithm: {algorithm}}}]
"""


def _waits(name: str) -> bool:
    return bool(runs.algorithm(name).needs_rewards)


def _complaint(name: str, config: dict[str, Any]) -> str | None:
    """What is wrong with runs of an algorithm whose rewards come late."""
    networks = kit.GRAPH_NETWORKS if graphs.on_graph(name) else kit.NETWORKS
    if difference_made := _order_matters(name, config):
        return difference_made
    for agent, network, schedule in (({}, {}, "one_at_a_time"), (kit.EXTRA["churn"], networks["faulty"], "renewal")):
        try:
            run = graphs.run_anywhere(
                name, config, agent={**agent, **LATE}, network=network, schedule=kit.SCHEDULES[schedule], seed=3
            )
        except InvariantViolation as violation:
            return str(violation)
        rewards, choices = run.events(tr.REWARD), {row.seq: row for row in run.events(tr.CHOOSE)}
        if len(choices) != len(rewards) + run.result.totals["outstanding"]:
            return f"{len(choices)} pulls, {len(rewards)} rewards, {run.result.totals['outstanding']} outstanding"
        if not network and run.result.totals["outstanding"]:
            return "rewards are outstanding when nothing is down"
        if not any(choices[row.cause].seq + 1 < row.seq for row in rewards):
            return "no reward was late"
    return None


def _drive(name: str, config: dict[str, Any], block: int) -> list[Outbox]:
    """What agent 0 sends, if it takes so many turns before it is told their rewards; arms and rewards are given."""
    node: Any = graphs.run_anywhere(name, config, schedule={"kind": "rounds", "turns": 1}, network={}).engine.agents[0]
    node = type(node)(node.context)
    assert isinstance(node, Agent)
    domain, rng, found = node.context.domain, np.random.default_rng(1), list[Outbox]()
    start, answered = 0, True  # nobody answers, so that it ends with the first question
    while start < 24 and answered:
        pulls = []
        for turn in range(start, start + block):
            arms = domain or ArmSet(np.random.default_rng(turn).standard_normal((5, node.context.dimension)) / 3)
            node.choose(arms)
            pulls.append(Outstanding(arms, turn % 5, float(rng.standard_normal()), turn, kept_of(node)))
        for pull in pulls:
            same = type(node.context.rng.bit_generator)(pull.choice)  # what it draws depends on the pull alone
            node.context.rng.bit_generator.state = same.state
            outbox = [(to, frozen(message)) for to, message in observe_late(node, pull) if type(to) is not Later]
            found.append(outbox)
            answered = answered and not (outbox and not graphs.on_graph(name))
            if not answered:
                break
        start += block
    if name == "fn_ucb":
        W, b = node._ridge.news(1)  # its alpha looks at arms that were offered since
        found.append([(SERVER, frozen(LinearUpload(W=W, b=b, pulls=0, version=0)))])
    return found


def _order_matters(name: str, config: dict[str, Any]) -> str | None:
    prompt, late = (_drive(name, config, block) for block in (1, 4))
    for turn, one, other in zip(count(), prompt, late, strict=False):
        unlike = [difference(a, b) for (_, a), (_, b) in zip(one, other, strict=False)]
        if len(one) != len(other) or any(field is not None for field in unlike):
            return f"after pull {turn} it sends {one} in one order, {other} in another: {unlike}"
    return None


FIRST = list({name: (name, config) for name, config in reversed(CASES)}.values())


@pytest.mark.parametrize("cases", [FIRST, slow(CASES)], ids=["one of each", "all"])
def test_every_algorithm_learns_from_late_rewards(
    cases: list[tuple[str, dict[str, Any]]],
) -> None:
    cases = [*cases, ("async_kernel_ucb", UNEVEN), ("approx_dis_kernel_ucb", UNEVEN)]
    checked = {str((name, config)): _complaint(name, config) for name, config in cases if not _waits(name)}
    wrong = {case: complaint for case, complaint in checked.items() if complaint is not None}
    assert not wrong, "\n".join(f"{case}: {complaint}" for case, complaint in wrong.items())
    assert len(checked) > 25


def test_those_that_need_rewards_at_once_are_refused() -> None:
    tasks = "{kind: pure_exploration, features: {kind: table, tasks: similar, size: 3, ones: 1}}"
    for name in filter(_waits, runs.registry().algorithms):
        batches = runs.batches(name)
        domain = "{kind: fixed_domain, domain: {kind: ball, dimension: 3, points: 9}, reward: {kind: cosine}}"
        schedule = "{kind: phases}" if batches else "{kind: rounds, turns: 9}"
        with pytest.raises(ScenarioError) as error:
            loads(SCENARIO.format(schedule=schedule, problem=tasks if batches else domain, algorithm=name))
        why = "batches, which end with their rewards" if batches else "a plan of pulls"
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
    assert run.result.ages.pulls.tolist() == [
        0,
        1,
        2,
        3,
        4,
        5,
        5,
        6,
    ]  # of others' pulls it knows none


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
