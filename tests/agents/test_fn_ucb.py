"""FN-UCB: a run without delays is algorithms 1 and 2 of Dai et al. 2023; sizes of payloads; conservation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from coband.agents.messages.synchronisation import SyncStart
from coband.simulator.arms import ArmSet
from coband.simulator.conformance.runs import PROBLEM, Run, algorithm, run, world
from coband.simulator.core.audit import trace as tr
from coband.simulator.core.nodes.node import SERVER, NodeContext, Sharing, UnsupportedScenario
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.maths.linalg.gram import Gram
from coband.simulator.maths.neural.training import Descent, Task
from tests.every import every
from tests.everyday import everyday
from tests.oracles import OracleRun, fn_ucb, with_ties

CONFIGURATIONS = 36


def random_case(case: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """A random scenario with 1 to 3 agents and random parameters; full and diagonal matrices alternate."""
    rng = np.random.default_rng((2, case))
    agents, turns, init = 1 + case // 2 % 3, int(rng.integers(10, 22)), str(rng.choice(["paper", "normal"]))
    schedule = {"kind": "rounds", "turns": turns}
    if case % 5 == 4:
        schedule = {"kind": "one_at_a_time", "turns": turns * agents}
    plan = {
        "agents": agents,
        "seed": case,
        "problem": {**PROBLEM, "arms": {"kind": "sphere", "dimension": int(rng.integers(2, 4)), "count": 4}},
        "schedule": schedule,
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
        "rescale": [None, True, False][int(rng.integers(3))],
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


def oracle_of(plan: dict[str, Any], config: dict[str, Any], simulated: Run) -> OracleRun:
    """The oracle's run on the same world and turns."""
    agents, streams = plan["agents"], Streams(plan["seed"])
    steps = [[agent] for agent, *_ in simulated.pulls]
    if plan["schedule"]["kind"] == "rounds":
        steps = [list(range(agents))] * plan["schedule"]["turns"]
    parameters = algorithm("fn_ucb").config.model_validate(config)
    return fn_ucb.run(
        steps,
        with_ties(world(plan["problem"], plan["seed"], agents), streams.ties),
        None,
        parameters,
        streams.coin,
        agents,
    )


def dense(W: Any) -> Any:
    return W.dense() if isinstance(W, Gram) else np.diag(W)


@every("case", everyday(8, range(CONFIGURATIONS)))
def test_a_run_without_delays_is_the_pseudo_code(case: int) -> None:
    plan, config = random_case(case)
    simulated = run("fn_ucb", config, **plan)
    oracle = oracle_of(plan, config, simulated)
    assert simulated.pulls == [pull[:4] for pull in oracle.pulls]
    if plan["schedule"]["kind"] == "rounds":
        assert sorted(simulated.messages, key=repr) == sorted(oracle.messages, key=repr)
    else:
        assert simulated.messages == oracle.messages
    totals = simulated.result.totals
    assert (totals["uplink_scalars"], totals["downlink_scalars"]) == (oracle.uplink, oracle.downlink)
    assert simulated.result.rounds == oracle.rounds
    server: Any = simulated.engine.server
    for agent, expected in zip(simulated.engine.agents, oracle.states, strict=True):  # type: ignore[attr-defined]
        node: Any = agent
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
            assert node.nets.theta_0 == pytest.approx(oracle.storage["theta"], abs=1e-8)  # type: ignore[attr-defined]


NETWORKS = [("none", "own"), ("weights", "own"), ("best", "own"), ("weights", "averaged"), ("best", "averaged")]


@pytest.mark.parametrize("threshold", [0.0, 2.0])
@pytest.mark.parametrize(("average", "train_from"), NETWORKS)
def test_what_is_averaged_and_where_training_starts(average: str, train_from: str, threshold: float) -> None:
    """With the network alone choosing, arms, weights and sizes are those of the pseudo-code for each option."""
    plan = {"agents": 3, "seed": 5, "problem": PROBLEM, "schedule": {"kind": "rounds", "turns": 15}}
    config = {
        "width": 4,
        "init": "normal",
        "use": "b_only",
        "steps": 3,
        "train_until": 10,
        "threshold": threshold,
        "average": average,
        "train_from": train_from,
    }
    simulated = run("fn_ucb", config, **plan)
    oracle = oracle_of(plan, config, simulated)
    assert simulated.pulls == [pull[:4] for pull in oracle.pulls]
    assert simulated.result.totals["uplink_scalars"] == oracle.uplink
    for node, expected in zip(networks(simulated), oracle.states, strict=True):  # type: ignore[attr-defined]
        assert node.nets.theta_own == pytest.approx(expected.theta_own, abs=1e-10)
        assert node.nets.theta_sync == pytest.approx(expected.theta_sync, abs=1e-10)


def networks(simulated: Run) -> list[Any]:
    """The agents, whose networks a test looks at."""
    return list(simulated.engine.agents)


def test_no_two_of_these_options_are_the_same() -> None:
    chosen = set()
    for average, train_from in NETWORKS:
        config = {"width": 4, "init": "normal", "use": "b_only", "average": average, "train_from": train_from}
        simulated = run("fn_ucb", config, seed=5, schedule={"kind": "rounds", "turns": 25}, checks="cheap")
        chosen.add(tuple(simulated.pulls))
    assert len(chosen) == len(NETWORKS)


@pytest.mark.parametrize("network", ["ideal", "random", "lossy"])
def test_the_best_network_is_the_one_of_the_smallest_loss(network: str) -> None:
    """theta_sync is the trained network of some agent, and on its data none of the others' losses was smaller."""
    from coband.simulator.conformance import kit

    config = {"width": 4, "init": "normal", "average": "best"}
    schedule = {"kind": "rounds", "turns": 12}
    nodes = networks(run("fn_ucb", config, agents=4, schedule=schedule, network=kit.NETWORKS[network]))
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


def test_one_agent_is_alone_whatever_is_averaged() -> None:
    config = {"width": 4, "init": "normal", "alpha_ramp": 5}
    schedule = {"kind": "rounds", "turns": 20}
    pulls = [
        run("fn_ucb", {**config, "average": average, "train_from": start}, agents=1, schedule=schedule).pulls
        for average, start in NETWORKS
    ]
    assert all(other == pulls[0] for other in pulls)


def test_a_network_that_has_diverged_is_never_the_best() -> None:
    context: Any = networks(run("fn_ucb", {"width": 4, "average": "best"}, schedule={"kind": "rounds", "turns": 2}))
    context[1].nets.theta_own = context[1].nets.theta_own * np.nan
    assert context[1].nets.loss() == np.inf
    assert context[0].nets.loss() < np.inf


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"aggregate_networks": False}, "aggregate_networks is called average: write average: none for false, weights"),
        (
            {"networks": "shared_storage", "average": "none"},
            r"average\(=none\) means nothing with networks: shared_stor",
        ),
        (
            {"networks": "shared_storage", "average": "best"},
            r"average\(=best\) means nothing with networks: shared_stor",
        ),
        (
            {"networks": "shared_storage", "train_from": "averaged"},
            r"train_from\(=averaged\) means nothing with networks",
        ),
        ({"average": "none", "train_from": "averaged"}, r"train_from\(=averaged\) needs an average, and there is none"),
        ({"width": 5}, r"width\(=5\) must be even with init: paper.*; write width: 6, or init: normal\."),
    ],
    ids=str,
)
def test_options_that_make_no_sense_are_refused(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        algorithm("fn_ucb").config.model_validate(config)


def test_inputs_without_equal_halves_are_refused_with_the_initial_weights_of_the_paper() -> None:
    config = algorithm("neural_ucb").config.model_validate({"init": "paper", "duplicate_input": False})
    with pytest.raises(UnsupportedScenario, match="halves|even"):
        config.network(3)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["neural_ucb", "neural_ts"])
def test_an_odd_width_is_refused_for_lone_agents_too(name: str) -> None:
    with pytest.raises(ValidationError, match=r"width\(=7\) must be even"):
        algorithm(name).config.model_validate({"width": 7})
    assert algorithm(name).config.model_validate({"width": 7, "init": "normal"}).width == 7  # type: ignore[attr-defined]


def scalars_of(kind: str, simulated: Run) -> set[int]:
    return {scalars for name, _, _, scalars in simulated.messages if name == kind}


@every("agents", [1, 2, 3])
@every("diagonal", [False, True])
@every("less_comm", [False, True])
@every("init", ["paper", "normal"])
def test_sizes_of_payloads(agents: int, diagonal: bool, less_comm: bool, init: str) -> None:
    """The table of messages: up 2p^2 + 2p + 1 (4p + 1), down p^2 + 2p + 1 + N p^2 (3p + 1 + N p), one for less_comm."""
    m, d, turns = 4, PROBLEM["arms"]["dimension"], 6
    p = m * 2 * d + m if init == "paper" else m * (d + 1) + m + 1
    config = {"width": m, "init": init, "diagonal": diagonal, "less_comm": less_comm, "steps": 2}
    simulated = run("fn_ucb", config, agents=agents, schedule={"kind": "rounds", "turns": turns})
    up = 4 * p + 1 if diagonal else 2 * p * p + 2 * p + 1
    sets = 1 if less_comm else agents
    down = 3 * p + 1 + sets * p if diagonal else p * p + 2 * p + 1 + sets * p * p
    assert (scalars_of("upload", simulated), scalars_of("model", simulated)) == ({up}, {down})
    assert scalars_of("sync_request", simulated) == scalars_of("sync_start", simulated) == {0}
    assert simulated.result.rounds == turns
    totals = simulated.result.totals
    assert (totals["uplink_scalars"], totals["downlink_scalars"]) == (turns * agents * up, turns * agents * down)


@every(
    "variant",
    [
        {"layers": 4},
        {"use": "a_only"},
        {"use": "b_only"},
        {"average": "none"},
        {"train_from": "averaged"},
        {"alpha": "theory"},
        {"train": "paper"},
        {"precision": "float32"},
        {"networks": "shared_storage"},
        {"duplicate_input": True},
        {"training_points": "communicated"},
        {"trigger": "full"},
        {"rescale": True},
    ],
    ids=str,
)
@every("diagonal", [False, True])
def test_every_variant_sends_the_same(variant: dict[str, Any], diagonal: bool) -> None:
    m, turns, agents, layers = 4, 5, 2, variant.get("layers", 2)
    d = PROBLEM["arms"]["dimension"] * (2 if "duplicate_input" in variant else 1)
    p = m * (d + 1) + (layers - 2) * m * (m + 1) + m + 1
    config = {"width": m, "init": "normal", "diagonal": diagonal, "steps": 2, **variant}
    simulated = run("fn_ucb", config, agents=agents, schedule={"kind": "rounds", "turns": turns})
    each = turns * agents * (4 * p + 1 if diagonal else 2 * p * p + 2 * p + 1)
    totals = simulated.result.totals
    assert (totals["uplink_scalars"], totals["downlink_scalars"]) == (each, each)


@pytest.mark.parametrize("train_from", ["own", "averaged"])
@pytest.mark.parametrize("diagonal", [False, True])
def test_the_best_network_costs_its_loss_once_per_upload(diagonal: bool, train_from: str) -> None:
    p, turns, agents = 4 * 4 + 5, 5, 3
    config = {"width": 4, "init": "normal", "diagonal": diagonal, "average": "best", "train_from": train_from}
    simulated = run("fn_ucb", config, agents=agents, schedule={"kind": "rounds", "turns": turns})
    base = 4 * p + 1 if diagonal else 2 * p * p + 2 * p + 1
    assert (scalars_of("upload", simulated), scalars_of("model", simulated)) == ({base + 1}, {base})
    totals = simulated.result.totals
    assert totals["uplink_scalars"] == turns * agents * (base + 1)
    assert totals["downlink_scalars"] == turns * agents * base


@pytest.mark.parametrize("network", ["ideal", "random", "narrow", "lossy"])
@pytest.mark.parametrize("diagonal", [False, True])
def test_the_sum_at_the_server_is_that_of_all_pulls(network: str, diagonal: bool) -> None:
    """W_sync and what agents still hold are the sum of g g^T over all pulls, whatever the network does."""
    from coband.simulator.conformance import kit

    config = {"width": 4, "threshold": 3.0, "steps": 1, "diagonal": diagonal}
    simulated = run(
        "fn_ucb",
        config,
        agents=3,
        seed=2,
        schedule={"kind": "rounds", "turns": 14},
        network=kit.NETWORKS[network],
        agent=kit.AGENTS["slow"],
    )
    assert simulated.result.rounds > 1
    nodes: list[Any] = simulated.engine.agents
    server: Any = simulated.engine.server
    fresh = world(PROBLEM, 2, 3)
    total, rewards = 0.0, 0.0
    for agent, turn, arm, reward in simulated.pulls:
        x = fresh.arms(agent, turn)[arm]
        g = nodes[0].nets.network.features(nodes[0].nets.theta_0, np.hstack([x, x])[None] / np.sqrt(2.0))[0]
        total, rewards = total + np.outer(g, g), rewards + reward * g
    held = [agent._ridge.news(1000) for agent in nodes]
    expected = np.diag(np.diag(total)) if diagonal else total
    assert dense(server.statistics) + sum(dense(W) for W, _ in held) == pytest.approx(expected, abs=1e-8)
    assert server.B + sum(B for _, B in held) == pytest.approx(rewards, abs=1e-8)


def test_one_agent_with_the_first_bound_alone_is_linear_ucb_on_tangent_features() -> None:
    config = {"width": 6, "use": "a_only", "lam": 0.5, "nu": 0.7}
    simulated = run("fn_ucb", config, agents=1, schedule={"kind": "rounds", "turns": 40})
    node: Any = simulated.engine.agents[0]
    fresh, lam = world(PROBLEM, 0, 1), 0.5
    V, b, chosen = lam * np.eye(node.nets.network.size), np.zeros(node.nets.network.size), []
    for turn in range(1, 41):
        arms = fresh.arms(0, turn)
        G = node.nets.network.features(node.nets.theta_0, np.hstack([arms, arms]) / np.sqrt(2.0))
        widths = np.sqrt(np.einsum("ij,ij->i", G, np.linalg.solve(V, G.T).T))
        arm = int(np.argmax(G @ np.linalg.solve(V, b) + 0.7 * np.sqrt(lam) * widths))
        reward, _ = fresh.pull(0, turn, arm)
        V, b = V + np.outer(G[arm], G[arm]), b + reward * G[arm]
        chosen.append(arm)
    assert [pull[2] for pull in simulated.pulls] == chosen


def test_a_straggler_holds_the_synchronisation_up() -> None:
    """Who has uploaded waits until the slowest agent's upload has come and the broadcast is back."""
    network = {"latency": 0.1, "links": [{"agents": [1], "latency": 2.0}]}
    simulated = run(
        "fn_ucb", {"width": 4, "steps": 1}, agents=3, schedule={"kind": "rounds", "turns": 4}, network=network
    )
    acting = [row.time for row in simulated.events(tr.CHOOSE) if row.node == 0]
    assert acting == pytest.approx([1.0, 5.2, 5.2, 5.2])
    assert simulated.result.stalled == 0


@pytest.mark.parametrize(
    ("threshold", "init", "precision"),
    everyday(
        2,
        [
            (0.0, "paper", "float64"),
            (2.0, "normal", "float32"),
            (2.0, "normal", "float64"),
            (0.0, "normal", "float32"),
            (2.0, "paper", "float32"),
            (2.0, "paper", "float64"),
            (0.0, "normal", "float64"),
            (0.0, "paper", "float32"),
        ],
    ),
)
def test_shared_work_changes_no_bit(threshold: float, init: str, precision: str) -> None:
    """Arms looked at and networks trained together give what every agent would have found alone."""
    config = {"init": init, "threshold": threshold, "alpha_ramp": 20, "steps": 5, "precision": precision}
    check_shared_work(config)


@pytest.mark.parametrize(("average", "train_from"), everyday(2, NETWORKS))
def test_shared_work_changes_no_bit_whatever_is_averaged(average: str, train_from: str) -> None:
    check_shared_work({"alpha_ramp": 20, "steps": 5, "average": average, "train_from": train_from})


def check_shared_work(config: dict[str, Any]) -> None:
    """Runs with and without shared work have the same fingerprint, weights and inverses."""
    both = [
        run("fn_ucb", config, agents=4, schedule={"kind": "rounds", "turns": 28}, share=share, checks="cheap")
        for share in (True, False)
    ]
    assert both[0].result.fingerprint == both[1].result.fingerprint
    for together, alone in zip(both[0].engine.agents, both[1].engine.agents, strict=True):
        mine: Any = together
        own: Any = alone
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


@pytest.mark.parametrize("when", ["always", "alpha"])
def test_networks_are_trained_at_every_synchronisation_or_once_they_have_a_say(when: str) -> None:
    """The networks have weight alpha in the choice: 0 up to turn 3, then 1/5, 2/5, ..."""
    config = {"width": 4, "steps": 2, "threshold": 0.0, "alpha_start": 3, "alpha_ramp": 5, "train_when": when}
    simulated = run("fn_ucb", config, agents=2, schedule={"kind": "rounds", "turns": 6})
    uploads: list[Any] = [message for message in simulated.sent if message.kind == "upload"]
    nodes: list[Any] = list(simulated.engine.agents)
    assert [upload.alpha for upload in uploads] == pytest.approx([0, 0, 0, 0, 0, 0, 0.2, 0.2, 0.4, 0.4, 0.6, 0.6])
    trained = [not np.array_equal(upload.theta, nodes[0].nets.theta_0) for upload in uploads]
    assert trained == [when == "always" or upload.alpha > 0 for upload in uploads]


def test_with_the_published_training_set_the_first_training_has_one_point() -> None:
    """Points of turns without training do not come in later: n, and with it the decay lam/n, begins at 1."""
    config = {"width": 4, "init": "normal", "steps": 3, "lam": 10.0, "alpha_start": 3, "train_when": "alpha"}
    one, all_points = (
        run("fn_ucb", {**config, "training_points": points}, agents=1, schedule={"kind": "rounds", "turns": 4})
        for points in ("communicated", "all")
    )
    data = [simulated.engine.agents[0].nets.data.size for simulated in (one, all_points)]  # type: ignore[attr-defined]
    assert data == [1, 4]
    node: Any = one.engine.agents[0]
    task = Task(node.nets.theta_0, node.nets.theta_0, node.nets.data.points, node.nets.data.rewards)
    assert np.array_equal(node.nets.theta_own, Descent(node.nets.network, 3, None, 10.0)(task))


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid")
@pytest.mark.parametrize("networks", ["separate", "shared_storage"])
@pytest.mark.parametrize(("init", "lr"), [("normal", 1.3), ("paper", 1.6)])
def test_a_network_whose_training_diverges_starts_again(init: str, lr: float, networks: str) -> None:
    plan: dict[str, Any] = {"agents": 2, "seed": 3, "problem": PROBLEM, "schedule": {"kind": "rounds", "turns": 12}}
    config = {"width": 4, "steps": 30, "lr": lr, "lam": 0.5, "init": init, "networks": networks}
    simulated = run("fn_ucb", config, **plan)
    oracle = oracle_of(plan, config, simulated)
    assert simulated.pulls == [pull[:4] for pull in oracle.pulls]
    nodes: list[Any] = simulated.engine.agents
    restarts = [node.report()["restarts"] for node in nodes]
    assert 0 < sum(restarts) < 2 * 12
    assert min(node.report()["trainings_converge"] for node in nodes) == 0
    for node, expected in zip(nodes, oracle.states, strict=True):  # type: ignore[attr-defined]
        theta = oracle.storage["theta"] if networks == "shared_storage" else expected.theta_own  # type: ignore[attr-defined]
        assert node.nets.theta_own == pytest.approx(theta, rel=1e-6, abs=1e-9)


def test_training_stops() -> None:
    config = {"width": 4, "steps": 2, "train_until": 3}
    weights = [run("fn_ucb", config, agents=1, schedule={"kind": "rounds", "turns": turns}) for turns in (2, 3, 4, 9)]
    two, three, four, nine = (simulated.engine.agents[0].nets.theta_own for simulated in weights)  # type: ignore[attr-defined]
    assert not np.array_equal(two, three)
    assert np.array_equal(three, four)
    assert np.array_equal(three, nine)


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
