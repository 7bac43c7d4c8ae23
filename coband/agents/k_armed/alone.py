"""Thompson sampling for rewards from 0 to 1 (Thompson 1933) and epsilon-greedy (Auer et al. 2002), by each agent alone.
As printed: `tests/oracles/k_armed/alone.py`. Next: `agent.py`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from coband.agents.k_armed.agent import KArmed
from coband.simulator.arrays import FloatArray
from coband.simulator.core.algorithm import SILENT, Algorithm, Needs
from coband.simulator.core.config import Config


class NoParameters(Config):
    """Thompson sampling from uniform priors has no parameters."""


class ThompsonBernoulli(KArmed):
    """Draws a mean of each arm from its posterior Beta(1 + s, 1 + n - s); the arm with the highest is pulled.

    A reward that noise or an attack has moved beyond 0 or 1 counts as 0 or 1.
    """

    def decide(self) -> int:
        return self.best(self.scores())

    def scores(self) -> FloatArray:
        return self.context.rng.beta(1.0 + self.sums, 1.0 + self.counts - self.sums)

    def learn(self, arm: int, reward: float) -> None:
        super().learn(arm, min(max(reward, 0.0), 1.0))


class EpsilonGreedyConfig(Config):
    """Parameters of epsilon-greedy."""

    epsilon: Annotated[float, Field(ge=0, le=1)] | Literal["decay"] = "decay"
    """Probability of a random arm; decay: min(1, c K / (d^2 t)) in turn t, so that the first c K / d^2 are random."""
    c: float = Field(default=0.1, gt=0)
    """With decay: how much is explored. The theorem asks for more than 5, so that with d = 0.1 the first 500 K turns
    are random; 0.1 is what published code has (SMPyBandits)."""
    d: float = Field(default=0.1, gt=0, le=1)
    """With decay: a lower bound on the smallest gap."""

    @model_validator(mode="after")
    def _check(self) -> EpsilonGreedyConfig:
        if self.epsilon != "decay" and (self.c, self.d) != (0.1, 0.1):
            raise ValueError(f"c(={self.c:g}) and d(={self.d:g}) go with epsilon: decay; leave out one or the other.")
        return self


class EpsilonGreedy(KArmed):
    """A random arm with probability epsilon; else one that was never pulled, or the one with the highest mean."""

    def decide(self) -> int:
        config: EpsilonGreedyConfig = self.context.config
        rng, arms = self.context.rng, len(self.counts)
        decayed = min(1.0, config.c * arms / (config.d**2 * (self.turns + 1)))
        if rng.random() >= (decayed if config.epsilon == "decay" else config.epsilon):
            return super().decide()
        return int(rng.integers(arms))

    def scores(self) -> FloatArray:
        means: FloatArray = self.sums / self.counts
        return means


ALONE = Needs(topologies=("star", "graph"), reliable=False, steady_arms=True)
UNIT = Needs(topologies=("star", "graph"), reliable=False, steady_arms=True, unit_rewards=True)
THOMPSON = Algorithm(
    name="thompson_bernoulli",
    agent=ThompsonBernoulli,
    server=None,
    config=NoParameters,
    summary="Thompson sampling for rewards from 0 to 1: K arms, every agent alone.",
    reference="Thompson 1933; Agrawal and Goyal 2012",
    needs=UNIT,
    counts=SILENT,
    rate="regret O(log T) per agent, asymptotically the least possible (Kaufmann et al. 2012)",
    cites=("agrawal2012analysis",),
)
EPSILON_GREEDY = Algorithm(
    name="epsilon_greedy",
    agent=EpsilonGreedy,
    server=None,
    config=EpsilonGreedyConfig,
    summary="Epsilon-greedy: K arms, every agent alone.",
    reference="Auer et al. 2002, Figure 3",
    needs=ALONE,
    counts=SILENT,
    rate="with decay: regret O(K log T / d^2) per agent (Auer et al. 2002, Theorem 3)",
    cites=("auer2002finite",),
    search={"c": "0.01..5"},
)
