"""Audits: bounds by hand, and a mechanism with half its noise that they catch."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

from coband.simulator.analysis.audit import Audit, Verdict, least_epsilon, least_mu, limits
from coband.simulator.arrays import FloatArray
from coband.simulator.cli.check import check
from coband.simulator.core.nodes.message import Pulls
from coband.simulator.core.wire.privacy import MECHANISMS, Draw, GaussianSums, LaplaceLocal
from coband.simulator.experiments.scenario.loading import loads
from coband.simulator.scenario_errors import RequestError

SCENARIO = """\
name: audited
agents: {count: 2}
schedule: {kind: rounds, turns: 15}
messages: {privacy: {mechanism: gaussian, epsilon: 6, leak: allow}}
problem: {kind: contextual, arms: {kind: ball, dimension: 2, count: 4}, reward: {kind: linear}, noise: 0.1}
algorithms: [{algorithm: dis_lin_ucb, threshold: 2}]
"""
TRIALS = 300


class HalfGaussian(GaussianSums):
    kind: Literal["half_gaussian"]  # type: ignore[assignment]

    def noise(self, size: int, form: Pulls, number: int, draw: Draw) -> FloatArray:
        return 0.5 * super().noise(size, form, number, draw)


class HalfLaplace(LaplaceLocal):
    kind: Literal["half_laplace"]  # type: ignore[assignment]

    def noise(self, size: int, form: Pulls, number: int, draw: Draw) -> FloatArray:
        return 0.5 * super().noise(size, form, number, draw)


@pytest.fixture(autouse=True)
def _plugins() -> Iterator[None]:
    for one in (HalfGaussian, HalfLaplace):
        MECHANISMS.register(one)
    yield
    for name in ("half_gaussian", "half_laplace"):
        MECHANISMS.registered.pop(name)


def verdict(mechanism: str, noise: str = "epsilon: 6", trials: int = TRIALS) -> Verdict:
    text = SCENARIO.replace("gaussian", mechanism).replace("epsilon: 6", noise)
    scenario = loads(text, "audited", base=Path())
    return Audit(scenario, scenario.algorithms[0], trials).verdict(0.99)


@pytest.mark.parametrize(("hits", "trials"), [(0, 20), (7, 20), (20, 20)])
def test_limits_are_those_of_binomial_tails(hits: int, trials: int) -> None:
    low, high = limits(hits, trials, 0.975)
    if hits:
        assert math.isclose(stats.binom.sf(hits - 1, trials, low), 0.025)
    if hits < trials:
        assert math.isclose(stats.binom.cdf(hits, trials, high), 0.025)
    assert 0.0 <= low <= hits / trials <= high <= 1.0


def test_bounds_by_hand() -> None:
    (true_low, _), (_, false_high) = limits(90, 100, 0.995), limits(5, 100, 0.995)
    expected = max(math.log((true_low - 0.01) / false_high), math.log((1 - false_high - 0.01) / (1 - true_low)))
    assert math.isclose(least_epsilon((90, 5), 100, 0.01, 0.99), expected)
    assert math.isclose(least_mu((90, 5), 100, 0.99), stats.norm.ppf(true_low) - stats.norm.ppf(false_high))
    assert least_epsilon((50, 50), 100, 0.0, 0.99) == least_mu((50, 50), 100, 0.99) == 0.0


def test_bounds_hold_for_a_mechanism_that_is_known() -> None:
    """Randomised response of epsilon 1: at 80 % confidence at most a fifth of the bounds are too large."""
    rng, truth = np.random.default_rng(7), math.e / (1 + math.e)
    draws = rng.binomial(400, (truth, 1 - truth), size=(400, 2))
    wrong = sum(least_epsilon((int(true), int(false)), 400, 0.0, 0.8) > 1.0 for true, false in draws)
    assert wrong <= 80
    assert min(least_epsilon((int(true), int(false)), 400, 0.0, 0.8) for true, false in draws) > 0.5


@pytest.mark.parametrize(
    ("mechanism", "noise"),
    [
        ("gaussian", "epsilon: 6"),
        ("gaussian", "sigma: 20, unit: agent"),
        ("gaussian", "sigma: 2, adversary: others"),
        ("tree", "sigma: 1.5"),
        ("laplace_local", "epsilon: 2"),
    ],
)
def test_what_is_accounted_stands_and_the_attack_is_strong(mechanism: str, noise: str) -> None:
    found = verdict(mechanism, noise)
    assert not found.refuted
    assert max(found.least, found.least_gaussian or 0.0) > 0.15 * found.accounted


@pytest.mark.parametrize(("mechanism", "noise"), [("half_gaussian", "epsilon: 6"), ("half_laplace", "epsilon: 1.5")])
def test_half_the_noise_is_caught(mechanism: str, noise: str) -> None:
    found = verdict(mechanism, noise, 2000 if "laplace" in mechanism else TRIALS)
    assert found.refuted
    assert found.true_positives > found.false_positives


def test_the_command_says_it_and_ends_with_its_status(tmp_path: Path) -> None:
    file = tmp_path / "audited.yaml"
    file.write_text(SCENARIO)
    right = CliRunner().invoke(check, [str(file), "--privacy", "--replications", "100"])
    assert right.exit_code == 0, right.output
    assert "accounted epsilon 6" in right.output
    assert "as accounted" in right.output
    file.write_text(SCENARIO.replace("gaussian", "half_gaussian"))
    wrong = CliRunner().invoke(check, [str(file), "--privacy", "--replications", "200"])
    assert wrong.exit_code == 1, wrong.output
    assert "of 200 trials with the pull" in wrong.output
    assert wrong.output.endswith("  MORE THAN ACCOUNTED: there is less noise than promised\n")
    for given in (["--replications", "99"], ["--trace", "full"], ["--out", str(tmp_path / "run")]):
        assert CliRunner().invoke(check, [str(file), "--privacy", *given]).exit_code == 2


def test_without_privacy_there_is_nothing_to_audit() -> None:
    text = SCENARIO.replace("messages: {privacy: {mechanism: gaussian, epsilon: 6, leak: allow}}\n", "")
    scenario = loads(text, "audited", base=Path())
    with pytest.raises(RequestError, match=r"no section messages\.privacy"):
        Audit(scenario, scenario.algorithms[0], TRIALS)
