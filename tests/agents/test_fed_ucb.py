"""FedUCB: runs are the pseudo-code, noise is what the paper prints, and epsilon is what accountants and attacks say."""

import math
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from coband.agents.linear.fed_ucb_estimator import TreeNoise
from coband.extensions.conformance import graphs
from coband.extensions.conformance.runs import PROBLEM, Run, algorithm, run
from coband.simulator.analysis.audit import Verdict, audited
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.core.wire.accounting import gaussian_epsilon, own_epsilon
from coband.simulator.experiments.scenario.loading import loads
from coband.simulator.maths.private_sums import Calibration, PrivateSums, gaussian_mu
from tests.agents.beside import assert_equal, beside, schedule_of
from tests.every import every
from tests.everyday import everyday
from tests.oracles import OracleRun, fed_ucb, with_ties

CASES = 16


def parameters(rng: np.random.Generator) -> dict[str, Any]:
    """From hardly any noise to the paper's; clips that cut and clips that do not."""
    return {
        "threshold": float(rng.choice([0.0, 5.0, 20.0, 60.0])),
        "alpha": ["theory", 0.3, 1.0][int(rng.integers(3))],
        "epsilon": float(rng.choice([1.0, 100.0, 1e4])),
        "delta": float(rng.choice([0.1, 1e-5])),
        "points": float(rng.choice([0.6, 1.0])),
        "rewards": float(rng.choice([0.5, 2.0])),
        "norm": float(rng.uniform(0, 1)),
        "confidence": float(rng.choice([0.1, 0.4])),
        "sub_gaussian": float(rng.choice([0.1, 30.0])),
    }


def with_horizon(name: str, config: dict[str, Any], turns: int) -> Any:
    """What oracles take as parameters."""
    return SimpleNamespace(**{**dict(algorithm(name).config.model_validate(config)), "T": turns})


@cache
def solved(case: int) -> tuple[Run, OracleRun]:
    rng = np.random.default_rng((11, case))
    agents, turns = int(rng.integers(1, 6)), int(rng.integers(20, 60))
    arms = {"kind": ["ball", "box"][case % 2], "dimension": int(rng.integers(1, 6)), "count": int(rng.integers(2, 9))}
    problem = {**PROBLEM, "arms": arms, "reward": {"kind": "linear"}}
    config = parameters(rng)
    plan = {"agents": agents, "seed": case, "problem": problem, "schedule": schedule_of(case % 3, agents, turns)}
    return beside("fed_ucb", fed_ucb, config, plan)


@every("case", everyday(6, range(CASES)))
def test_a_run_without_delays_is_the_pseudo_code(case: int) -> None:
    simulated, expected = solved(case)
    assert_equal(simulated, expected)
    X = np.random.default_rng(5).uniform(-1, 1, (7, simulated.engine.agents[0].context.dimension))
    for index, agent in enumerate(simulated.engine.agents):
        V = agent.estimator._sums  # type: ignore[attr-defined]
        mean, deviation = expected.posterior_of(index, X)
        assert X @ np.linalg.solve(V[:, :-1], V[:, -1]) == pytest.approx(mean, rel=1e-7, abs=1e-9)
        assert np.einsum("ij,ji->i", X, np.linalg.solve(V[:, :-1], X.T)) == pytest.approx(deviation**2, rel=1e-7)


@every("case", everyday(4, range(12)))
def test_a_run_on_a_graph_is_the_pseudo_code(case: int) -> None:
    rng = np.random.default_rng((12, case))
    agents, trials, seed = int(rng.integers(2, 7)), int(rng.integers(15, 40)), case
    topology: Any = ["line", "ring", "complete", {"kind": "erdos_renyi", "p": 0.6}][case % 4]
    topology = topology if agents > 2 else "line"
    graph = graphs.graph_of(topology, agents, seed)
    hops: Any = [1, 2, "diameter"][case % 3]
    gamma = int(graph.distances.max()) if hops == "diameter" else hops
    problem = {
        "kind": "network",
        "kernel": {"kind": "linear"},
        "contexts": {"kind": "ball", "dimension": 2},
        "arms": {"kind": "ball", "dimension": 3, "count": 5},
    }
    config = parameters(rng) | {"hops": hops}
    simulated = graphs.run(
        "fed_ucb_graph", config, problem, topology=topology, agents=agents, seed=seed,
        schedule={"kind": "rounds", "turns": trials},
    )  # fmt: skip
    streams = Streams(seed)
    drawn = with_ties(graphs.world(problem, seed, graph), streams.ties)
    given = with_horizon("fed_ucb_graph", config, trials)
    expected, sent = fed_ucb.run_on_graph(trials, drawn, given, streams.coin, graph.adjacency, gamma)
    assert simulated.pulls == [pull[:4] for pull in expected.pulls]
    assert simulated.result.totals["sums_sent"] == len(sent)


def test_who_joins_a_graph_late_uses_what_it_hears() -> None:
    """At its own trials, which are behind those of the others, and not after as many of them as the senders had had."""
    joins = {"joins": {"kind": "times", "times": [[3, 20.5]]}}
    config, schedule = {"threshold": 0.0, "hops": 2, "horizon": 40}, {"kind": "rounds", "turns": 40}
    given: dict[str, Any] = {"topology": "ring", "agents": 4, "schedule": schedule, "agent": joins}
    late: Any = graphs.run("fed_ucb_graph", config, graphs.problem_of("fed_ucb_graph"), **given).engine.agents[3]
    assert late.trial == 20
    newest = [sums.trial for cell in late.cells for agent, sums in cell.newest.items() if agent != 3]
    assert len(newest) == 6
    assert min(newest) >= 40 - 6


def test_the_random_cases_synchronise() -> None:
    rounds = [solved(case)[0].result.rounds for case in range(6)]
    assert max(rounds) >= 10
    assert min(rounds) < 10


def test_bits_are_those_of_the_closed_form() -> None:
    d, agents = 3, 4
    for counting, entries in (("paper", d * d + d), ("packed", d * (d + 1) // 2 + d)):
        found = run("fed_ucb", {"threshold": 9.0}, agents=agents, messages={"counting": counting}).result
        assert found.totals["bits"] == 2 * 64 * found.rounds * agents * entries


def calibration(**more: Any) -> Calibration:
    given = {"dimension": 3, "releases": 100, "epsilon": 1.0, "delta": 1e-5, "points": 1.0, "rewards": 2.0}
    return Calibration(**{**given, "confidence": 0.1, "exact": False, **more})


def test_noise_is_the_papers() -> None:
    c = calibration()
    assert c.nodes == 8
    assert c.sigma**2 == pytest.approx(16 * 8 * (1 + 4) ** 2 * math.log(2e5) ** 2)
    assert c.shift == pytest.approx(math.sqrt(16) * c.sigma * (4 * math.sqrt(3) + 2 * math.log(2000)))
    drawn = np.array([PrivateSums(c, np.random.default_rng(i)).release(np.zeros((3, 4))) for i in range(4000)])
    drawn[:, range(3), range(3)] -= 2 * c.shift
    assert (drawn[:, :, :3] == np.swapaxes(drawn[:, :, :3], 1, 2)).all()
    variances = drawn.var(axis=0) / c.sigma**2
    expected = np.column_stack([1 + np.eye(3), np.ones(3)])
    assert variances == pytest.approx(expected, rel=5 * math.sqrt(2 / 4000))


def test_a_release_has_the_noise_of_the_nodes_that_make_it_up() -> None:
    c = calibration(releases=64)
    runs = []
    for seed in range(2000):
        private = PrivateSums(c, np.random.default_rng(seed))
        runs.append([private.release(np.zeros((3, 4)))[0, 3] for _ in range(12)])
    nodes = np.array([bin(number).count("1") for number in range(1, 13)])
    found = np.cov(np.array(runs).T) / c.sigma**2
    assert np.diag(found) == pytest.approx(nodes, rel=0.2)
    assert found[7, 8] == pytest.approx(1.0, abs=0.2)  # 8 = 8 and 9 = 8 + 1 share a node, 7 = 4 + 2 + 1 none with 8
    assert found[6, 7] == pytest.approx(0.0, abs=0.2)


def test_the_shift_keeps_eigenvalues_where_the_paper_says() -> None:
    c = calibration(dimension=6, releases=64)
    private = PrivateSums(c, np.random.default_rng(0))
    for _ in range(64):
        eigenvalues = np.linalg.eigvalsh(private.release(np.zeros((6, 7)))[:, :6])
        assert c.shift <= eigenvalues[0] <= eigenvalues[-1] <= 3 * c.shift


@every("releases", [1, 2, 3, 64, 100])
@every("delta", [1e-5, 1e-2])
def test_the_account_keeps_the_papers_epsilon_and_exact_noise_spends_it(releases: int, delta: float) -> None:
    """The paper's constant is loose by a factor of more than 15; exact noise spends epsilon but for 1 + ceil(log2 n)
    nodes, of which a pull is in 1 + floor(log2 n)."""
    paper, exact = (calibration(releases=releases, delta=delta, exact=exact) for exact in (False, True))
    assert own_epsilon(TreeNoise(paper).spent(releases), delta) < 1 / 15
    spent = own_epsilon(TreeNoise(exact).spent(releases), delta)
    assert spent <= 1.0 + 1e-6
    if releases in (1, 2, 64):
        assert spent == pytest.approx(1.0, rel=1e-6)
    assert paper.sigma > 5 * exact.sigma


def test_sensitivity_is_that_of_the_density_of_the_noise() -> None:
    """The log likelihood ratio of a release with a pull at the limits and without it has mean mu^2 / 2."""
    c = calibration()
    rng = np.random.default_rng(1)
    x = rng.standard_normal(3)
    x *= c.points / np.linalg.norm(x)
    W, b = np.outer(x, x), c.rewards * x
    upper = np.triu_indices(3)
    deviations = c.sigma * np.sqrt(1 + (upper[0] == upper[1]))
    mu = math.sqrt(np.sum((W[upper] / deviations) ** 2) + np.sum((b / c.sigma) ** 2))
    assert c.sensitivity / c.sigma == pytest.approx(mu)
    assert gaussian_epsilon(1.0, gaussian_mu(0.7, 1e-4) ** 2, 1e-4) == pytest.approx(0.7, rel=1e-6)


def test_a_result_says_what_was_spent() -> None:
    found = run("fed_ucb", {"threshold": 9.0, "delta": 1e-5, "noise": "exact"}).result
    noise = TreeNoise(found.agents[0].estimator.privatiser._calibration)  # type: ignore[attr-defined]
    releases = max(agent.releases for agent in found.agents)
    assert found.totals["epsilon"] == own_epsilon(noise.spent(releases), 1e-5)
    assert 0 < found.totals["epsilon"] <= 1.0


SCENARIO = """\
name: audited
agents: {count: 2}
schedule: {kind: rounds, turns: 128}
problem: {kind: contextual, arms: {kind: ball, dimension: 2, count: 4}, reward: {kind: linear}, noise: 0.1}
algorithms: [{algorithm: fed_ucb, epsilon: 8, delta: 1.0e-5, noise: exact}]
"""


def verdict() -> Verdict:
    scenario = loads(SCENARIO, "audited", base=Path())
    return audited(scenario, scenario.algorithms[0], 200, 0.99)


def test_an_audit_stays_below_the_account_and_catches_half_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    found = verdict()
    assert not found.refuted
    assert found.accounted / 4 < (found.least_gaussian or 0.0) < found.accounted
    release = PrivateSums.release

    def halved(self: PrivateSums, sums: Any) -> Any:
        noisy = release(self, sums)
        shift = np.zeros_like(noisy)
        shift.flat[:: len(noisy) + 2] = 2.0 * self._calibration.shift
        return sums + shift + 0.5 * (noisy - sums - shift)

    monkeypatch.setattr(PrivateSums, "release", halved)
    assert verdict().refuted


def test_a_horizon_below_the_turns_spends_more_than_is_promised_and_says_so() -> None:
    plan: dict[str, Any] = {"problem": PROBLEM, "schedule": {"kind": "rounds", "turns": 100}, "checks": "cheap"}
    for horizon, spent in ((None, False), (4, True)):
        config = {"epsilon": 1.0, "noise": "exact", "horizon": horizon, "threshold": 0.0}
        warnings = run("fed_ucb", config, **plan).result.warnings
        assert [text.endswith("give a larger horizon") for text in warnings] == [True] * spent, warnings


def test_less_noise_means_less_regret() -> None:
    """On one world, regret falls from the paper's noise to the exact one and to hardly any."""
    problem = {**PROBLEM, "reward": {"kind": "linear"}}
    schedule = {"kind": "rounds", "turns": 300}
    plan: dict[str, Any] = {"agents": 4, "problem": problem, "schedule": schedule, "checks": "cheap"}
    config = {"alpha": 0.3, "threshold": 50.0, "delta": 1e-5}
    cases = ({"epsilon": 1.0}, {"epsilon": 1.0, "noise": "exact"}, {"epsilon": 1e6, "noise": "exact"})
    regrets = [run("fed_ucb", {**config, **more}, **plan).result.regret for more in cases]
    assert stats.rankdata(regrets).tolist() == [3.0, 2.0, 1.0]
