"""Discounted DisLinUCB: a run is the plain loops, its limits are D-LinUCB and DisLinUCB, and what is late is older."""

from functools import cache
from typing import Any

import numpy as np
import pytest

from coband.agents.messages.synchronisation import SyncStart
from coband.extensions.conformance.runs import PROBLEM, Run, run, world
from coband.simulator.arms import ArmSet
from coband.simulator.core.nodes.node import SERVER
from coband.simulator.core.records import trace as tr
from tests.agents.beside import assert_equal, beside, schedule_of
from tests.agents.test_given_up import QUORUM
from tests.agents.test_quorum import GIVING_UP, SLOW
from tests.agents.test_taken_back import agent_of
from tests.core.hosts.test_members import MOVES
from tests.every import every
from tests.everyday import everyday
from tests.oracles import OracleRun, discounted_dis_lin_ucb

NAME = "discounted_dis_lin_ucb"
SPHERE = {**PROBLEM, "arms": {"kind": "sphere", "dimension": 3, "count": 5}}


@cache
def solved(case: int) -> tuple[Run, OracleRun]:
    rng = np.random.default_rng((17, case))
    agents, turns = int(rng.integers(1, 6)), int(rng.integers(20, 50))
    arms = {"kind": ["ball", "box"][case % 2], "dimension": int(rng.integers(1, 6)), "count": int(rng.integers(2, 9))}
    problem = {**PROBLEM, "arms": arms, "reward": {"kind": "linear"}}
    config = {
        "alpha": float(rng.choice([0.1, 0.5, 2.0])),
        "lam": float(rng.uniform(0.1, 2.0)),
        "threshold": float(rng.choice([0.0, 0.4, 1.3, 4.1])),
        "gamma": float(rng.choice([rng.uniform(0.3, 1.0), 0.95, 1.0])),
    }
    plan = {"agents": agents, "seed": case, "problem": problem, "schedule": schedule_of(case % 3, agents, turns)}
    return beside(NAME, discounted_dis_lin_ucb, config, plan)


@every("case", everyday(8, range(24)))
def test_a_run_without_delays_is_the_plain_loops(case: int) -> None:
    simulated, expected = solved(case)
    assert_equal(simulated, expected)
    totals = simulated.result.totals
    assert (totals["uplink_scalars"], totals["downlink_scalars"]) == (expected.uplink, expected.downlink)
    for index, agent in enumerate(simulated.engine.agents):
        node: Any = agent
        X = np.random.default_rng(5).uniform(-1, 1, (7, node.context.dimension))
        mean, squares = node._all().predict(X, node.config.lam)
        expected_mean, expected_deviation = expected.posterior_of(index, X)
        assert mean == pytest.approx(expected_mean, abs=1e-8)
        assert np.sqrt(squares) == pytest.approx(expected_deviation, abs=1e-8)


def test_cases_communicate() -> None:
    assert max(solved(case)[0].result.rounds for case in range(8)) >= 10


@every("seed", range(6))
def test_one_agent_that_is_synchronised_after_every_turn_is_d_lin_ucb(seed: int) -> None:
    schedule, problem = {"kind": "rounds", "turns": 60}, {**PROBLEM, "reward": {"kind": "linear"}}
    plan = {"agents": 1, "seed": seed, "schedule": schedule, "problem": problem, "checks": "cheap"}
    config = {"alpha": [0.1, 0.5, 2.0][seed % 3], "gamma": [0.5, 0.9, 0.99][seed // 2], "lam": 0.7}
    together, alone = run(NAME, {**config, "threshold": 0.0}, **plan), run("discounted_lin_ucb", config, **plan)
    assert together.result.rounds == 60
    assert together.pulls == alone.pulls
    never = run(NAME, {**config, "threshold": 1e9}, **plan)
    assert (never.result.rounds, never.pulls) == (0, alone.pulls)


NETWORKS: dict[str, dict[str, Any]] = {
    "at once": {},
    "slow": {"network": {"latency": {"kind": "exponential", "rate": 1.0}, "loss": 0.2}, "agent": SLOW},
    "given up": {"network": GIVING_UP, "agent": SLOW},
}


@pytest.mark.parametrize("wait", ["all", QUORUM])
@pytest.mark.parametrize("network", NETWORKS)
def test_without_discounts_it_is_dis_lin_ucb(network: str, wait: Any) -> None:
    """The same arms, and the same messages but for their sizes, whatever is late or lost."""
    config = {"alpha": 0.6, "threshold": 1.3, "wait": wait}
    parts = {"agents": 4, "schedule": {"kind": "rounds", "turns": 30}, **NETWORKS[network]}
    for seed in range(2):
        ours, theirs = (
            run(NAME, {**config, "gamma": 1.0}, seed=seed, **parts),
            run("dis_lin_ucb", config, seed=seed, **parts, checks="cheap"),
        )
        assert ours.pulls == theirs.pulls
        assert [message[:3] for message in ours.messages] == [message[:3] for message in theirs.messages]
        assert ours.result.rounds == theirs.result.rounds > 3
        servers: list[Any] = [ours.engine.server, theirs.engine.server]
        assert pytest.approx(servers[1].sums.gram.dense()) == servers[0].sums.W
        assert servers[0].sums.b == pytest.approx(servers[1].sums.b)


@pytest.mark.parametrize("agents", [1, 2, 5])
def test_scalars_are_the_closed_forms_whatever_the_delays(agents: int) -> None:
    """d = 3: two matrices and a vector, and up a number of pulls."""
    result = run(NAME, {}, agents=agents, schedule={"kind": "rounds", "turns": 40}, seed=3, **NETWORKS["slow"]).result
    each = result.rounds * agents
    assert each > 3
    assert (result.totals["uplink_scalars"], result.totals["downlink_scalars"]) == (22 * each, 21 * each)


@pytest.mark.parametrize("threshold", [0.0, 3.0])
def test_agents_that_act_in_rounds_hold_what_d_lin_ucb_would(threshold: float) -> None:
    """After a synchronisation: sums over the pulls of all, with gamma^(t-s) and gamma^(2(t-s))."""
    turns, gamma = 25, 0.9
    config = {"threshold": threshold, "gamma": gamma}
    simulated = run(NAME, config, agents=3, seed=4, schedule={"kind": "rounds", "turns": turns})
    truth, server = world(PROBLEM, 4, 3), simulated.engine.server
    last = [row.time for row in simulated.events(tr.APPLY) if row.node == SERVER][-1]
    now = sum(row.time <= last for row in simulated.events(tr.CHOOSE) if row.node == 0)
    W, W_tilde, b = np.zeros((3, 3)), np.zeros((3, 3)), np.zeros(3)
    for agent, turn, arm, reward in simulated.pulls:
        if turn <= now:
            x, weight = truth.arms(agent, turn)[arm], gamma ** (now - turn)
            W, W_tilde, b = W + weight * np.outer(x, x), W_tilde + weight**2 * np.outer(x, x), b + weight * reward * x
    for name, total in (("W", W), ("W_tilde", W_tilde), ("b", b)):
        assert getattr(server.sums, name) == pytest.approx(total, abs=1e-10)  # type: ignore[union-attr]


def test_uploads_that_are_late_are_as_old_as_if_they_had_come_in_time() -> None:
    """Arms of length 1: the trace of W is the sum of weights, which follow from the trace of the run."""
    gamma, agents = 0.9, 4
    simulated = run(
        NAME,
        {"threshold": 1.0, "gamma": gamma, "wait": {"quorum": 0.5, "timeout": 1.0}},
        agents=agents,
        problem=SPHERE,
        schedule={"kind": "rounds", "turns": 30},
        network={"latency": 0.1, "links": [{"agents": [3], "direction": "up", "latency": 4.0}]},
    )
    fresh, sent, came = [0] * agents, dict[tuple[int, int], int](), list[tuple[int, int]]()
    clock, weight, late = {0: 0.0}, 0.0, 0
    for row in simulated.rows:
        upload = row.kind >= 0 and simulated.names[row.kind] == "upload"
        if row.event == tr.CHOOSE:
            fresh[row.node] += 1
        elif row.event == tr.SEND and upload:
            sent[row.round, row.node], fresh[row.node] = fresh[row.node], 0
        elif row.event == tr.DELIVER and upload:
            came.append((row.round, row.peer))
        elif row.event == tr.APPLY and row.node == SERVER:
            passed = sum(sent[one] for one in came) / len(came)
            clock[row.round] = clock[row.round - 1] + passed
            weight *= gamma**passed
            for one in came:
                weight += gamma ** (clock[row.round] - clock[one[0]]) * (1 - gamma ** sent[one]) / (1 - gamma)
                late += one[0] < row.round
            came = []
    assert late > 3
    server: Any = simulated.engine.server
    assert np.trace(server.sums.W) == pytest.approx(weight)


@pytest.mark.parametrize("after", ["nothing", "a model"])
def test_what_comes_back_has_become_older(after: str) -> None:
    """Weights of an upload that is taken back go on fading while it is away."""
    agent, rng, gamma, pulled = agent_of(NAME, {"gamma": 0.8}), np.random.default_rng(1), 0.8, []
    for turn in range(9):
        arms = ArmSet(rng.normal(size=(5, 3)))
        agent.observe(arms, 2, float(turn))
        pulled.append(arms.features[2])
        if turn == 3:
            lost = agent.upload(SyncStart(round=1, version=0))
            agent.unshared -= lost.pulls  # as its conversation does
            assert agent.pulls_in_model == 4
        if turn == 6 and after == "a model":
            agent.adopt(agent.model(W=np.eye(3), W_tilde=np.eye(3), b=np.ones(3), version=1, round=2))
    X, ages = np.array(pulled), np.arange(8, -1, -1)
    held = X.T @ (gamma ** ages[:, None] * X)
    if after == "nothing":
        assert pytest.approx(held) == agent._all().W
    else:
        assert pytest.approx(gamma**2 * np.eye(3)) == agent._old().W
    agent.take_back(lost)
    agent.unshared += lost.pulls
    if after == "nothing":
        assert pytest.approx(held) == agent._all().W
        assert agent.pulls_in_model == 9
    again = agent.upload(SyncStart(round=3, version=1))
    assert pytest.approx(held) == again.W
    assert again.W_tilde == pytest.approx(X.T @ (gamma ** (2 * ages[:, None]) * X))
    assert again.b == pytest.approx(X.T @ (gamma**ages * np.arange(9)))


def test_an_agent_asks_when_its_news_add_enough_to_what_is_left() -> None:
    """The more has faded, the more the same news add: with a discount it asks more often."""
    schedule = {"kind": "rounds", "turns": 100}
    rounds = [run(NAME, {"gamma": gamma}, schedule=schedule).result.rounds for gamma in (1.0, 0.9)]
    assert rounds[1] > rounds[0] > 0


def test_a_synchronised_agent_follows_a_change_that_dis_lin_ucb_misses() -> None:
    problem = {**SPHERE, "reward": {"kind": "linear", "theta": "sphere"}, "drift": {"kind": "piecewise", "at": [100]}}
    plan: dict[str, Any] = {
        "agents": 4,
        "problem": problem,
        "schedule": {"kind": "rounds", "turns": 200},
        "checks": "cheap",
    }
    config = {"alpha": 0.3, "threshold": 1.0}
    ours, theirs = run(NAME, {**config, "gamma": 0.9}, **plan), run("dis_lin_ucb", config, **plan)
    assert ours.result.regret < 0.6 * theirs.result.regret


def test_the_clock_goes_by_those_who_are_there() -> None:
    """One agent of three joins, another leaves: a round is still a round."""
    schedule = {"kind": "rounds", "turns": 20}
    simulated = run(NAME, {"threshold": 0.0, "gamma": 0.9}, agents=3, agent=MOVES, problem=SPHERE, schedule=schedule)
    there: dict[float, int] = {}
    for row in simulated.events(tr.CHOOSE):
        there[row.time] = there.get(row.time, 0) + 1
    assert sorted(set(there.values())) == [2, 3]
    weights = [0.9 ** (19 - k) * there[time] for k, time in enumerate(sorted(there))]
    server: Any = simulated.engine.server
    assert np.trace(server.sums.W) == pytest.approx(sum(weights))
