"""The constants that the theorems of Async-KernelUCB ask for.

Li et al. 2023: "Learning Kernelized Contextual Bandits in a Distributed and Asynchronous Environment". Throughout,
beta = (1 + eps)/(1 - eps) for the accuracy eps of the dictionary, and N is the number of agents.
"""

from __future__ import annotations

import math

import numpy as np

from coband.simulator.arrays import FloatArray


def accuracy_ratio(epsilon: float) -> float:
    """beta = (1 + eps)/(1 - eps) (Li et al. 2023, lemma 4.1)."""
    return (1.0 + epsilon) / (1.0 - epsilon)


def sampling_rate(epsilon: float, horizon: int, delta: float) -> float:
    """q = 4 ln(2 sqrt(2) T/delta) beta (1 + eps/3)/eps^2 (Li et al. 2023, lemma 4.1).

    Args:
        epsilon: accuracy eps of the dictionary, in (0, 1).
        horizon: T, turns of all agents together.
        delta: probability of failure.
    """
    logarithm = math.log(2.0 * math.sqrt(2.0) * horizon / delta)
    return 4.0 * logarithm * accuracy_ratio(epsilon) * (1.0 + epsilon / 3.0) / epsilon**2


def exchange_threshold(agents: int) -> float:
    """D = 1/N^2, with which the bounds on regret and communication hold (Li et al. 2023, section 4.3)."""
    return 1.0 / agents**2


def information_gain(A: FloatArray, scale: float) -> float:
    """1/2 log det(I + A/scale) for statistics A = sum z z^T (m, m): that of the data behind A, K/scale for A/scale."""
    return 0.5 * float(np.linalg.slogdet(np.eye(len(A)) + A / scale)[1])


def confidence_width(
    gain: float, *, agents: int, threshold: float, epsilon: float, lam: float, norm: float, noise: float, delta: float
) -> float:
    """alpha = (1/sqrt(1-eps) + 1) sqrt(lam) S + 2 R (sqrt(1 + N D beta) + N sqrt(2 D beta)) sqrt(ln(1/delta) + gamma).

    Li et al. 2023, lemma 4.4, which holds with probability 1 - 2 delta.

    Args:
        gain: gamma, an information gain at scale D beta lam.
        agents: N.
        threshold: D.
        epsilon: accuracy eps of the dictionary.
        lam: ridge parameter lambda.
        norm: S, a bound on the norm of f.
        noise: R, the noise is R-sub-Gaussian.
        delta: that of the lemma.
    """
    spread = threshold * accuracy_ratio(epsilon)
    lag = math.sqrt(1.0 + agents * spread) + agents * math.sqrt(2.0 * spread)
    bias = (1.0 / math.sqrt(1.0 - epsilon) + 1.0) * math.sqrt(lam) * norm
    return bias + 2.0 * noise * lag * math.sqrt(math.log(1.0 / delta) + gain)
