"""What the posteriors of several algorithms keep, in float64 numbers (`maths.posteriors.choose` has the same table)."""

from __future__ import annotations

from coband.simulator.core.memory import Memory, RunSize

FEWER = "fewer turns (schedule.turns) or agents (agents.count)"

DOMAIN_ROWS = "max(64, M/4 if M <= 8192 else M)"
"""Pulls from which a posterior on a fixed arm set keeps a matrix M x M instead of a row for each pull
(`maths.posteriors.finite_domain`)."""

EXACT_ALONE = Memory(
    "an exact posterior for each agent",
    f"N*(t^2/2 if M == 0 else (t*M if t <= {DOMAIN_ROWS} else 1.25*M^2))",
    FEWER,
)
"""Of agents that learn from their own pulls."""

EXACT_IN_COMMON = Memory(
    "the exact posterior on the pulls of all agents",
    f"T^2/2 + (1200*T if T > 512 else 0) if M == 0 else T*M + (0 if T <= {DOMAIN_ROWS} else M^2)",
    FEWER,
)
"""Of agents that know prefixes of one log; above 512 pulls with solves for the arms of coming turns."""

LINEAR = Memory("a matrix d x d for each agent", "N*d^2", "fewer agents (agents.count) or dimensions of arms")

LINEAR_IN_COMMON = Memory("a matrix d x d", "d^2", "fewer dimensions of arms")
"""Of agents that share it as long as they know the same."""


def _weights(run: RunSize) -> float | None:
    return None if run.dimension is None else run.config.weights(run.dimension)


def _of_gradients(run: RunSize) -> float | None:
    """N*p^2 for p weights of a network, N*p with diagonal: true."""
    weights = _weights(run)
    return None if weights is None else run.agents * float(weights) ** (1 if run.config.diagonal else 2)


NEURAL = Memory(
    "a matrix of gradients for each agent",
    _of_gradients,
    "a smaller width, or diagonal: true, or fewer agents (agents.count)",
)
"""p x p for networks of p weights, p with ``diagonal``."""
