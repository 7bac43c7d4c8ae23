"""FTS, FTS-DE, DP-FTS, DP-FTS-DE: runs are the pseudo-code, counts are closed forms, epsilon is that of accountants."""

import math
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dp_accounting as dp
import numpy as np
import pytest
from pydantic import ValidationError
from scipy import stats

from coband.agents.kernel.fts import PrivateRegions, Regions
from coband.extensions.conformance.runs import Run, run
from coband.server.kernel.fts import PrivateFtsServer
from coband.simulator.analysis.audit import Verdict, audited
from coband.simulator.experiments.scenario.loading import loads
from coband.simulator.maths.random_features import RandomFeatures, posterior_draw
from tests.agents.beside import assert_equal, beside, schedule_of
from tests.every import every
from tests.everyday import everyday
from tests.oracles import OracleRun, fts

NAMES = ("fts", "fts_de", "dp_fts", "dp_fts_de")


@cache
def solved(name: str, case: int) -> tuple[Run, OracleRun]:
    rng = np.random.default_rng((13, case))
    agents, turns = int(rng.integers(1, 6)), int(rng.integers(8, 25))
    domain = {"kind": "box", "dimension": int(rng.integers(1, 4)), "points": int(rng.integers(5, 40))}
    problem = {"kind": "fixed_domain", "domain": domain, "reward": {"kind": "cosine"}, "noise": 0.1}
    config = {
        "features": int(rng.choice([5, 20])),
        "length_scale": float(rng.uniform(0.1, 1.0)),
        "variance": float(rng.uniform(0.5, 2.0)),
        "noise_variance": float(rng.uniform(0.01, 0.2)),
        "initial": int(rng.choice([0, 1, 4])),
        "patience": int(rng.integers(1, 4)),
    }
    if name.endswith("_de"):
        config |= {"splits": int(rng.integers(1, 4)), "a": float(rng.uniform(0, 5)), "b": float(rng.uniform(0, 2))}
        config |= {"low": float(rng.uniform(-0.5, 0.3)), "high": float(rng.uniform(0.6, 1.5))}
        config |= {"constant": int(rng.integers(0, 5)), "decay": int(rng.integers(2, 9))}
    if name.startswith("dp"):
        config |= {"q": float(rng.uniform(0.2, 1.0)), "S": float(rng.uniform(1, 5)), "z": float(rng.uniform(0, 0.2))}
    plan = {"agents": agents, "seed": case, "problem": problem, "schedule": schedule_of(1 - case % 2, agents, turns)}
    splits = config.get("splits", 1)
    return beside(name, fts, config, plan, splits=splits, private=name.startswith("dp"))


@every("case", everyday(4, range(16)))
@every("name", NAMES)
def test_a_run_without_delays_is_the_pseudo_code(name: str, case: int) -> None:
    simulated, expected = solved(name, case)
    assert_equal(simulated, expected)
    assert expected.rounds > 0


@pytest.mark.parametrize(("name", "low", "warned"), [("fts_de", 0, True), ("fts_de", -1, False), ("fts", 0, False)])
def test_arms_for_which_no_region_is_made_are_told(name: str, low: int, warned: bool) -> None:
    problem = {
        "kind": "fixed_domain",
        "domain": {"kind": "ball", "dimension": 2, "points": 9},
        "reward": {"kind": "cosine"},
        "noise": 0.1,
    }
    config = {"features": 5, **({"low": low} if name == "fts_de" else {})}
    plan = {"agents": 2, "seed": 1, "problem": problem, "schedule": {"kind": "rounds", "turns": 6}}
    said = [text for text in run(name, config, **plan).result.warnings if "lie outside" in text]
    sentence = "arms lie outside of 0 to 1 and count to the regions at its border; give the low and high of the domain"
    assert said == ([sentence] if warned else [])


@pytest.mark.parametrize(("splits", "said"), [(2, []), (600, ["1,080,000,000 scalars"])])
def test_large_messages_are_warned_of(splits: int, said: list[str]) -> None:
    plan = {"agents": 2, "schedule": {"kind": "rounds", "turns": 1}}
    warnings = run("fts_de", {"features": 5, "splits": splits}, **plan).result.warnings
    assert [text.split("sends ")[1].split(" to")[0] for text in warnings if "every round sends" in text] == said


@every(
    ("given", "message"),
    [
        ({"high": 0.0}, r"low\(=0\) must be < high\(=0\)"),
        ({"low": 2.0}, r"low\(=2\) must be < high\(=1\)"),
        ({"a": 701.0}, "less than or equal to 700"),
        ({"b": 701.0}, "less than or equal to 700"),
    ],
)
def test_regions_and_shares_that_cannot_be_are_refused(given: dict[str, float], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Regions.model_validate(given)


def test_shares_are_numbers_however_far_apart_a_and_b_are() -> None:
    """Of three agents, with a region that nobody explores first."""
    for a, b in ((700.0, 0.0), (0.0, 700.0)):
        for round in (1, 25, 100):
            shares = Regions(a=a, b=b).shares(3, 2, round)
            assert shares.sum(axis=1) == pytest.approx(1.0)
            assert shares.min() > 0


def test_features_have_the_kernel_and_draws_the_posterior() -> None:
    rng = np.random.default_rng(0)
    phi = RandomFeatures(rng, 20_000, 2, 0.5, 2.0)
    X = rng.uniform(0, 1, (5, 2))
    K = 2.0 * np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / (2 * 0.5**2))
    assert phi(X) @ phi(X).T == pytest.approx(K, abs=0.06)
    Phi, y, lam = rng.standard_normal((8, 3)), rng.standard_normal(8), 0.3
    draws = np.array([posterior_draw(Phi.T @ Phi, Phi.T @ y, lam, z) for z in rng.standard_normal((20_000, 3))])
    A = Phi.T @ Phi + lam * np.eye(3)
    assert draws.mean(axis=0) == pytest.approx(np.linalg.solve(A, Phi.T @ y), abs=0.02)
    assert np.cov(draws.T) == pytest.approx(lam * np.linalg.inv(A), abs=0.01)
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        posterior_draw(-np.eye(3), np.ones(3), lam, np.ones(3))


@every("case", range(40))
def test_what_leads_is_what_all_features_say(case: int) -> None:
    """Of many points or few, near each other or not, with weights of every size; the two highest are exact."""
    rng = np.random.default_rng((14, case))
    n, M, d = int(rng.integers(1, 400)), int(rng.integers(1, 150)), int(rng.integers(1, 5))
    phi = RandomFeatures(rng, M, d, float(10.0 ** rng.uniform(-3, 1)), 2.0)
    X = rng.uniform(0, 1, (n, d)) * float(10.0 ** rng.uniform(-6, 2))
    if case % 4 == 0:
        X = X[rng.integers(0, max(1, n // 3), n)]  # some points come again
    weights = rng.standard_normal(M) * 10.0 ** rng.uniform(-200, 200) * (case % 5 > 0)
    scores, found = phi(X) @ weights, phi.leading(X, weights)
    assert found.argmax() == scores.argmax() or found.max() == pytest.approx(scores.max(), rel=1e-13)
    kept = np.isfinite(found)
    assert found[kept] == pytest.approx(scores[kept], rel=1e-12, abs=1e-12 * np.abs(scores).max())
    assert scores[~kept].max(initial=-np.inf) <= np.sort(scores)[-2:].min()


@every("case", range(20))
def test_the_bound_of_rough_scores_holds(case: int) -> None:
    rng = np.random.default_rng((15, case))
    M, d = int(rng.integers(2, 200)), int(rng.integers(1, 6))
    phi = RandomFeatures(rng, M, d, float(10.0 ** rng.uniform(-1, 1)), 2.0)
    X, weights = rng.uniform(-1, 1, (500, d)), rng.standard_normal(M)
    rough, bound = phi._rough(X, weights)
    errors = np.abs(rough - phi(X) @ weights / np.abs(weights).max())
    assert bound > 3.0 * errors.max()
    assert M < 20 or bound < 0.01


def test_rough_scores_are_left_where_they_say_nothing() -> None:
    rng = np.random.default_rng(16)
    phi, X = RandomFeatures(rng, 50, 2, 1e-30, 1.0), rng.uniform(0, 1, (100, 2))
    assert np.isfinite(phi.leading(X, rng.standard_normal(50))).all()


def test_one_agent_changes_all_averages_by_no_more_than_the_noise_hides() -> None:
    """The change over the deviations of the noise, of all regions together, is 1/z for an agent that counts most."""
    config = PrivateRegions(splits=2, features=6, S=5.0, z=1.7, q=1.0, a=0.0, b=0.0)
    rng = np.random.default_rng(1)
    weights = 100.0 * rng.standard_normal((8, 6))
    shares = config.shares(8, 2, 1)
    without = weights * (np.arange(8) > 0)[:, None]
    change = config.release(np.random.default_rng(2), shares, weights)
    change -= config.release(np.random.default_rng(2), shares, without)
    deviations = config.z * config.S * shares.max(axis=1) / config.q
    assert np.sqrt(((change / deviations[:, None]) ** 2).sum()) == pytest.approx(1 / config.z)


@every("name", NAMES)
def test_a_run_in_which_one_agent_is_never_heard_is_the_pseudo_code(name: str) -> None:
    """The others share its part of an average, but not where that would tell that it is away."""
    config: dict[str, Any] = {"features": 5, "length_scale": 0.5, "initial": 1, "patience": 2}
    if name.endswith("_de"):
        config |= {"splits": 2, "a": 3.0, "b": 0.5, "constant": 2, "decay": 5}
    if name.startswith("dp"):
        config |= {"q": 0.8, "S": 3.0, "z": 0.1}
    problem = {"kind": "fixed_domain", "domain": {"kind": "box", "dimension": 1, "points": 15}, "noise": 0.1}
    plan = {"agents": 4, "problem": problem | {"reward": {"kind": "cosine"}}, "seed": 3}
    plan |= {"schedule": {"kind": "one_at_a_time", "turns": 60, "order": "weighted", "weights": [1, 0, 1, 1]}}
    splits = config.get("splits", 1)
    simulated, expected = beside(name, fts, config, plan, splits=splits, private=name.startswith("dp"))
    assert_equal(simulated, expected)
    assert {agent for agent, *_ in simulated.pulls} == {0, 2, 3}
    assert expected.rounds > 3


@every("splits", [1, 2])
def test_that_an_agent_was_never_heard_is_hidden_as_well(splits: int) -> None:
    """Its weights change all averages together by 1/z deviations of the noise at most, wherever it counts."""
    config = PrivateRegions(splits=splits, features=6, S=5.0, z=1.7, q=1.0)
    weights = 100.0 * np.random.default_rng(1).standard_normal((3, 6))
    for round in (1, 25, 60):
        shares = config.shares(3, 2, round)
        deviations = config.z * config.S * shares.max(axis=1) / config.q
        released = []
        for heard in ((0, 1, 2), (1, 2)):
            server = PrivateFtsServer.__new__(PrivateFtsServer)
            context: Any = SimpleNamespace(config=config, rng=np.random.default_rng(2))
            server.context, server.rounds = context, round
            released.append(server.averages(shares, {agent: weights[agent] for agent in heard}))
        change = (released[0] - released[1]) / deviations[:, None]
        assert 0.0 < np.sqrt((change**2).sum()) <= (1 + 1e-12) / config.z


@every("z", everyday(1, [2.0, 1.0]))
def test_epsilon_is_that_of_the_subsampled_gaussian_mechanism(z: float) -> None:
    config = {"features": 5, "initial": 2, "z": z, "q": 0.35, "delta": 1e-3}
    found = run("dp_fts", config, agents=3, schedule={"kind": "rounds", "turns": 20}).result
    assert found.rounds == 19
    event = dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(0.35, dp.GaussianDpEvent(z)), 19)
    accountant = dp.pld.PLDAccountant(dp.NeighboringRelation.ADD_OR_REMOVE_ONE)
    assert found.totals["epsilon"] == pytest.approx(accountant.compose(event).get_epsilon(1e-3), abs=1e-9)
    renyi = dp.rdp.RdpAccountant(neighboring_relation=dp.NeighboringRelation.ADD_OR_REMOVE_ONE).compose(event)
    assert found.totals["epsilon"] < renyi.get_epsilon(1e-3) < 1.5 * found.totals["epsilon"]


def test_epsilon_of_one_release_by_direct_integration() -> None:
    """delta(epsilon) of N(0, z^2) against (1 - q) N(0, z^2) + q N(1, z^2), and the other way round."""
    found = run(
        "dp_fts", {"features": 5, "initial": 1, "q": 0.4, "z": 0.8}, agents=2, schedule={"kind": "rounds", "turns": 1}
    )
    epsilon = found.result.totals["epsilon"]
    x = np.linspace(-10, 12, 400_001)
    absent = stats.norm.pdf(x, 0, 0.8)
    present = 0.6 * absent + 0.4 * stats.norm.pdf(x, 1, 0.8)
    deltas = [
        np.trapezoid(np.maximum(p - math.exp(epsilon) * r, 0), x) for p, r in ((present, absent), (absent, present))
    ]
    assert max(deltas) == pytest.approx(1e-3, rel=0.02)


SCENARIO = """\
name: audited
agents: {count: 8}
schedule: {kind: rounds, turns: 20}
problem: {kind: fixed_domain, domain: {kind: box, dimension: 2, points: 20}, reward: {kind: cosine}, noise: 0.1}
algorithms: [{algorithm: dp_fts_de, q: 1.0, z: 1.0, features: 10}]
"""


def verdict() -> Verdict:
    scenario = loads(SCENARIO, "audited", base=Path())
    return audited(scenario, scenario.algorithms[0], 200, 0.99)


def test_an_audit_stays_below_the_account_and_catches_half_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    found = verdict()
    assert not found.refuted
    assert found.accounted / 3 < (found.least_gaussian or 0.0) < found.accounted
    release = PrivateRegions.release

    def halved(self: PrivateRegions, *given: Any) -> Any:
        return release(self.model_copy(update={"z": 0.5 * self.z}), *given)

    monkeypatch.setattr(PrivateRegions, "release", halved)
    assert verdict().refuted
