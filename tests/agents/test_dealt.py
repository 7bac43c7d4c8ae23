"""DELB and RCLB: runs are the pseudo-code, pulls are dealt out, medians are near the truth, long phases are noticed."""

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import stats

from coband.agents.linear.rclb import RclbConfig
from coband.extensions.conformance.runs import FIXED_PROBLEM, Run, batches, problem_of, run, world
from coband.simulator.maths.exploration import g_optimal
from coband.simulator.maths.exploration.design import DesignError
from coband.simulator.maths.exploration.g_optimal import deal, median_width
from tests.agents.beside import agent_of, assert_equal, beside, schedule_of
from tests.every import every
from tests.everyday import everyday
from tests.oracles import delb, rclb

ORACLES = {"delb": delb, "rclb": rclb}


@cache
def solved(name: str, case: int, counting: str = "paper") -> tuple[Run, Any]:
    """1 to 6 agents, 2 to 30 arms of a ball, sphere or box."""
    rng = np.random.default_rng((9, case))
    agents, turns = int(rng.integers(1, 7)), int(rng.integers(60, 200))
    domain = {
        "kind": ["ball", "sphere", "box"][case % 3],
        "dimension": int(rng.integers(2, 5)),
        "points": int(rng.integers(2, 31)),
    }
    noise = float(rng.uniform(0.05, 0.5))
    reward = {"kind": "linear", "theta": "sphere"}
    problem = {"kind": "fixed_domain", "domain": domain, "reward": reward, "noise": noise}
    schedule = schedule_of(int(rng.integers(2)), agents, turns)
    config: dict[str, Any] = {"C": float(rng.uniform(0.005, 0.05)), "gap": [None, 0.1][case % 2]}
    if name == "delb":
        config["horizon"] = [None, turns // 3, 2 * turns][case // 2 % 3]
    if name == "rclb":
        config |= {"C": float(rng.uniform(0.2, 2.0)), "sub_gaussian": noise / 2, "delta": float(rng.uniform(0.05, 0.5))}
        config |= {"liars": float(rng.choice([0.0, 0.2, 0.4])), "width": ["theory", 0.5][int(rng.integers(2))]}
    plan = {
        "agents": agents,
        "seed": case,
        "problem": problem,
        "schedule": schedule,
        "messages": {"counting": counting},
    }
    return beside(name, ORACLES[name], config, plan)


@every("case", everyday(8, range(24)))
@every("name", ORACLES)
def test_a_run_without_delays_is_the_pseudo_code(name: str, case: int) -> None:
    simulated, expected = solved(name, case)
    assert_equal(simulated, expected)
    server: Any = simulated.engine.server
    assert server.active.tolist() == expected.active
    assert all(agent.active.tolist() == expected.active for agent in simulated.engine.agents)  # type: ignore[attr-defined]


@every("name", ORACLES)
def test_the_random_cases_reach_what_they_are_meant_to_test(name: str) -> None:
    runs = [solved(name, case)[0].result for case in range(8)]
    assert max(result.rounds for result in runs) >= 3
    assert min(result.totals["arms_left"] for result in runs) < 3


@every("counting", ["paper", "packed"])
@every("case", range(3))
def test_bits_of_rclb_are_d_numbers_up_and_numbers_of_arms_down(counting: str, case: int) -> None:
    simulated, expected = solved("rclb", case, counting)
    context = simulated.engine.agents[0].context
    assert context.domain is not None
    index = 64 if counting == "paper" else math.ceil(math.log2(len(context.domain)))
    up = 64 * context.dimension * expected.rounds
    assert simulated.result.totals["bits"] == context.agents * (up + index * sum(expected.named)) > 0


@every("counting", ["paper", "packed"])
@every("case", range(3))
def test_bits_of_delb_are_means_up_and_dealt_arms_and_theta_down(counting: str, case: int) -> None:
    """Of an arm the server sends its number, ceil(log2 K) bits, and how often to pull it, ceil(log2(T + 1))."""
    simulated, expected = solved("delb", case, counting)
    context, totals = simulated.engine.agents[0].context, simulated.result.totals
    assert context.domain is not None
    arm = math.ceil(math.log2(len(context.domain))) + math.ceil(math.log2(len(simulated.pulls) + 1))
    numbers = totals["means_sent"] + context.agents * context.dimension * expected.rounds
    assert totals["bits"] == 64 * numbers + totals["arms_dealt"] * (128 if counting == "paper" else arm) > 0


@every("agents", [1, 2, 7, 10])
@every("pulls", [1e-30, 3.0, 100.0, 12345.6])
def test_pulls_are_dealt_out_evenly_and_in_order(agents: int, pulls: float) -> None:
    X = np.random.default_rng(agents).standard_normal((20, 3))
    dealt = deal(X, np.arange(5, 20), pulls, agents, 3.0)
    lengths = {int(counts.sum()) for _, counts in dealt}
    assert len(lengths) == 1
    assert pulls <= agents * lengths.pop() <= pulls + 15 + agents
    arms = np.concatenate([own for own, _ in dealt])
    assert (np.diff(arms) >= 0).all()
    assert arms.min() >= 5


@every("agents", [1, 2, 9, 10, 25])
@every("liars", [0.0, 0.2, 0.45])
def test_a_median_is_as_often_too_high_as_it_may_be(agents: int, liars: float) -> None:
    """All liars say infinity; by simulation, and by the inequality that says how the threshold grows."""
    delta, lying = 0.05, math.floor(liars * agents + 1e-9)
    t = median_width(agents, liars, delta)
    said = np.full((40_000, agents), np.inf)
    said[:, lying:] = np.random.default_rng(agents).standard_normal((40_000, agents - lying))
    # of an even number, the larger one of the two in the middle: their mean is above less often
    above = float((np.sort(said, axis=1)[:, agents // 2] > t).mean())
    assert above == pytest.approx(delta, abs=4 * math.sqrt(delta / 40_000))
    bound = 0.5 + (liars / 2 + math.sqrt(-math.log(delta) / (2 * agents))) / (1 - liars)
    assert stats.norm.cdf(t) <= bound
    assert median_width(agents + 2, liars, delta) < t or lying < math.floor(liars * (agents + 2) + 1e-9)


@every("name", [*ORACLES, "pls"])
def test_a_first_phase_that_never_ends_is_warned_of(name: str) -> None:
    simulated = run(name, {"C": 600.0}, problem=FIXED_PROBLEM)
    (warning,) = simulated.engine.agents[0].warnings()
    assert warning.startswith("the first phase has")  # of which label, whoever passes it on says
    assert simulated.result.rounds == 0


@every(
    ("name", "config"),
    [
        ("delb", {"C": 1e30}),
        ("rclb", {"C": 1e30}),
        ("pls", {"C": 1e30}),
        ("fed_pe", {"growth": 10**30}),
        ("ind_alba", {"norm": 1e9}),
        ("ind_alba", {"norm": 1e9, "constants": "public_code"}),
        ("ind_poly_alba", {"norm": 1e9}),
        ("ind_rage", {"epsilon": 1e-20}),
        ("co_kernel_fc", {"epsilon": 1e-20}),
        ("co_kernel_fb", {"budget": 10**30}),
        ("ind_peace_fb", {"budget": 10**30}),
        ("ind_uniform_fb", {"budget": 10**30}),
    ],
)
def test_samples_that_cannot_be_counted_break_a_run_off(name: str, config: dict[str, Any]) -> None:
    with pytest.raises(DesignError, match=r"samples are wanted at once; 2\^53 can be counted\. Ask for fewer\."):
        run(name, config, problem=problem_of(name), schedule={"kind": "phases"} if batches(name) else None)


@every("name", ["delb", "rclb", "pls", "fed_pe"])
def test_a_design_that_is_not_found_says_what_to_change(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(g_optimal, "_SWEEPS", 5)
    with pytest.raises(DesignError, match=r"after 5 sweeps, above its bound . \+ 1e-12; give a larger gap"):
        run(name, {"gap": 1e-12}, problem=problem_of(name) if name == "fed_pe" else FIXED_PROBLEM)


@every("adversary", [{"stop": None}, {"stop": 30.0}, {"start": 30.0}, {"messages": ["phase_estimate"]}])
@every("silent", [[3], [0, 7]])
def test_who_is_silent_counts_as_a_liar(adversary: dict[str, Any], silent: list[int]) -> None:
    """2 of 10 agents may lie: without as many the others go on, a third one ends it; with all checks."""
    domain = {"kind": "sphere", "dimension": 2, "points": 12, "method": "uniform"}
    problem = {"kind": "fixed_domain", "domain": domain, "reward": {"kind": "linear", "theta": "sphere"}, "noise": 0.1}

    def rounds(who: list[int], **more: Any) -> Any:
        lies = [{"agents": who, "behaviour": {"kind": "silent"}, **adversary}]
        config, schedule = {"sub_gaussian": 0.1, "C": 1.0}, {"kind": "rounds", "turns": 90}
        return run(
            "rclb", config, agents=10, problem=problem, adversaries=lies, schedule=schedule, **more
        ).engine.server

    server = rounds(silent)
    assert server.rounds >= 2
    assert not server.closed
    assert server._gone == set(silent)
    assert int(world(problem, 0, 10).means(0, 1).argmax()) in server.active
    assert rounds([*silent, 4, 5][:3], checks="cheap").closed


def test_thresholds_grow_with_those_that_are_missing_as_with_fewer_agents() -> None:
    """Of 10 agents 2 may lie, both are silent: 8 are heard, all of them honest."""
    config, context = RclbConfig(liars=0.2), run("rclb", {"C": 0.02}, agents=10).engine.server.context
    delta = config.confidence(context, 3)
    for missing in (0, 1, 2):
        t = median_width(10 - missing, (2 - missing) / (10 - missing), delta)
        assert config.threshold(context, 3, 1.5, missing) == 3.0 * t


def test_a_fifth_of_liars_moves_medians_little() -> None:
    """2 of 10 agents send the opposite of what they found, 100 times; the best arm stays, and few beside it."""
    reward = {"kind": "linear", "theta": "sphere"}
    domain = {"kind": "sphere", "dimension": 2, "points": 12, "method": "uniform"}
    problem = {"kind": "fixed_domain", "domain": domain, "reward": reward, "noise": 0.1}
    lies = [{"agents": {"fraction": 0.2}, "behaviour": {"kind": "sign_flip", "scale": 100}}]
    found = run(
        "rclb", {"sub_gaussian": 0.1, "C": 1.0}, agents=10, problem=problem, adversaries=lies,
        schedule={"kind": "rounds", "turns": 400},
    )  # fmt: skip
    server: Any = found.engine.server
    assert server.rounds >= 2
    assert int(world(problem, 0, 10).means(0, 1).argmax()) in server.active
    assert len(server.active) <= 3


def test_who_goes_on_alone_takes_the_best_mean_of_the_pulls_so_far() -> None:
    """In the middle of a phase: of two arms one has had one of its four pulls, and a third none."""
    agent = agent_of("delb", {})
    agent.start(np.array([3, 5, 7]), np.array([2, 4, 1]))
    for arm, reward in ((3, 0.5), (3, 0.5), (5, 0.8)):
        assert agent.observe(agent.context.domain, arm, reward) == []
    agent.leave()
    assert agent.choose(agent.context.domain) == 5
