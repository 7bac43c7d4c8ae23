"""Fixed domains: points, rewards, the reference of regret."""

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from scipy.stats import kstest, qmc

from coband.simulator.arrays import FloatArray
from coband.simulator.problems.benchmarks import BRANIN_MAXIMUM, HARTMANN_MAXIMUM, branin
from coband.simulator.problems.fixed_domain import FixedDomainProblem
from coband.simulator.problems.world import World
from tests.every import every
from tests.problems.helpers import named_streams

GAUSSIAN = {"kind": "gaussian", "gamma": 0.5}
DOMAINS: list[dict[str, Any]] = [
    {"kind": "box", "dimension": 3, "low": -1.0, "high": 2.0},
    {"kind": "ball", "dimension": 10},
    {"kind": "ball", "dimension": 1, "radius": 2.0},
    {"kind": "sphere", "dimension": 4, "radius": 0.5},
]
METHODS = ["sobol", "uniform"]
REWARDS = [
    {"kind": "cosine", "theta": "sphere"},
    {"kind": "cubic", "form": "duets", "theta": "sphere"},
    {"kind": "rkhs", "kernel": GAUSSIAN, "centres": 8},
]
UNIT = {"kind": "box", "dimension": 2, "points": 500}


def world(seed: int = 0, **parts: Any) -> World:
    content = {"kind": "fixed_domain", "domain": UNIT, "reward": {"kind": "branin"}, **parts}
    return FixedDomainProblem.model_validate(content).build(named_streams(seed), 3)


def points(domain: dict[str, Any], seed: int = 0) -> FloatArray:
    return world(seed, domain=domain, reward={"kind": "cosine"}).arms(0, 1)


@every("method", METHODS)
@every("number", [1, 2, 37, 64])
@every("domain", DOMAINS, ids=lambda domain: domain["kind"])
def test_points_lie_in_their_region(domain: dict[str, Any], number: int, method: str) -> None:
    X = points({**domain, "points": number, "method": method})
    assert X.shape == (number, domain["dimension"])
    norms = np.linalg.norm(X, axis=1)
    if domain["kind"] == "box":
        assert (X >= -1.0).all()
        assert (X <= 2.0).all()
    elif domain["kind"] == "ball":
        assert (norms <= domain.get("radius", 1.0) + 1e-12).all()
    else:
        np.testing.assert_allclose(norms, 0.5)


@pytest.mark.parametrize("method", METHODS)
def test_points_are_uniform(method: str) -> None:
    """In a ball norm^d is uniform in [0, 1]; on a sphere of R^3 and in a box each coordinate is."""
    ball = points({"kind": "ball", "dimension": 10, "points": 4096, "method": method})
    sphere = points({"kind": "sphere", "dimension": 3, "points": 4096, "method": method})
    box = points({"kind": "box", "dimension": 3, "points": 4096, "method": method})
    uniforms = [np.linalg.norm(ball, axis=1) ** 10, *((sphere.T + 1) / 2), *box.T]
    assert min(kstest(sample, "uniform").pvalue for sample in uniforms) > 1e-3
    assert np.abs(ball.mean(axis=0)).max() < 0.03


def test_sobol_points_leave_fewer_gaps() -> None:
    even, random = (points({"kind": "box", "dimension": 4, "points": 512, "method": method}) for method in METHODS)
    assert qmc.discrepancy(even) < 0.2 * qmc.discrepancy(random)


def test_twenty_thousand_points() -> None:
    X = points({"kind": "ball", "dimension": 10, "points": 20_000})
    assert len(np.unique(X, axis=0)) == 20_000


@pytest.mark.parametrize("method", METHODS)
def test_drawn_once_per_replication(method: str) -> None:
    domain = {**UNIT, "method": method}
    one, again, other = world(domain=domain), world(domain=domain), world(1, domain=domain)
    assert one.fixed_arms
    assert one.arms(0, 1) is one.arms(2, 40)
    assert one.arms(0, 1).tobytes() == again.arms(0, 1).tobytes() != other.arms(0, 1).tobytes()
    assert one.pull(1, 3, 7) == again.pull(1, 3, 7)
    assert one.describe() == again.describe() != other.describe()


@every("reward", REWARDS, ids=lambda reward: reward["kind"])
@every("domain", DOMAINS, ids=lambda domain: domain["kind"])
def test_regret_refers_to_the_largest_mean_over_the_points(domain: dict[str, Any], reward: dict[str, Any]) -> None:
    one = world(domain={**domain, "points": 50}, reward=reward)
    means = one.means(0, 1)
    assert [one.pull(0, 1, arm)[1] for arm in range(50)] == [float(means.max() - mean) for mean in means]
    truth = one.describe()
    assert truth["maximum"] == means.max()
    assert truth["best"] == one.arms(0, 1)[means.argmax()].tolist()


def test_ridge_functions_in_the_papers_form() -> None:
    """h1 = cos(3u), h2 = u^3 - 3u^2 + 3u + 3 with u = x . theta, theta on the sphere."""
    domain = {"kind": "ball", "dimension": 10, "points": 100}
    for reward, h in zip(REWARDS, (lambda u: np.cos(3 * u), lambda u: u**3 - 3 * u**2 + 3 * u + 3), strict=False):
        one = world(domain=domain, reward=reward)
        theta = np.array(one.describe()["theta"])
        assert np.linalg.norm(theta) == pytest.approx(1.0)
        np.testing.assert_allclose(one.means(0, 1), h(one.arms(0, 1) @ theta), atol=1e-12)


def test_benchmarks() -> None:
    flat = world()
    np.testing.assert_array_equal(flat.means(0, 1), branin(flat.arms(0, 1)))
    assert 0.95 < flat.describe()["maximum"] <= flat.describe()["maximum_over_region"] == BRANIN_MAXIMUM
    four = world(domain={**UNIT, "dimension": 4, "points": 4000}, reward={"kind": "hartmann"})
    assert 2.5 < four.describe()["maximum"] <= four.describe()["maximum_over_region"] == HARTMANN_MAXIMUM


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"domain": {**UNIT, "dimension": 3}}, r"reward branin is a function on \[0, 1\]\^2"),
        ({"domain": {**UNIT, "high": 2.0}}, r"write domain: \{kind: box, dimension: 2, \.\.\.\}"),
        ({"domain": {**UNIT, "kind": "ball"}}, r"reward branin is a function on"),
        ({"reward": {"kind": "hartmann"}}, r"reward hartmann is a function on \[0, 1\]\^4"),
        ({"domain": {**UNIT, "low": 2.0}}, r"low\(=2.0\) must be below high\(=1.0\)"),
        ({"domain": {**UNIT, "points": 0}}, "greater than or equal to 1"),
    ],
)
def test_impossible_problems_are_refused(parts: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        world(**parts)


def test_every_key_is_described() -> None:
    schema = FixedDomainProblem.model_json_schema()
    parts = [part for name, part in schema["$defs"].items() if name.endswith("Points")]
    assert len(parts) == 3
    for part in [schema, *parts]:
        assert all(content.get("description") for content in part["properties"].values())
