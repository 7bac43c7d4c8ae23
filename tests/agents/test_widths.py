"""Widths of kernel bandits cover the rewards' means, whatever the ridge parameter is."""

import math

import numpy as np
import pytest

from coband.agents.alone.kernel_ucb import igp_beta
from coband.agents.graph.coop_kernel_ucb import lemma_1
from coband.simulator.arrays import FloatArray

NOISE, DELTA, TURNS, WORLDS = 0.5, 0.05, 60, 15


def kernel(X: FloatArray, Y: FloatArray) -> FloatArray:
    squares = ((X[:, None] - Y[None]) ** 2).sum(axis=2)
    return np.asarray(np.exp(-squares / (2 * 0.2**2)))


def covered(rule: str, lam: float, seed: int) -> bool:
    """Whether |f - mu| <= beta sigma at all points and turns, for an f of norm 1 and pulls by mu + beta sigma."""
    rng = np.random.default_rng(seed)
    X = rng.random((40, 2))
    K = kernel(X, X)
    weights = rng.standard_normal(40)
    f = K @ weights / math.sqrt(weights @ K @ weights)
    pulled, rewards = list[int](), list[float]()
    for turn in range(TURNS):
        G, k = K[np.ix_(pulled, pulled)], K[:, pulled]
        solved = np.linalg.solve(G + lam * np.eye(turn), k.T)
        mean, sigma = solved.T @ np.array(rewards), np.sqrt(1.0 - np.vecdot(k, solved.T))
        log_det = float(np.linalg.slogdet(np.eye(turn) + G / lam)[1])
        if rule == "igp_ucb":
            beta = igp_beta(1.0, NOISE, DELTA, 0.5 * log_det, lam)
        else:
            beta = lemma_1(1.0, NOISE, DELTA, 3, log_det + turn * max(0.0, math.log(lam)), lam)
        if np.any(np.abs(f - mean) > beta * sigma + 1e-9):
            return False
        arm = int(np.argmax(mean + beta * sigma))
        pulled.append(arm)
        rewards.append(float(f[arm] + NOISE * rng.standard_normal()))
    return True


@pytest.mark.parametrize("lam", [0.02, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("rule", ["igp_ucb", "lemma_1"])
def test_confidence_bounds_hold_with_any_ridge(rule: str, lam: float) -> None:
    failures = sum(not covered(rule, lam, seed) for seed in range(WORLDS))
    assert failures <= 2, "of 15, where 5 % may fail"


def test_for_ridges_of_the_theorems_widths_are_as_printed() -> None:
    assert igp_beta(2.0, 0.3, 0.1, 5.0, 1.5) == 2.0 + 0.3 * math.sqrt(2 * (5.0 + 1 + math.log(10)))
    printed = math.sqrt(7.0 + 2 * math.log(10) + 2 * math.log(4))
    assert lemma_1(2.0, 0.3, 0.1, 4, 7.0, 1.0) == pytest.approx(2.0 + 0.3 * printed)
