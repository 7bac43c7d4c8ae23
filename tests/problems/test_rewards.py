import math
from typing import Any

import numpy as np
import pydantic
import pytest
from scipy import stats

from coband.simulator.problems.arms import BallArms
from coband.simulator.problems.rewards import (
    CosineReward,
    CubicReward,
    GaussianNoise,
    LinearReward,
    LogisticReward,
    NoiseSpec,
    RidgeFunction,
    SquareReward,
    UniformNoise,
    as_noise,
)

NOISE: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(NoiseSpec)
ARMS = BallArms(kind="ball", dimension=4, count=6)
cosine, square = CosineReward(kind="cosine").profile, SquareReward(kind="square").profile
logistic = LogisticReward(kind="logistic").profile
cubic_async, cubic_duets = CubicReward(kind="cubic").profile, CubicReward(kind="cubic", form="duets").profile


def test_formulas_at_known_points() -> None:
    u = np.array([-1.0, 0.0, 1.0, 2.0])
    assert cubic_async(u).tolist() == [0.0, 3.0, 0.0, -3.0]
    assert cubic_duets(u).tolist() == [-4.0, 3.0, 4.0, 5.0]
    assert np.allclose(cosine(u), [math.cos(3 * v) for v in u], rtol=1e-15, atol=1e-15)


def test_formulas_at_random_points() -> None:
    u = np.random.default_rng(0).uniform(-1, 1, 50)
    assert np.allclose(cubic_async(u), u**3 - 3 * u**2 - u + 3)
    assert np.allclose(cubic_duets(u), u**3 - 3 * u**2 + 3 * u + 3)


@pytest.mark.parametrize(
    ("spec", "formula"),
    [
        (LinearReward(kind="linear"), lambda u: u),
        (LogisticReward(kind="logistic"), lambda u: 1 / (1 + np.exp(-u))),
        (LogisticReward(kind="logistic", scale=7.0), lambda u: 1 / (1 + np.exp(-7 * u))),
        (CosineReward(kind="cosine"), lambda u: np.cos(3 * u)),
        (SquareReward(kind="square"), lambda u: 10 * u**2),
        (CubicReward(kind="cubic"), lambda u: u**3 - 3 * u**2 - u + 3),
        (CubicReward(kind="cubic", form="duets"), lambda u: u**3 - 3 * u**2 + 3 * u + 3),
    ],
)
def test_a_drawn_function_applies_its_formula_to_x_theta(spec: Any, formula: Any) -> None:
    function = spec.draw(np.random.default_rng(3), ARMS)
    theta = np.array(function.describe()["theta"])
    arms = ARMS.draw(np.random.default_rng(4), 5)
    assert np.allclose(function(arms), formula(arms @ theta))


def test_values_of_a_turn_do_not_depend_on_the_turns_beside_it() -> None:
    rng = np.random.default_rng(0)
    arms = BallArms(kind="ball", dimension=21, count=19).draw(rng, 33)
    for profile in (cosine, logistic, square, cubic_async, cubic_duets):
        function = RidgeFunction(rng.standard_normal(21), profile)
        assert np.array_equal(function(arms), np.concatenate([function(turn[None]) for turn in arms]))


def test_theta_is_uniform_in_the_ball_or_on_the_sphere() -> None:
    rng = np.random.default_rng(0)
    inside = [np.linalg.norm(CosineReward(kind="cosine").draw(rng, ARMS).describe()["theta"]) for _ in range(1500)]
    assert stats.kstest(np.array(inside) ** 4, "uniform").pvalue > 0.01
    sphere = CubicReward(kind="cubic", theta="sphere")
    assert np.linalg.norm(sphere.draw(rng, ARMS).describe()["theta"]) == pytest.approx(1.0, rel=1e-14)


def test_a_bare_number_is_the_deviation_of_gaussian_noise() -> None:
    assert as_noise(NOISE.validate_python(0.3)) == GaussianNoise(kind="gaussian", sd=0.3)
    assert as_noise(NOISE.validate_python({"kind": "gaussian", "sd": 0.3})) == GaussianNoise(kind="gaussian", sd=0.3)


def test_noise_laws() -> None:
    normal = GaussianNoise(kind="gaussian", sd=0.2).draws(np.random.default_rng(0), 4000)
    assert stats.kstest(np.array(normal) / 0.2, "norm").pvalue > 0.01
    flat = UniformNoise(kind="uniform", half_width=0.5).draws(np.random.default_rng(0), 4000)
    assert stats.kstest(np.array(flat) + 0.5, "uniform").pvalue > 0.01


def test_zero_noise_is_silent() -> None:
    noise = as_noise(0.0)
    assert [noise.reward(1.5, draw) for draw in noise.draws(np.random.default_rng(0), 3)] == [1.5, 1.5, 1.5]


@pytest.mark.parametrize("noise", [GaussianNoise(kind="gaussian", sd=1), UniformNoise(kind="uniform", half_width=1)])
def test_noise_drawn_together_or_apart_is_equal(noise: GaussianNoise | UniformNoise) -> None:
    together, apart = np.random.default_rng(2), np.random.default_rng(2)
    assert noise.draws(together, 7) == noise.draws(apart, 1) + noise.draws(apart, 2) + noise.draws(apart, 4)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (-0.1, "greater than or equal to 0"),
        (float("nan"), "greater than or equal to 0|finite"),
        ("loud", "valid number"),
        ([0.1], "Write a number"),
        ({"kind": "gausian", "sd": 1}, "does not match any of the expected tags: 'gaussian', 'uniform', 'bernoulli'"),
        ({"kind": "gaussian", "sd": -1}, "greater than or equal to 0"),
        ({"kind": "gaussian", "half_width": 1}, "Field required"),
    ],
)
def test_bad_noise(value: Any, message: str) -> None:
    with pytest.raises(pydantic.ValidationError, match=message):
        NOISE.validate_python(value)
