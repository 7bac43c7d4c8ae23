"""How much privacy noise leaves, by Google's dp-accounting; the only module that imports it.

All mechanisms of sums are Gaussian, and what a pull is part of is released several times. A composition of Gaussian
mechanisms is one Gaussian mechanism: with sensitivities s_1, ..., s_k and deviation sigma, that of sensitivity
sqrt(s_1^2 + ... + s_k^2) (Dong, Roth and Su 2022, corollary 2). The sum of squares is the weight here, so that
everything is a question about the noise multiplier sigma / sqrt(weight).
"""

from __future__ import annotations

import math
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, Literal

from coband.simulator.core.nodes.node import UnsupportedScenario
from coband.simulator.core.nodes.own_noise import Spent

Accountant = Literal["exact", "pld", "rdp"]
DISCRETE = 0.25
"""The least noise multiplier for which a privacy loss distribution is laid out: below, it takes gigabytes."""
HARDLY_ANY = 0.01
INTERVAL = 1e-4
"""Privacy losses are rounded up to multiples of this, as dp-accounting's accountant does."""
ABSENT = "messages.privacy is accounted for by dp-accounting, which is not installed: pip install 'coband[privacy]'"
NONE, EVERYTHING = 0.0, math.inf


def _library() -> Any:
    try:
        import dp_accounting
    except ImportError:
        raise UnsupportedScenario(ABSENT) from None
    return dp_accounting


def installed() -> bool:
    """Whether there is an accountant; without, a run whose nodes are private by themselves says no epsilon."""
    return find_spec("dp_accounting") is not None


@lru_cache(maxsize=100_000)
def gaussian_epsilon(sigma: float, weight: float, delta: float, accountant: Accountant = "exact") -> float:
    """The epsilon of (epsilon, delta)-differential privacy of Gaussian releases.

    Args:
        sigma: standard deviation of the noise over the sensitivity to one pull.
        weight: sum over all releases of their squared sensitivities, in units of that of one pull.
        delta: with this probability the promise may fail.
        accountant: exact: by the Gaussian mechanism's own formula (Balle and Wang 2018); pld: a discretised privacy
            loss distribution, rounded up; rdp: from Renyi divergences, an upper bound.

    Raises:
        UnsupportedScenario: dp-accounting is not installed.
    """
    if not weight:
        return NONE
    dp, multiplier = _library(), sigma / math.sqrt(weight)
    if not multiplier:
        return EVERYTHING
    if multiplier < HARDLY_ANY:  # in thousands, by concentrated privacy (Bun and Steinke 2016, proposition 1.3)
        rho = 0.5 / multiplier**2
        return rho + 2.0 * math.sqrt(rho * math.log(1.0 / delta))
    if accountant == "exact" or (accountant == "pld" and multiplier < DISCRETE):
        return float(dp.get_epsilon_gaussian(multiplier, delta))
    relation = dp.NeighboringRelation.REPLACE_SPECIAL
    kind = dp.pld.PLDAccountant if accountant == "pld" else dp.rdp.RdpAccountant
    found = kind(neighboring_relation=relation)
    found.compose(dp.GaussianDpEvent(multiplier))
    return float(found.get_epsilon(delta))


@lru_cache(maxsize=1000)
def own_epsilon(spent: Spent, delta: float) -> float:
    """The epsilon of Gaussian releases in which the hidden data take part by chance, each time again.

    Where they always do it is `gaussian_epsilon`; else a privacy loss distribution (Koskela, Jalko and Honkela 2020),
    an upper bound, for data that are left out or not. With little noise it is that of data that always take part.

    Raises:
        UnsupportedScenario: dp-accounting is not installed.
    """
    if spent.rate == 1.0 or not spent.releases or spent.multiplier < DISCRETE:
        return gaussian_epsilon(spent.multiplier, spent.releases, delta)
    found = _library().pld.privacy_loss_distribution.identity(value_discretization_interval=INTERVAL)
    found = found.compose(_one_release(spent.rate, spent.multiplier).self_compose(spent.releases))
    return float(found.get_epsilon_for_delta(delta))


@lru_cache(maxsize=8)
def _one_release(rate: float, multiplier: float) -> Any:
    """The privacy loss distribution of one release, which takes longer than to compose many."""
    dp = _library()
    return dp.pld.privacy_loss_distribution.from_gaussian_mechanism(
        standard_deviation=multiplier,
        value_discretization_interval=INTERVAL,
        sampling_prob=rate,
        neighboring_relation=dp.NeighboringRelation.ADD_OR_REMOVE_ONE,
    )


@lru_cache(maxsize=1000)
def gaussian_sigma(epsilon: float, weight: float, delta: float, accountant: Accountant = "exact") -> float:
    """The least sigma with which `gaussian_epsilon` is at most epsilon, to a relative 1e-6."""
    exact = float(_library().get_sigma_gaussian(epsilon, delta)) * math.sqrt(weight)
    low = high = exact
    while gaussian_epsilon(high, weight, delta, accountant) > epsilon:
        low, high = high, 1.25 * high
    while high - low > 1e-6 * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if gaussian_epsilon(middle, weight, delta, accountant) <= epsilon else (middle, high)
    return high


def laplace_epsilon(sigma: float, weight: float) -> float:
    """The epsilon of Laplace releases: their number over the scale in units of the sensitivity (Dwork et al. 2006)."""
    return (weight / sigma if sigma else EVERYTHING) if weight else NONE
