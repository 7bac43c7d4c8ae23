"""Linear bandits with a server: a run without delays is the pseudo-code; triggers, counts, conservation."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from coband.extensions.conformance.communication import check_closed_forms
from coband.extensions.conformance.runs import PROBLEM, Run, algorithm, run
from coband.server.common.sums import SquaresCheck
from coband.simulator.arms import ArmSet
from coband.simulator.core.nodes.node import NodeContext, Sharing
from coband.simulator.core.records import trace as tr
from coband.simulator.maths.linalg.gram import Gram
from tests.agents.beside import assert_equal, beside, schedule_of
from tests.agents.test_quorum import GIVING_UP
from tests.every import every
from tests.everyday import everyday
from tests.oracles import async_lin_ucb, dis_lin_ucb, fed_glb_ucb, fed_lin_ucb

ORACLES: dict[str, Any] = {
    "dis_lin_ucb": dis_lin_ucb,
    "fed_lin_ucb": fed_lin_ucb,
    "async_lin_ucb": async_lin_ucb,
    "fed_glb_ucb": fed_glb_ucb,
}
CONFIGURATIONS = 24


def random_case(name: str, case: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """A random scenario with 1 to 6 agents and random parameters; boxes hold arms outside of the unit ball.

    No spheres: at the start all arms would tie there but for rounding.
    """
    rng = np.random.default_rng((3, case))
    agents, turns = int(rng.integers(1, 7)), int(rng.integers(40, 110))
    arms = {"kind": ["ball", "box"][case % 2], "dimension": int(rng.integers(1, 7)), "count": int(rng.integers(2, 9))}
    reward = {"kind": "cosine"} if case % 3 else {"kind": "cubic", "form": "async"}
    plan: dict[str, Any] = {
        "agents": agents,
        "seed": case,
        "problem": {**PROBLEM, "arms": arms, "reward": reward, "noise": float(rng.uniform(0, 0.3))},
        "schedule": schedule_of(int(rng.integers(2)), agents, -(-turns // agents)),
    }
    config: dict[str, Any] = {
        "alpha": float(rng.choice([0.1, 0.5, 1.0, 4.0])),
        "lam": float(rng.uniform(0.1, 2.0)),
        "threshold": float(rng.choice([0.0, 0.4, 1.3, 4.1])),
    }
    if name == "async_lin_ucb":
        del config["threshold"]
        config |= {key: float(rng.choice([1.0, 1.3, 2.0, 5.0])) for key in ("gamma_u", "gamma_d")}
        config["alpha"] = config["alpha"] if rng.integers(2) else "theory"
        config |= {key: float(rng.uniform(0.1, 1)) for key in ("sub_gaussian", "delta", "norm")}
        config["refresh"] = str(rng.choice(["at_once", "at_next_pull"]))
    if name == "fed_glb_ucb":
        config["threshold"] = float(rng.choice([0.5, 1.3, 4.1, 9.0]))
        config["radius"] = float(rng.choice([0.3, 1.0, 3.0]))
        config["c_mu"] = [None, 0.25, 0.1][int(rng.integers(3))]
        config["smoothness"] = str(rng.choice(["unit_ball", "data"]))
        config["max_rounds"] = int(rng.choice([1, 4, 1000, 1000]))
        config["reward_range"] = [[0.0, 1.0], [-1.0, 1.0], [-0.5, 3.1]][int(rng.integers(3))]
    return plan, config


@cache
def solved(name: str, case: int) -> tuple[dict[str, Any], Run, Any]:
    """The parameters of a random case, its simulated run and its oracle's."""
    plan, config = random_case(name, case)
    return config, *beside(name, ORACLES[name], config, plan)


@every("case", everyday(6, range(CONFIGURATIONS)))
@every("name", ORACLES)
def test_a_run_without_delays_is_the_pseudo_code(name: str, case: int) -> None:
    """Models at the end included, and gradient rounds of each synchronisation."""
    config, simulated, expected = solved(name, case)
    assert_equal(simulated, expected)
    X = np.random.default_rng(5).uniform(-1, 1, (7, simulated.engine.world.dimension))
    for index, agent in enumerate(simulated.engine.agents):
        node: Any = agent
        if name == "fed_lin_ucb":
            mean, squares = node.downloaded.ridge.predict(X)
        else:
            if name == "async_lin_ucb" and node.config.refresh == "at_once":
                node._take_in()
            mean, squares = node.ridge.predict(X)
        expected_mean, expected_deviation = expected.posterior_of(index, X)
        assert mean == pytest.approx(expected_mean, abs=1e-8)
        assert np.sqrt(squares) == pytest.approx(expected_deviation, abs=1e-8)
    if name == "fed_glb_ucb":
        by_synchronisation: list[int] = []
        for row in simulated.events(tr.SEND):
            if simulated.names[row.kind] == "sync_start":
                by_synchronisation.append(0)
            elif simulated.names[row.kind] == "iterate":
                by_synchronisation[-1] += 1
        assert by_synchronisation == expected.gradient_rounds
        totals = simulated.result.totals
        assert totals["gradient_rounds"] == sum(expected.gradient_rounds)
        assert totals["unconverged"] <= sum(rounds == config["max_rounds"] for rounds in expected.gradient_rounds)
        for agent, state in zip(simulated.engine.agents, expected.states, strict=True):
            assert agent.theta == pytest.approx(state.theta, abs=1e-8)  # type: ignore[attr-defined]


@every("name", ORACLES)
def test_equivalence_cases_communicate(name: str) -> None:
    assert max(solved(name, case)[1].result.rounds for case in range(6)) >= 10


def test_some_cases_project_and_some_end_early() -> None:
    """The random cases reach the corners that they are meant to test."""
    early, on_the_sphere = 0, 0
    for case in range(CONFIGURATIONS):
        if early >= 3 and on_the_sphere >= 3:
            break
        config, simulated, _ = solved("fed_glb_ucb", case)
        early += simulated.result.totals["unconverged"] > 0
        norms = [np.linalg.norm(agent.theta) for agent in simulated.engine.agents]  # type: ignore[attr-defined]
        on_the_sphere += any(abs(norm - config["radius"]) < 1e-9 for norm in norms)
    assert early >= 3
    assert on_the_sphere >= 3


NETWORK = {"latency": {"kind": "exponential", "rate": 1.0}, "loss": 0.2}
SLOW = {"compute": {"kind": "exponential", "rate": 1.0}, "stragglers": {"fraction": 0.5, "slowdown": 5}}


@every("agents", [1, 4])
@every("name", ORACLES)
def test_counts_are_the_closed_forms_whatever_the_delays(name: str, agents: int) -> None:
    schedule = {"kind": "rounds", "turns": 40}
    simulated = run(name, {}, agents=agents, schedule=schedule, network=NETWORK, agent=SLOW, seed=3, checks="cheap")
    assert simulated.result.rounds > 3
    check_closed_forms(name, simulated, "rounds")


@pytest.mark.parametrize(("counting", "each"), [("paper", 64 * 13), ("packed", 64 * 9 + 6)])
def test_bits_of_async_lin_ucb_are_a_matrix_a_vector_and_a_count(counting: str, each: int) -> None:
    """d = 3: 9 entries, or the 6 of a triangle, 3 and a number of pulls of 40."""
    schedule, messages = {"kind": "rounds", "turns": 20}, {"counting": counting}
    result = run("async_lin_ucb", {"gamma_u": 1.1}, agents=2, schedule=schedule, messages=messages).result
    assert result.totals["bits"] == each * result.totals["messages"] > 0


@pytest.mark.parametrize("refresh", ["at_once", "at_next_pull"])
@pytest.mark.parametrize("network", [NETWORK, GIVING_UP, {**GIVING_UP, "recovery": {"attempts": 0}}])
@pytest.mark.parametrize("name", ["async_lin_ucb", "async_lin_ucb_am"])
def test_an_agent_knows_what_the_server_believes_it_to_know(name: str, network: dict[str, Any], refresh: str) -> None:
    """Late, repeated and lost messages included, also those that are taken back as nobody sends them again: W, b and n
    are its uploads and the downloads that it got."""
    config = {"gamma_u": 1.3, "gamma_d": 1.1, "refresh": refresh}
    parts: dict[str, Any] = {"network": network, "agent": SLOW, "checks": "cheap"}
    simulated = run(name, config, agents=3, schedule={"kind": "rounds", "turns": 40}, **parts)
    assert (simulated.result.audit.given_up > 0) == (network is not NETWORK)
    server: Any = simulated.engine.server
    for agent, (W, b, count) in zip(simulated.engine.agents, server._known, strict=True):
        node: Any = agent
        node._take_in()
        assert pytest.approx(W, abs=1e-9) == node._W
        assert node._b == pytest.approx(b, abs=1e-9)
        assert node._known == count + node.unshared
        assert node.ridge.size == node.unshared


@pytest.mark.parametrize("blocking", [False, True])
def test_an_agent_goes_on_while_its_upload_is_under_way_unless_it_blocks(blocking: bool) -> None:
    simulated = run(
        "fed_lin_ucb",
        {"threshold": 0.2, "blocking": blocking},
        agents=2,
        network={"latency": 3.0},
        schedule={"kind": "rounds", "turns": 30},
    )
    pending: set[int] = set()
    meanwhile = 0
    for row in simulated.rows:
        event, node = row.event, row.node
        if event == tr.TRIGGER:
            pending.add(node)
        elif event == tr.MODEL:
            pending.remove(node)
        elif event == tr.TURN:
            meanwhile += node in pending
    assert (meanwhile > 10) == (not blocking)
    assert meanwhile == 0 or not blocking
    assert bool(simulated.events(tr.WAIT)) == blocking


def test_dis_and_glb_agents_wait_between_upload_and_model() -> None:
    for name in ("dis_lin_ucb", "fed_glb_ucb"):
        simulated = run(name, {}, agents=3, network={"latency": 1.0}, schedule={"kind": "rounds", "turns": 20})
        waits, resumes = simulated.events(tr.WAIT), simulated.events(tr.RESUME)
        assert len(waits) == len(resumes) == 3 * simulated.result.rounds


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"reward_range": [1.0, 1.0]}, r"reward_range\(=\[1.0, 1.0\]\) must be \[smallest, largest\]"),
        ({"reward_range": [0.0]}, "reward_range"),
        ({"c_mu": 0.3}, "less than or equal to 0.25"),
        ({"radius": 0.0}, "greater than 0"),
        ({"radius": 201.0}, r"radius\(=201\) must be <= 200 without c_mu"),
    ],
)
def test_bad_parameters_are_refused(parts: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        algorithm("fed_glb_ucb").config.model_validate(parts)


def test_servers_notice_sums_that_cannot_be() -> None:
    check, rows = SquaresCheck(lam=1.0), np.eye(3)
    assert list(check.violations(Gram(rows), 1)) == []
    assert list(check.violations(Gram(rows), 1)) == []
    [fell] = check.violations(Gram(rows[:2]), 2)
    assert fell.startswith("log det fell from 2.07944154 (version 1) to 1.38629436 (version 2)")
    [negative] = SquaresCheck(lam=1.0).violations(Gram(rows, np.diag([0.0, 0.0, -2.0])), 1)
    assert negative == "the server's sum of squares of version 1 has the eigenvalue -1 < 0"
    [negative] = SquaresCheck(lam=1.0).violations(np.array([1.0, -0.5]), 1)
    assert "eigenvalue -0.5 < 0" in negative


@pytest.mark.slow
@pytest.mark.parametrize("name", ORACLES)
def test_the_setting_of_the_paper_in_large(name: str) -> None:
    """d = 20, 20 arms, 50 agents, and as many turns as the plain loops can bear."""
    plan: dict[str, Any] = {
        "agents": 50,
        "seed": 1,
        "schedule": {"kind": "one_at_a_time", "turns": 1000},
        "problem": {**PROBLEM, "arms": {"kind": "ball", "dimension": 20, "count": 20}},
    }
    own = {"fed_glb_ucb": {"threshold": 5.0}, "async_lin_ucb": {"gamma_u": 2.0, "gamma_d": 2.0}}
    config = {"alpha": 0.1, "lam": 1.0, **own.get(name, {"threshold": 1.0})}
    simulated, expected = beside(name, ORACLES[name], config, plan)
    assert_equal(simulated, expected)
    assert expected.rounds > 1


def test_a_determinant_that_exactly_doubles_does_not_exceed_twice_its_value() -> None:
    """With lam = C = 1 a pull of length 1 doubles det(V_i); only a second one makes it more than that."""
    entry = algorithm("fed_lin_ucb")
    config = entry.config.model_validate({"lam": 1.0, "threshold": 1.0})
    agent: Any = entry.agent(NodeContext(0, 1, 3, config, Sharing(True), np.random.default_rng))
    arms = ArmSet(np.eye(3))
    assert agent.observe(arms, 0, 0.5) == []
    ((_, upload),) = agent.observe(arms, 0, 0.5)
    assert (upload.kind, upload.pulls) == ("upload", 2)
