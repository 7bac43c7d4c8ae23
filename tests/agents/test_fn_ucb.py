"""FN-UCB: a run without delays is algorithms 1 and 2 of Dai et al. 2023; sizes of payloads; conservation."""

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from coband.agents.messages.synchronisation import SyncStart
from coband.extensions.conformance import kit
from coband.extensions.conformance.runs import PROBLEM, Run, algorithm, run
from coband.simulator.arms import ArmSet
from coband.simulator.core.nodes.node import SERVER, NodeContext, Sharing, UnsupportedScenario
from coband.simulator.core.records import trace as tr
from coband.simulator.maths.linalg.gram import Gram
from tests.agents.beside import assert_equal, beside, schedule_of
from tests.every import every
from tests.everyday import everyday
from tests.oracles import fn_ucb

CONFIGURATIONS = 36


def random_case(case: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """A random scenario with 1 to 3 agents and random parameters; full and diagonal matrices alternate."""
    rng = np.random.default_rng((2, case))
    agents, turns, init = 1 + case // 2 % 3, int(rng.integers(10, 22)), str(rng.choice(["paper", "normal"]))
    plan = {
        "agents": agents,
        "seed": case,
        "problem": {**PROBLEM, "arms": {"kind": "sphere", "dimension": int(rng.integers(2, 4)), "count": 4}},
        "schedule": schedule_of(case % 5 != 4, agents, turns),
    }
    config: dict[str, Any] = {
        "width": int(rng.choice([2, 4, 6])),
        "layers": int(rng.choice([2, 2, 3, 4])),
        "init": init,
        "duplicate_input": [None, True][int(rng.integers(2))],
        "diagonal": bool(case % 2),
        "lam": float(rng.uniform(0.1, 2.0)),
        "nu": float(rng.choice([0.1, 1.0])),
        "nu2": float(rng.choice([0.1, 1.0])),
        "threshold": float(rng.choice([0.0, 0.0, 1.0, 5.0])),
        "trigger": str(rng.choice(["diagonal", "full"])),
        "less_comm": bool(rng.integers(2)),
        "alpha": str(rng.choice(["schedule", "theory"])),
        "alpha_start": int(rng.integers(4)),
        "alpha_ramp": int(rng.choice([1, 5, 10])),
        "alpha_points": 10,
        "use": str(rng.choice(["both", "both", "both", "a_only", "b_only"])),
        "average": ["none", "weights", "weights", "best"][int(rng.integers(4))],
        "steps": int(rng.integers(1, 4)),
        "lr": [None, 0.02][int(rng.integers(2))],
        "train": str(rng.choice(["public", "paper"])),
        "train_until": int(rng.choice([8, 100])),
        "train_when": str(rng.choice(["always", "alpha"])),
        "training_points": str(rng.choice(["all", "communicated"])),
        "networks": str(rng.choice(["separate", "separate", "shared_storage"])),
        "train_from": str(rng.choice(["own", "averaged"])),
    }
    if config["train"] == "paper":
        config["lr"] = None
    if config["networks"] == "shared_storage":
        config |= {"average": "weights", "train_from": "own"}
    if config["average"] == "none":
        config["train_from"] = "own"
    return plan, config


def dense(W: Any) -> Any:
    return W.dense() if isinstance(W, Gram) else np.diag(W)


@every("case", everyday(8, range(CONFIGURATIONS)))
def test_a_run_without_delays_is_the_pseudo_code(case: int) -> None:
    plan, config = random_case(case)
    simulated, oracle = beside("fn_ucb", fn_ucb, config, plan)
    assert_equal(simulated, oracle)
    server: Any = simulated.engine.server
    for node, expected in zip(networks(simulated), oracle.states, strict=True):
        assert dense(server.statistics) == pytest.approx(expected.W_sync, abs=1e-9)
        assert node.local.inverse() == pytest.approx(
            np.diag(1 / np.diag(expected.V_local)) @ np.ones(len(expected.B_new))
            if config["diagonal"]
            else np.linalg.inv(expected.V_local),
            abs=1e-9,
        )
        assert node.alpha == pytest.approx(expected.alpha, abs=1e-9)
        if config["networks"] == "separate":
            assert node.nets.theta_sync == pytest.approx(expected.theta_sync, abs=1e-8)
            assert node.nets.theta_own == pytest.approx(expected.theta_own, abs=1e-8)
        else:
            assert node.nets.theta_0 == pytest.approx(oracle.storage["theta"], abs=1e-8)


def networks(simulated: Run) -> list[Any]:
    """The agents, whose networks a test looks at."""
    return list(simulated.engine.agents)


NETWORKS = [("none", "own"), ("weights", "own"), ("best", "own"), ("weights", "averaged"), ("best", "averaged")]


@every("average, train_from", NETWORKS)
def test_what_is_averaged_and_where_training_starts(average: str, train_from: str) -> None:
    """With the network alone choosing, arms, weights and sizes are those of the pseudo-code for each option."""
    plan = {"agents": 3, "seed": 5, "problem": PROBLEM, "schedule": {"kind": "rounds", "turns": 15}}
    config = {
        "width": 4,
        "init": "normal",
        "use": "b_only",
        "steps": 3,
        "train_until": 10,
        "threshold": 2.0 if train_from == "own" else 0.0,
        "average": average,
        "train_from": train_from,
    }
    simulated, oracle = beside("fn_ucb", fn_ucb, config, plan)
    assert_equal(simulated, oracle)
    for node, expected in zip(networks(simulated), oracle.states, strict=True):
        assert node.nets.theta_own == pytest.approx(expected.theta_own, abs=1e-10)
        assert node.nets.theta_sync == pytest.approx(expected.theta_sync, abs=1e-10)


def test_the_best_network_is_the_one_of_the_smallest_loss() -> None:
    """theta_sync is the trained network of some agent, and on its data none of the others' losses was smaller."""
    config = {"width": 4, "init": "normal", "average": "best"}
    schedule = {"kind": "rounds", "turns": 12}
    nodes = networks(run("fn_ucb", config, agents=4, schedule=schedule, network=kit.NETWORKS["lossy"]))
    losses = []
    for node in nodes:
        inputs, rewards = node.nets.data.points, node.nets.data.rewards
        losses.append(
            np.mean(
                [
                    (node.nets.network.values(node.nets.theta_own, x[None])[0] - y) ** 2
                    for x, y in zip(inputs, rewards, strict=True)
                ]
            )
        )
    best = nodes[int(np.argmin(losses))].nets.theta_own
    assert all(np.array_equal(node.nets.theta_sync, best) for node in nodes)


def test_a_network_that_has_diverged_is_never_the_best() -> None:
    context: Any = networks(run("fn_ucb", {"width": 4, "average": "best"}, schedule={"kind": "rounds", "turns": 2}))
    context[1].nets.theta_own = context[1].nets.theta_own * np.nan
    assert context[1].nets.loss() == np.inf
    assert context[0].nets.loss() < np.inf


@every(
    "name, config, message",
    [
        ("fn_ucb", {"aggregate_networks": False}, "aggregate_networks is called average: write average: none for"),
        (
            "fn_ucb",
            {"networks": "shared_storage", "average": "none"},
            r"average\(=none\) means nothing with networks: s",
        ),
        (
            "fn_ucb",
            {"networks": "shared_storage", "average": "best"},
            r"average\(=best\) means nothing with networks: s",
        ),
        ("fn_ucb", {"networks": "shared_storage", "train_from": "averaged"}, r"train_from\(=averaged\) means nothing"),
        (
            "fn_ucb",
            {"average": "none", "train_from": "averaged"},
            r"train_from\(=averaged\) needs an average, and there",
        ),
        ("fn_ucb", {"width": 5}, r"width\(=5\) must be even with init: paper.*; write width: 6, or init: normal\."),
        ("neural_ucb", {"width": 7}, r"width\(=7\) must be even"),
        ("neural_ts", {"width": 7}, r"width\(=7\) must be even"),
    ],
)
def test_options_that_make_no_sense_are_refused(name: str, config: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        algorithm(name).config.model_validate(config)


def test_inputs_without_equal_halves_are_refused_with_the_initial_weights_of_the_paper() -> None:
    config = algorithm("neural_ucb").config.model_validate({"init": "paper", "duplicate_input": False})
    with pytest.raises(UnsupportedScenario, match="halves|even"):
        config.network(3)  # type: ignore[attr-defined]


def test_a_straggler_holds_the_synchronisation_up() -> None:
    """Who has uploaded waits until the slowest agent's upload has come and the broadcast is back."""
    network = {"latency": 0.1, "links": [{"agents": [1], "latency": 2.0}]}
    simulated = run(
        "fn_ucb", {"width": 4, "steps": 1}, agents=3, schedule={"kind": "rounds", "turns": 4}, network=network
    )
    acting = [row.time for row in simulated.events(tr.CHOOSE) if row.node == 0]
    assert acting == pytest.approx([1.0, 5.2, 5.2, 5.2])
    assert simulated.result.stalled == 0


@every(
    "config",
    everyday(
        2,
        [
            {"threshold": 2.0, "init": "normal", "precision": "float32", "average": "best", "train_from": "averaged"},
            {"threshold": 0.0},
            {"threshold": 2.0, "init": "normal"},
            {"threshold": 0.0, "precision": "float32"},
            *({"average": average, "train_from": train_from} for average, train_from in NETWORKS),
        ],
    ),
)
def test_shared_work_changes_no_bit(config: dict[str, Any]) -> None:
    """Arms looked at and networks trained together give what every agent would have found alone: runs with and without
    shared work have the same fingerprint, weights and inverses."""
    config = {"alpha_ramp": 20, "steps": 5, **config}
    both = [
        run("fn_ucb", config, agents=4, schedule={"kind": "rounds", "turns": 28}, share=share, checks="cheap")
        for share in (True, False)
    ]
    assert both[0].result.fingerprint == both[1].result.fingerprint
    for mine, own in zip(networks(both[0]), networks(both[1]), strict=True):
        assert np.array_equal(mine.nets.theta_own, own.nets.theta_own)
        assert np.array_equal(mine.nets.theta_sync, own.nets.theta_sync)
        assert np.array_equal(mine.local.inverse(), own.local.inverse())
        assert np.array_equal(mine._synchronised.ridge.theta, own._synchronised.ridge.theta)


def test_shared_storage_is_one_set_of_weights_even_without_shared_work() -> None:
    config = {"width": 4, "networks": "shared_storage", "steps": 3}
    runs = [run("fn_ucb", config, schedule={"kind": "rounds", "turns": 8}, share=share) for share in (True, False)]
    assert runs[0].result.fingerprint == runs[1].result.fingerprint
    nodes: list[Any] = runs[1].engine.agents
    assert nodes[0].nets.theta_0 is nodes[2].nets.theta_own
    separate = run("fn_ucb", {**config, "networks": "separate"}, schedule={"kind": "rounds", "turns": 8})
    assert [pull[2] for pull in separate.pulls] != [pull[2] for pull in runs[0].pulls]


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid")
@pytest.mark.parametrize(("init", "lr", "storage"), [("normal", 1.3, "separate"), ("paper", 1.6, "shared_storage")])
def test_a_network_whose_training_diverges_starts_again(init: str, lr: float, storage: str) -> None:
    plan: dict[str, Any] = {"agents": 2, "seed": 3, "problem": PROBLEM, "schedule": {"kind": "rounds", "turns": 12}}
    config = {"width": 4, "steps": 30, "lr": lr, "lam": 0.5, "init": init, "networks": storage}
    simulated, oracle = beside("fn_ucb", fn_ucb, config, plan)
    assert_equal(simulated, oracle)
    nodes = networks(simulated)
    restarts = [node.report()["restarts"] for node in nodes]
    assert 0 < sum(restarts) < 2 * 12
    assert min(node.report()["trainings_converge"] for node in nodes) == 0
    for node, expected in zip(nodes, oracle.states, strict=True):
        theta = oracle.storage["theta"] if storage == "shared_storage" else expected.theta_own
        assert node.nets.theta_own == pytest.approx(theta, rel=1e-6, abs=1e-9)


def test_realised_regret_may_be_negative_in_a_turn() -> None:
    problem = {**PROBLEM, "noise": 1.0}
    schedule = {"kind": "rounds", "turns": 20}
    expected, realised = (
        run("lin_ucb", {}, schedule=schedule, problem={**problem, "regret": kind}) for kind in ("expected", "realised")
    )
    assert np.diff(expected.result.regret_series).min() >= 0
    assert np.diff(realised.result.regret_series).min() < 0
    assert expected.result.reward == realised.result.reward
    assert [pull[2] for pull in expected.pulls] == [pull[2] for pull in realised.pulls]


def test_without_any_deviation_the_weight_of_the_network_is_zero() -> None:
    """At the point 0 the features of a network without biases are 0, and so are all deviations."""
    entry = algorithm("fn_ucb")
    config = entry.config.model_validate({"width": 4, "steps": 2, "init": "paper", "alpha": "theory"})
    agent: Any = entry.agent(NodeContext(0, 1, 3, config, Sharing(True), np.random.default_rng))
    arms = ArmSet(np.zeros((2, 3)))
    agent.observe(arms, agent.choose(arms), 0.5)
    ((_, upload),) = agent.receive(SyncStart(round=1), SERVER)
    assert upload.alpha == 0.0
