"""E-processes against numerical integration, exact enumeration and simulation."""

import math
from fractions import Fraction
from itertools import chain, combinations, product

import numpy as np
import pytest
from scipy import integrate, stats

from coband.extensions.evidence.e_values import closed_ebh
from coband.simulator.experiments.statistics.evidence import (
    LARGEST,
    SCALES,
    confidence_sequence,
    critical,
    mean_processes,
    share_process,
    share_sequence,
    t_process,
)
from tests.experiments.statistics.synthetic import KINDS, rates, signs

RNG = np.random.default_rng(11)
MILD = ("Gaussian", "Gaussian, correlated between claims", "lognormal, s = 0.5", "one in 20 is 5 deviations off")


def mixture(x: list[float], scale: float) -> float:
    """The likelihood ratio by its definition: integrals over sd with density 1/sd, and over half-normal effects."""
    values = np.array(x)

    def likelihood(effect: float) -> float:
        def given(log_sd: float) -> float:
            return math.exp(-len(x) * log_sd - 0.5 * float(np.sum((values * math.exp(-log_sd) - effect) ** 2)))

        return float(integrate.quad(given, -8, 8, points=[math.log(float(np.std(x)) + 1e-3)], limit=300)[0])

    prior = stats.halfnorm(scale=scale)
    above = integrate.quad(lambda effect: prior.pdf(effect) * likelihood(effect), 0, 8 * scale, limit=300)[0]
    return float(above) / likelihood(0.0)


@pytest.mark.parametrize(("n", "mean"), [(2, 1.0), (3, -0.5), (6, 2.0), (12, 0.3)])
def test_the_process_is_the_mixture_that_it_is_said_to_be(n: int, mean: float) -> None:
    x = (RNG.normal(mean, 1.0, n) * 3).tolist()
    t = float(np.mean(x)) * math.sqrt(n) / float(np.std(x, ddof=1))
    expected = math.log(sum(mixture(x, scale) for scale in SCALES) / len(SCALES))
    assert float(t_process(t, n)) == pytest.approx(expected, abs=2e-4)


def test_it_grows_with_the_statistic_and_stays_finite() -> None:
    t = np.concatenate([np.linspace(-40, 40, 401), [1e6]])
    for n in (2, 3, 10, 2400):
        found = t_process(t, n)
        assert (np.diff(found) >= 0).all()
        assert (np.abs(found) <= LARGEST).all()
    assert t_process(5.0, 1) == 0.0


def test_looking_all_the_time_errs_seldom_enough() -> None:
    """Of means at and below 0, after every of 200 replications: at most one in 20 ever reaches 20."""
    for mean in (0.0, -0.3):
        x = RNG.normal(mean, 2.0, size=(2000, 200))
        n = np.arange(2, 201)
        averages = x.cumsum(axis=1)[:, 1:] / n
        spread = np.sqrt((np.square(x).cumsum(axis=1)[:, 1:] - n * averages**2) / (n - 1))
        ever = t_process(averages * np.sqrt(n) / spread, n).max(axis=1) >= math.log(20)
        assert ever.mean() <= 0.05


def test_values_that_never_vary_are_certain() -> None:
    x = np.array([[2.0, 2.0], [0.0, 0.0], [-1.0, -1.0], [1.0, 2.0]])
    holds, fails = mean_processes(x)
    assert holds[:3].tolist() == [LARGEST, -LARGEST, -LARGEST]
    assert fails[:3].tolist() == [-LARGEST, LARGEST, LARGEST]
    assert mean_processes(x, strict=False)[0].tolist()[:2] == [LARGEST, LARGEST]
    assert holds[3] == t_process(1.5 * math.sqrt(2) / math.sqrt(0.5), 2)
    assert mean_processes(x[:, :1])[0].tolist() == [0.0] * 4


@pytest.mark.parametrize(("successes", "n", "share"), [(7, 7, 0.5), (3, 10, 0.5), (95, 100, 0.9), (0, 20, 0.9)])
def test_shares_against_integration(successes: int, n: int, share: float) -> None:
    def ratio(p: float) -> float:
        return math.exp(
            successes * math.log(p / share) + (n - successes) * math.log1p(-p) - (n - successes) * math.log1p(-share)
        )

    expected = integrate.quad(ratio, share, 1.0, limit=300)[0] / (1 - share)
    assert share_process(successes, n, share) == pytest.approx(math.log(expected), abs=1e-6)


def test_shares_are_martingales_at_the_border() -> None:
    """Exactly, in fractions of the outcomes of six trials."""
    p = Fraction(1, 4)
    total = 0.0
    for trial in product((0, 1), repeat=6):
        k = sum(trial)
        total += float(p**k * (1 - p) ** (6 - k)) * math.exp(share_process(k, 6, 0.25))
    assert total == pytest.approx(1.0)


def test_sequences_of_shares_are_the_probabilities_that_are_not_rejected() -> None:
    low, high = share_sequence(30, 100)
    assert share_process(30, 100, low) == pytest.approx(math.log(40))
    assert share_process(70, 100, 1 - high) == pytest.approx(math.log(40))
    assert share_sequence(0, 3)[0] == 0.0
    assert share_sequence(0, 3)[1] > 0.8
    assert share_sequence(5, 5) == pytest.approx((1 - share_sequence(0, 5)[1], 1.0))


def test_confidence_sequences_are_the_means_that_are_not_rejected() -> None:
    x = RNG.normal(3.0, 1.0, size=12)
    low, high = confidence_sequence(x.tolist(), 0.95) or (0.0, 0.0)
    for mean in np.linspace(0, 6, 61):
        holds, fails = mean_processes((x - mean)[None])
        assert (low <= mean <= high) == (max(holds[0], fails[0]) < math.log(40))
    assert confidence_sequence([1.0, 2.0]) is None
    assert critical(2, 0.025) == math.inf


def published_by_definition(wrong: list[float], right: list[float], rate: float) -> set[int]:
    """The largest set that every possible world allows, by trying all sets and all worlds."""
    m = len(wrong)
    best: set[int] = set()
    for chosen in chain.from_iterable(combinations(range(m), size) for size in range(1, m + 1)):
        worlds = product((False, True), repeat=m)  # whether the statement is false
        if len(chosen) >= len(best) and all(
            sum(wrong[i] if false else right[i] for i, false in enumerate(world)) / m
            >= sum(world[i] for i in chosen) / (rate * len(chosen))
            for world in worlds
        ):
            best = set(chosen)
    return best


def test_closed_ebh_against_its_definition() -> None:
    for _ in range(60):
        m = int(RNG.integers(1, 7))
        e = np.exp(RNG.normal(1.5, 1.5, size=m))
        wrong, right = e.tolist(), (RNG.random(m) / e).tolist()
        found = closed_ebh(np.log(wrong).tolist(), np.log(right).tolist(), 0.2)
        expected = published_by_definition(wrong, right, 0.2)
        assert sum(found) == len(expected)
        assert {i for i in range(m) if found[i]} == expected or len(expected) == sum(found)
    assert closed_ebh([], [], 0.05) == []


@pytest.mark.parametrize("kind", MILD)
def test_few_verdicts_are_false_whenever_one_stops(kind: str) -> None:
    found, power = rates(KINDS[kind], 60)
    assert found <= 0.05
    assert power > 0.8


@pytest.mark.slow
@pytest.mark.parametrize("kind", MILD)
def test_few_verdicts_of_two_thousand_studies_are_false(kind: str) -> None:
    assert rates(KINDS[kind], 2000)[0] <= 0.05


@pytest.mark.parametrize("kind", ["lognormal, s = 1", "one in 100 is 50 deviations off"])
def test_signs_hold_where_means_of_heavy_tails_do_not(kind: str) -> None:
    assert rates(KINDS[kind], 30)[0] > 0.05  # the price of the Gaussian assumption, as docs/evidence.md says
    assert rates(KINDS[kind], 30, signs)[0] <= 0.05
