"""Agents that join and leave, or are refused; what every algorithm does is in ``test_every_algorithm``."""

import math
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coband.extensions.conformance import graphs, runs
from coband.extensions.live.config import refuse
from coband.simulator.core.hosts.availability import MarkovOnOff
from coband.simulator.core.hosts.stays import MovesAtTimes, PoissonJoins, PoissonLeaves, Stays, stays
from coband.simulator.core.nodes.node import SERVER
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.core.records import trace as tr
from coband.simulator.experiments.runs.study import study_of
from coband.simulator.experiments.scenario.loading import loads
from coband.simulator.experiments.store.store import open_run
from coband.simulator.scenario_errors import ScenarioError
from tests.agents.test_conformance import CASES
from tests.analysis.traces.runs import perform
from tests.every import every

JOINS, LEAVES = 6.0, 14.0
MOVES: dict[str, Any] = {
    "joins": {"kind": "times", "times": [[1, JOINS]]},
    "leaves": {"kind": "times", "times": [[0, LEAVES]]},
}
"""Of three agents one joins, another leaves, and the third is there all the time."""
ONE_JOINS = {"joins": MOVES["joins"]}
ACTS = (tr.TURN, tr.CHOOSE, tr.REWARD, tr.SEND, tr.DELIVER)
FIRST = list({name: (name, config) for name, config in reversed(CASES)}.values())


def _ends_together(name: str) -> bool:
    return runs.algorithm(name).needs.ends_together


SCENARIO = """
name: members
agents: {{count: 3, {agents}}}
schedule: {schedule}
problem: {problem}
algorithms: [{{algorithm: {algorithm}}}]
"""
BALL = "{kind: contextual, arms: {kind: ball, dimension: 3, count: 9}, reward: {kind: cosine}, noise: 0.1}"
ROUNDS = "{kind: rounds, turns: 9}"
MOVING = "leaves: {kind: poisson, rate: 0.1}"


def _said(agents: str = MOVING, algorithm: str = "lin_ucb", problem: str = BALL, schedule: str = ROUNDS) -> str:
    with pytest.raises(ScenarioError) as error:
        loads(SCENARIO.format(agents=agents, schedule=schedule, problem=problem, algorithm=algorithm))
    return str(error.value)


def test_those_that_cannot_do_without_an_agent_are_refused() -> None:
    tasks = "{kind: pure_exploration, features: {kind: table, tasks: similar, size: 3, ones: 1}}"
    domain = "{kind: fixed_domain, domain: {kind: ball, dimension: 3, points: 9}, reward: {kind: cosine}}"
    names = list(filter(_ends_together, runs.registry().algorithms))
    assert len(names) > 5
    for name in names:
        phases = runs.batches(name)
        said = _said(MOVING, name, tasks if phases else domain, "{kind: phases}" if phases else ROUNDS)
        assert f"{name} plans for the same agents from the start to the end" in said
        assert "leave out agents.joins and agents.leaves" in said
    assert "give horizon (turns of each agent), or leave out agents.joins and" in _said(algorithm="fed_ucb")


def test_moves_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "moves.csv").write_text("agent,time\n0,4\n1,-1\n")
    for agents, message in (
        ("joins: {kind: times, times: [[3, 1]]}", "joins names agent 3: must be < 3, the agents.count"),
        ("leaves: {kind: times, times: [[1, 1], [1, 2]]}", "an agent moves once; give one time for each"),
        ("leaves: {kind: times}", "give either times or file"),
        ("joins: {kind: poisson, rate: 0}", "agents.joins.rate: 0 is not allowed: must be a number > 0"),
        ("joins: {kind: sometimes}", "'sometimes' is not a known kind; did you mean times? known: poisson, times"),
        (f"leaves: {{kind: times, file: {tmp_path}/moves.csv}}", "moves.csv:3: '1,-1' must have a whole agent >= 0"),
    ):
        assert message in _said(agents)


def test_live_runs_refuse_them() -> None:
    scenario = loads(SCENARIO.format(agents=MOVING, schedule=ROUNDS, problem=BALL, algorithm="fed_lin_ucb"))
    with pytest.raises(Exception, match="live an agent is there while its process runs"):
        refuse(study_of(scenario))


def test_times_of_moves() -> None:
    """Joins are a Poisson process in the order of numbers, and each agent stays for an exponential time."""
    joins, leaves = PoissonJoins(kind="poisson", rate=2.0, at_start=100), PoissonLeaves(kind="poisson", rate=0.25)
    found = stays((joins, leaves), 20_000, MarkovOnOff(kind="markov_on_off", mean_up=1, mean_down=1), Streams(1), 9e9)
    assert (found.joins[:100] == 0).all()
    gaps = np.diff(found.joins[99:])
    assert (gaps > 0).all()
    assert gaps.mean() == pytest.approx(0.5, rel=0.03)
    lasting = found.leaving - found.joins
    assert (lasting.mean(), np.median(lasting)) == (
        pytest.approx(4.0, rel=0.03),
        pytest.approx(4 * math.log(2), rel=0.03),
    )
    none = stays((None, MovesAtTimes(kind="times", times=((1, 5.0), (2, 50.0)))), 3, found.usual, Streams(1), 20.0)
    assert none.leaving.tolist() == [math.inf, 5.0, math.inf]  # nobody leaves once all has healed


@pytest.mark.parametrize("seed", range(20))
def test_absences_of_who_joins_and_leaves(seed: int) -> None:
    """Down until it joins, when it usually is, and from leaving on."""
    usual = MarkovOnOff(kind="markov_on_off", mean_up=2.0, mean_down=1.0)
    rng = np.random.default_rng(seed)
    first, last = np.sort(rng.uniform(0, 60, 2)).tolist()
    stay = Stays.model_construct(joins=np.array([first]), leaving=np.array([last]), usual=usual)
    expected = [window for window, _ in zip(usual.windows(0, np.random.default_rng(seed)), range(200), strict=False)]
    found = list(stay.windows(0, np.random.default_rng(seed)))
    assert all(one[1] < other[0] for one, other in pairwise(found))
    for time in (*rng.uniform(0, 80, 400), first, last):
        down = any(start <= time < end for start, end in expected)
        assert any(start <= time < end for start, end in found) == (down or not first <= time < last)


def test_a_broadcast_goes_to_those_that_are_there_and_is_counted_so() -> None:
    """DisLinUCB that always synchronises: d^2 + d numbers for each of them, whenever the server sends a model."""
    run = runs.run("dis_lin_ucb", {"threshold": 0.0}, agents=3, agent=MOVES, schedule={"kind": "rounds", "turns": 20})
    size = 3 * 3 + 3
    models = [row for row in run.events(tr.SEND) if row.node == SERVER and row.scalars == size]
    assert len(models) == 20
    assert all(row.value == 2 + (JOINS <= row.time < LEAVES) for row in models)
    assert run.result.totals["downlink_scalars"] == sum(int(row.value) * size for row in models)
    assert [(row.time, row.node) for row in run.events(tr.DOWN)] == [(0.0, 1), (LEAVES, 0)]
    assert [(row.time, row.node) for row in run.events(tr.UP)] == [(JOINS, 1)]


@pytest.mark.parametrize("lost", [False, True])
def test_what_who_has_left_has_sent_arrives_and_is_not_repeated(lost: bool) -> None:
    """If it is lost, it is given up when it would have been repeated, though by then nobody is told."""
    leaves = {"kind": "times", "times": [[0, 1.5]]}
    network: dict[str, Any] = {"latency": 1.0, "retransmission": {"timeout": 3.0}}
    network["outages"] = [{"start": 1.5, "end": 2.5 if lost else 1.7, "nodes": ["server"]}]
    run = runs.run(
        "fed_lin_ucb", {"threshold": 0.0}, agents=2, agent={"leaves": leaves}, network=network,
        schedule={"kind": "rounds", "turns": 1},
    )  # fmt: skip
    uploads = [row for row in run.events(tr.DELIVER) if (row.node, row.peer) == (SERVER, 0)]
    given_up = [row for row in run.events(tr.EXPIRE) if row.node == 0]
    assert [row.time for row in uploads] == ([] if lost else [2.0])
    assert [row.time for row in given_up] == ([4.0] if lost else [])
    assert not [row for row in run.events(tr.RETRANSMIT) if row.node == 0]


def test_who_is_not_there_takes_no_energy() -> None:
    energy = {"capacity": 100.0, "idle": 1.0, "per_turn": 0.0}
    run = runs.run("lin_ucb", {}, agents=3, agent={**MOVES, "energy": energy}, schedule={"kind": "rounds", "turns": 20})
    end = run.result.simulated_time
    assert [one["energy"] for one in run.result.by_agent] == pytest.approx([LEAVES, end - JOINS, end])


def test_who_leaves_is_noticed_at_that_moment_with_batteries_too() -> None:
    """Batteries that hold enough change nothing, on a network that loses messages."""
    plan: dict[str, Any] = {"network": {"loss": 0.3, "latency": 0.5}, "schedule": {"kind": "rounds", "turns": 20}}
    found = []
    for batteries in ({}, {"energy": {"capacity": 1e9, "per_turn": 1.0}}):
        run = runs.run("dis_lin_ucb", {"threshold": 0.0}, agents=3, agent={**MOVES, **batteries}, **plan)
        rows = [row for row in run.events(tr.DOWN, *ACTS) if row.time > 0.0]
        found.append([(row.time, row.node, row.event, row.peer, row.value) for row in rows])
    assert found[0] == found[1]
    assert [row[0] for row in found[0] if row[2] == tr.DOWN] == [LEAVES]


def test_who_joins_is_told_what_was_synchronised_before() -> None:
    """DisKernelUCB sends the points since the last synchronisation, and to who has joined those of all before it."""
    plan: dict[str, Any] = {"agents": 3, "agent": ONE_JOINS, "schedule": {"kind": "rounds", "turns": 20}}
    run = runs.run("dis_kernel_ucb", {"threshold": 0.0}, **plan)
    assert [agent.pulls_in_model for agent in run.engine.agents] == [20 + 20 + 15] * 3
    d = run.engine.agents[0].context.dimension
    assert run.result.totals["downlink_scalars"] == (20 * 2 + 20 * 2 + 15 * 2) * (d + 1)


def test_nobody_waits_for_or_writes_to_who_is_not_there() -> None:
    """FTS averages once a round; Async-LinUCB counts as downloads what it has sent."""
    plan: dict[str, Any] = {"agents": 3, "agent": ONE_JOINS, "schedule": {"kind": "rounds", "turns": 20}}
    assert runs.run("fts", {"initial": 1, "features": 5}, **plan).result.rounds == 20
    totals = runs.run("async_lin_ucb", {"gamma_u": 1.2, "gamma_d": 1.2}, **plan).result.totals
    assert totals["downlink_scalars"] == totals["downloads"] * (3 * 3 + 3 + 1) > 0


LEARNING = {"kernel": {"kind": "gaussian", "gamma": 0.3}, "threshold": 1.0}


@every(
    ("name", "config", "network"),
    [
        ("async_kernel_ucb", LEARNING, {"latency": 0.2, "transport": "datagram"}),
        ("dis_lin_ucb", {"threshold": 1.0}, {}),
        ("dis_lin_ucb", {"threshold": 1.0}, {"latency": 0.2, "transport": "datagram"}),
        ("approx_dis_kernel_ucb", LEARNING, {"latency": 0.2, "loss": 0.1}),
    ],
)
def test_who_joins_late_learns_from_the_others(name: str, config: dict[str, Any], network: dict[str, Any]) -> None:
    """It has no backlog of broadcasts, but its model soon has nearly all pulls; nobody has waited for it."""
    agent = {"joins": {"kind": "times", "times": [[1, 120]]}}
    run = runs.run(name, config, agents=3, agent=agent, network=network, schedule={"kind": "rounds", "turns": 200})
    turns = Counter(row.node for row in run.events(tr.CHOOSE))
    assert turns == {0: 200, 1: 81, 2: 200}
    known = run.engine.agents[1].pulls_in_model
    assert known is not None
    assert known > 0.7 * run.result.turns
    first = next(row for row in run.events(tr.SEND, tr.DELIVER, tr.DROP) if 1 in (row.node, row.peer))
    assert first.time >= 120
    assert run.result.totals["wire_messages"] < 2.5 * run.result.totals["messages"]


@every("name", sorted(filter(_ends_together, runs.registry().algorithms)))
def test_those_that_need_all_agents_end_when_one_of_them_is_gone(name: str, tmp_path: Path) -> None:
    """They are not told to go on with the others, but miss it as one that is silent; nobody else waits at the end."""
    batches, config = runs.batches(name), dict(FIRST).get(name, {})
    (tmp_path / "up.csv").write_text(f"agent,up,down\n0,0,{0.05 if batches else 4.5}\n")
    agent = {"availability": {"kind": "trace", "file": str(tmp_path / "up.csv")}}
    schedule = {"kind": "phases", "pull_time": 1e-3} if batches else {"kind": "rounds", "turns": 40}
    run = graphs.run_anywhere(name, dict(config), agent=agent, schedule=schedule, network={"latency": 0.01}, seed=1)
    others = run.engine.agents[1:]
    assert [row.node for row in run.events(tr.DOWN)] == [0]
    assert not any(one.waiting for one in others)
    if batches:
        assert all(one.done for one in others)
    else:
        assert [one["turns"] for one in run.result.by_agent[1:]] == [40, 40]


def test_pulls_of_an_agent_that_leaves_after_the_server_are_no_mistake(tmp_path: Path) -> None:
    """They were not sent, since nobody is there, and the agent has left before it could take them back."""
    faults = "network: {outages: [{start: 0, end: null, nodes: [server]}]}\n"
    trace = ["agent,time", *(f"{agent},{0.5 * time}" for time in range(20) for agent in (0, 1))]
    (tmp_path / "turns.csv").write_text("\n".join(trace))
    schedule = f"{{kind: trace, file: {tmp_path / 'turns.csv'}}}"
    agents = "handling: 0.2, leaves: {kind: times, times: [[0, 3.1], [1, 5.1]]}"
    text = SCENARIO.format(agents=agents, algorithm="one_kernel_ucb", problem=BALL, schedule=schedule) + faults
    with open_run(perform(text, tmp_path / "run", "agents.count=2")) as run:
        (job,) = run.jobs
        assert job.record is not None
        assert 0 < job.record["turns"] < 40
        assert job.record["messages"] == 0
