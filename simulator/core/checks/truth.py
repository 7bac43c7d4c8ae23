"""What pulls must have cost: regret from the world's means, and noise that no two agents have in common."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from typing import Any

from coband.simulator.arrays import IntArray
from coband.simulator.core.audit.invariants import InvariantViolation
from coband.simulator.core.nodes.node import Address

ROUNDING = 1e-9
COMPARED = 8
"""Turns of two agents whose noise is compared."""


class Truth:
    """Recomputes the regret of every pull, where the world says what arms are worth.

    Args:
        world: of the run; one without ``means``, or whose regret is against the noisy reward, is not looked at.
    """

    def __init__(self, world: Any) -> None:
        means = getattr(world, "means", None)
        self._means = None if getattr(world, "realised", False) else means
        self._turns = Counter[Address]()
        self._noise: dict[Address, list[float]] = defaultdict(list)

    def pulled(self, agent: Address, arm: int, reward: float, regret: float, cause: int) -> None:
        self._turns[agent] += 1
        if self._means is None:
            return
        means = self._means(agent, self._turns[agent]).tolist()
        self._regret(agent, max(means) - means[arm], regret, cause)
        noise = self._noise[agent]
        if len(noise) < COMPARED:
            noise.append(reward - means[arm])

    def pulled_batch(self, agent: Address, counts: IntArray, regret: float, cause: int) -> None:
        if self._means is not None:
            means = self._means(agent, 1).tolist()
            lost = math.fsum(count * (max(means) - mean) for count, mean in zip(counts.tolist(), means, strict=True))
            self._regret(agent, lost, regret, cause)

    @staticmethod
    def _regret(agent: Address, expected: float, regret: float, cause: int) -> None:
        if not math.isclose(expected, regret, rel_tol=ROUNDING, abs_tol=ROUNDING):
            text = f"the regret of agent {agent} is noted as {regret:.9g}, by the means of its arms {expected:.9g}"
            raise InvariantViolation(text, cause)

    def at_end(self) -> None:
        """Agents have noise of their own."""
        seen: dict[tuple[float, ...], Address] = {}
        for agent, noise in self._noise.items():
            values = tuple(round(value, 9) for value in noise)
            if len(set(map(abs, values))) < COMPARED:  # none, or one of few values
                continue
            if values in seen:
                raise InvariantViolation(f"agents {seen[values]} and {agent} have the same noise in their rewards")
            seen[values] = agent
