"""CoKernelFC, CoKernelFB and their baselines: equal to the oracle, counted exactly, and as good as the paper says."""

import json
from collections.abc import Sequence
from math import log2
from typing import Any

import numpy as np
import pytest

from coband.agents.exploration.co_kernel import CoKernelAgent
from coband.agents.exploration.pure_exploration import rounds_of
from coband.extensions.conformance.runs import Run, run, world
from coband.simulator.arrays import BoolArray, FloatArray
from coband.simulator.core.records import trace as tr
from coband.simulator.experiments.statistics.estimates import wilson
from coband.simulator.maths.exploration.design import Design
from coband.simulator.maths.exploration.pairs import Pairs
from tests.every import every
from tests.everyday import everyday
from tests.oracles import cope
from tests.oracles.kernels import plain

KERNEL = {
    "kind": "product",
    "factors": [
        {"kind": "gaussian", "length_scale": 0.6, "columns": [0]},
        {"kind": "gaussian", "length_scale": 0.5, "columns": [1, 2]},
    ],
}


def samples_of(simulated: Run, agents: int, arms: int) -> list[cope.Counts]:
    """What the run pulled: [round][agent][arm]."""
    rounds = max(int(row.value) for row in simulated.events(tr.TURN))
    counts = np.zeros((rounds, agents, arms), dtype=int)
    phase = [0] * agents
    for row in simulated.rows:
        if row.event == tr.TURN:
            phase[row.node] = int(row.value)
        elif row.event == tr.CHOOSE:
            counts[phase[row.node] - 1, row.node, int(row.value)] = json.loads(row.detail or "")["pulls"]
    return counts.tolist()


def random_case(case: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """A random instance: tables of all three kinds of similarity and drawn functions of a product kernel."""
    rng = np.random.default_rng((3, case))
    agents = int(rng.integers(1, 5))
    features: dict[str, Any] = {
        "kind": "table",
        "tasks": ["same", "similar", "different"][case % 3],
        "size": 3,
        "ones": 1 + case % 2,
    }
    kernel: dict[str, Any] = {"kind": "linear"}
    if case % 4 == 3:
        kernel = KERNEL
        features = {"kind": "kernel", "kernel": KERNEL, "count": 4, "spread": float(rng.choice([0.0, 0.3, 1.0]))}
    plan = {
        "agents": agents,
        "seed": case,
        "problem": {"kind": "pure_exploration", "features": features, "gap": float(rng.uniform(0.3, 0.9))},
    }
    return plan, {"kernel": kernel, "xi": float(rng.choice([1e-4, 1e-3])), "epsilon": [0.1, 0.3, 0.05][case % 3]}


def check_against(simulated: Run, oracle: cope.CopeRun, agents: int) -> None:
    samples = samples_of(simulated, agents, len(oracle_arms(simulated)))
    assert [sum(map(sum, counts)) for counts in samples] == oracle.totals
    assert simulated.result.rounds == oracle.rounds == len(samples)
    assert sorted(message[1:] for message in simulated.messages) == sorted(oracle.messages)
    nodes: list[Any] = simulated.engine.agents
    assert [node.answer for node in nodes] == oracle.answers
    for node in nodes:
        assert [np.flatnonzero(row).tolist() for row in node.alive] == oracle.alive[-1]
    eliminated = np.array([sum(map(len, alive)) for alive in oracle.alive])
    arms = agents * len(oracle_arms(simulated))
    noted = [row for row in simulated.rows if row.event == tr.CODES["eliminate"] and row.node == 0]
    assert [float(row.detail or "") for row in noted] == (np.append(arms, eliminated[:-1]) - eliminated).tolist()


def oracle_arms(simulated: Run) -> Any:
    return simulated.engine.world.arms(0, 1)


def gram(simulated: Run, kernel: dict[str, Any]) -> Any:
    world: Any = simulated.engine.world
    points = world.knowledge().reshape(-1, world.dimension)
    return plain(kernel)(points, points)


@every("case", everyday(8, range(24)))
def test_fixed_confidence_without_delays_is_algorithm_1(case: int) -> None:
    plan, config = random_case(case)
    config |= {"delta": [0.05, 0.2][case % 2], "allocation": ["global", "individual"][case // 4 % 2]}
    simulated = run("co_kernel_fc", config, **plan)
    agents, fresh = plan["agents"], world(plan["problem"], plan["seed"], plan["agents"])
    oracle = cope.fixed_confidence(
        gram(simulated, config["kernel"]),
        agents,
        lambda v, r, counts: fresh.pull_batch(v, r, np.array(counts))[0],
        samples_of(simulated, agents, len(fresh.arms(0, 1))),
        config["delta"],
        config["epsilon"],
        config["xi"],
        config["allocation"] == "individual",
    )
    check_against(simulated, oracle, agents)


@every("rounds", ["all_pairs", "own_task"])
@every("leftover", ["keep", "spend"])
@every("case", everyday(4, range(20)))
def test_fixed_budget_without_delays_is_algorithm_2(case: int, leftover: str, rounds: str) -> None:
    plan, config = random_case(case)
    config |= {"budget": 400 + 100 * case, "leftover": leftover, "rounds": rounds}
    config["allocation"] = ["global", "individual"][case // 4 % 2]
    simulated = run("co_kernel_fb", config, **plan)
    agents, fresh = plan["agents"], world(plan["problem"], plan["seed"], plan["agents"])
    oracle = cope.fixed_budget(
        gram(simulated, config["kernel"]),
        agents,
        lambda v, r, counts: fresh.pull_batch(v, r, np.array(counts))[0],
        samples_of(simulated, agents, len(fresh.arms(0, 1))),
        config["budget"],
        config["epsilon"],
        config["xi"],
        individual=config["allocation"] == "individual",
        own_task=rounds == "own_task",
        spend=leftover == "spend",
    )
    check_against(simulated, oracle, agents)


def paper(tasks: str, gap: float) -> dict[str, Any]:
    """The paper's instance: V = 5, n = 6."""
    return {"kind": "pure_exploration", "features": {"kind": "table", "tasks": tasks}, "gap": gap}


@pytest.mark.parametrize("tasks", ["same", "similar", "different"])
@pytest.mark.parametrize("gap", [0.1, 0.3, 0.8])
def test_rounds_and_budget_of_the_paper(tasks: str, gap: float) -> None:
    """Right answers in at most log2(2/gap) + 1 rounds (Theorem 1), with fewer samples the more alike tasks are."""
    result = run("co_kernel_fc", {}, agents=5, problem=paper(tasks, gap)).result
    assert result.totals["correct"] == 1
    assert result.totals["correct_agents"] == 5
    assert result.totals["gap"] == pytest.approx(gap)
    assert result.rounds <= log2(2 / gap) + 1
    assert result.totals["samples_per_agent"] * 5 == pytest.approx(result.turns)


@pytest.mark.parametrize("name", ["co_kernel_fc", "ind_rage", "ind_alba", "ind_poly_alba"])
def test_right_in_at_least_the_confidence(name: str) -> None:
    """The share of runs in which all agents are right is 1 - delta or more."""
    runs = 40 if name.startswith("ind") else 200
    right = [
        run(name, {"delta": 0.05}, agents=2, seed=seed, trace="off", checks="cheap").result.totals["correct"]
        for seed in range(runs)
    ]
    assert np.mean(right) >= 0.95


@pytest.mark.slow
def test_errors_fall_with_the_budget_and_cooperation_helps() -> None:
    def error(name: str, budget: int) -> float:
        config = {"budget": budget}
        runs = [run(name, config, agents=4, problem=paper("same", 0.2), seed=seed, trace="off") for seed in range(25)]
        return float(np.mean([simulated.result.totals["error"] for simulated in runs]))

    small = {name: error(name, 200) for name in ("co_kernel_fb", "ind_peace_fb", "ind_uniform_fb")}
    assert small["co_kernel_fb"] < small["ind_peace_fb"] <= small["ind_uniform_fb"] + 0.1
    assert error("co_kernel_fb", 4000) < 0.1


def test_fixed_budget_is_kept() -> None:
    for name in ("co_kernel_fb", "ind_peace_fb", "ind_uniform_fb"):
        for allocation in ("global", "individual") if name == "co_kernel_fb" else (None,):
            config = {"budget": 500} | ({"allocation": allocation} if allocation else {})
            result = run(name, config, agents=5, problem=paper("similar", 0.5)).result
            assert result.turns <= 500 * 5


def test_a_slow_agent_delays_the_round() -> None:
    """Pulls take count * pull_time * slowness, and everybody waits for the slowest."""
    problem = paper("same", 0.8)
    schedule = {"kind": "phases", "pull_time": 0.5}
    quick = run("co_kernel_fc", {}, agents=5, problem=problem, schedule=schedule)
    straggler = {"stragglers": {"fraction": 0.2, "slowdown": 10}}
    slow = run("co_kernel_fc", {}, agents=5, problem=problem, schedule=schedule, agent=straggler)
    assert slow.result.turns == quick.result.turns
    longest = sum(max(map(sum, counts)) for counts in samples_of(quick, 5, 6))
    assert quick.result.simulated_time == pytest.approx(0.5 * longest)
    assert quick.result.simulated_time * 9.5 < slow.result.simulated_time <= quick.result.simulated_time * 10
    waits = [row for row in slow.events(tr.WAIT) if row.node >= 0]
    assert len(waits) >= 4 * slow.result.rounds


def test_a_limit_of_phases_leaves_agents_without_an_answer() -> None:
    problem = paper("same", 0.1)
    result = run("co_kernel_fc", {}, problem=problem, schedule={"kind": "phases", "limit": 1}).result
    assert (result.totals["correct"], result.totals["correct_agents"]) == (0, 0)
    assert result.rounds == 1
    assert not any(agent.done for agent in result.agents)


def test_an_agent_that_is_a_round_ahead_is_not_mixed_up() -> None:
    """Latencies of one pair only: its peers start the next round while it still waits."""
    network = {"latency": {"kind": "uniform", "high": 50.0}}
    late = run("co_kernel_fc", {}, agents=4, network=network).result
    prompt = run("co_kernel_fc", {}, agents=4).result
    assert (late.turns, late.rounds, late.totals["scalars"]) == (prompt.turns, prompt.rounds, prompt.totals["scalars"])


@pytest.mark.slow
def test_pulls_and_statistics_agree_in_the_errors_they_cause() -> None:
    errors = {}
    for sampling in ("statistics", "pulls"):
        problem = paper("same", 0.2) | {"sampling": sampling}
        found = [
            run("ind_uniform_fb", {"budget": 300}, agents=1, problem=problem, seed=seed, trace="off")
            for seed in range(400)
        ]
        errors[sampling] = wilson([simulated.result.totals["error"] for simulated in found])
    first, second = errors.values()
    assert first[0] < second[1]
    assert second[0] < first[1]


@pytest.mark.parametrize(
    ("omega", "rounds"), [(0.5, 1), (1.0, 1), (1.0 + 1e-12, 1), (1.5, 1), (2.0, 1), (2.1, 2), (4.0, 2), (4.1, 3)]
)
def test_there_is_a_round_for_each_halving_and_at_least_one(omega: float, rounds: int) -> None:
    assert rounds_of(omega, 1e-9) == rounds


@pytest.mark.parametrize("leftover", ["keep", "spend"])
def test_an_agents_arms_are_thinned_out_by_the_dimension_of_its_own_pairs(
    leftover: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of rounds comes from all pairs; nothing else asks for the dimension of pairs of several agents."""
    asked: list[list[int]] = []
    omega = Pairs.omega

    def noted(self: Pairs, arms: Sequence[int], xi: float) -> float:
        asked.append(list(arms))
        return omega(self, arms, xi)

    monkeypatch.setattr(Pairs, "omega", noted)
    monkeypatch.setattr(CoKernelAgent, "report_in_hindsight", lambda self, means: {})
    features = {"kind": "table", "tasks": "different", "size": 4, "ones": 1}
    problem = {"kind": "pure_exploration", "features": features, "gap": 0.5}
    run("co_kernel_fb", {"budget": 600, "leftover": leftover}, agents=3, problem=problem, checks="cheap")
    everything, *rest = asked
    assert everything == list(range(12))
    owners = [{arm // 4 for arm in arms} for arms in rest]
    assert {min(owner) for owner in owners} == {0, 1, 2}
    assert all(len(owner) == 1 for owner in owners)


def test_a_design_starts_from_that_of_the_round_before(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[FloatArray | None] = []
    found: list[FloatArray] = []
    design = Pairs.design

    def noted(self: Pairs, alive: BoolArray, xi: float, start: FloatArray | None = None) -> Design:
        made = design(self, alive, xi, start)
        begun.append(start)
        found.append(made.weights)
        return made

    monkeypatch.setattr(Pairs, "design", noted)
    monkeypatch.setattr(CoKernelAgent, "report_in_hindsight", lambda self, means: {})
    run("co_kernel_fc", {}, agents=1, problem=paper("different", 0.3), checks="cheap")
    assert len(begun) > 1
    assert begun[0] is None
    for start, before in zip(begun[1:], found, strict=False):
        np.testing.assert_array_equal(start, before)
