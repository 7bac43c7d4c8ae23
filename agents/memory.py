"""What the posteriors of several algorithms keep, in float64 numbers (`maths.posteriors.choose` has the same table)."""

from __future__ import annotations

from coband.simulator.core.memory import Memory, RunSize
from coband.simulator.maths.linalg.gram import BLOCK

FEWER = "fewer turns (schedule.turns) or agents (agents.count)"

DOMAIN_ROWS = "max(64, M/4 if M <= 8192 else M)"
"""Pulls from which a posterior on a fixed arm set keeps a matrix M x M instead of a row for each pull
(`maths.posteriors.finite_domain`)."""

EXACT_ALONE = Memory(
    "an exact posterior for each agent", f"N*(t^2/2 if M == 0 else (t*M if t <= {DOMAIN_ROWS} else 1.25*M^2))", FEWER
)

EXACT_IN_COMMON = Memory(
    "the exact posterior on the pulls of all agents",
    f"T^2/2 + (1200*T if T > 512 else 0) if M == 0 else T*M + (0 if T <= {DOMAIN_ROWS} else M^2)",
    FEWER,
)
"""Of agents that know prefixes of one log; above 512 pulls with solves for the arms of coming turns."""


def _matrices(run: RunSize, features: int) -> float:
    """Of an inverse of p x p for each agent; before 64 pulls, what is added to it and taken off it as rows of p."""
    pulls = run.quantities.get("t", BLOCK)
    return run.agents * float(features) * (features if pulls >= BLOCK else 2 * pulls)


def _of_arms(run: RunSize) -> float | None:
    """N*d^2, below 64 pulls of an agent 2*N*t*d."""
    return None if run.dimension is None else _matrices(run, run.dimension)


LINEAR = Memory("a matrix d x d for each agent", _of_arms, "fewer agents (agents.count) or dimensions of arms")

LINEAR_IN_COMMON = Memory("a matrix d x d", "d^2", "fewer dimensions of arms")
"""Of agents that share it as long as they know the same."""


def _of_gradients(run: RunSize) -> float | None:
    """N*p^2 for p weights of a network, below 64 pulls of an agent 2*N*t*p; N*p with diagonal: true."""
    if run.dimension is None:
        return None
    weights: int = run.config.weights(run.dimension)
    return run.agents * float(weights) if run.config.diagonal else _matrices(run, weights)


NEURAL = Memory(
    "a matrix of gradients for each agent",
    _of_gradients,
    "a smaller width, or diagonal: true, or fewer agents (agents.count)",
)
"""p x p for networks of p weights, p with ``diagonal``."""
