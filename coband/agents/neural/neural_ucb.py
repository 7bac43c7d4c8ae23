"""NeuralUCB (Zhou et al. 2020) and NeuralTS (Zhang et al. 2021), by one agent; baselines of Dai et al. 2023.
As printed: `tests/oracles/single_agent.py`. Next: `networks.py`, `alone/agent.py`.

U = lam I + sum g g^T with features g = grad f / sqrt(m) (``init: normal``: grad f) at the weights of the turn; the
network is trained on all data after every turn, from the last weights. A training that diverges is undone
(`networks`).
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from coband.agents.alone.agent import EXPLORATION, Alone, single
from coband.agents.neural.networks import METRICS, NeuralBandit, Restarts, enter
from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray
from coband.simulator.core.nodes.node import NodeContext, Outbox
from coband.simulator.maths.neural.training import Task
from coband.simulator.maths.posteriors.choose import ridge
from coband.simulator.maths.posteriors.observations import GrowingObservations, Observations


class NeuralUcbConfig(NeuralBandit):
    """Parameters of NeuralUCB and NeuralTS."""

    train_until: int = Field(default=2000, ge=0)
    """The network is not trained after this turn."""


class NeuralUCB(Alone):
    """Network value plus deviation."""

    kept = ("_features",)

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        config: NeuralUcbConfig = context.config
        self.config = config
        self.network = config.network(context.dimension)
        self._rng = context.rng
        self.theta_0 = self.theta = self.network.initial(self._rng)
        self.ridge = ridge(self.network.size, config.lam, config.diagonal)
        self._descent = config.descent(self.network)
        self._data = GrowingObservations(self.network.inputs)
        self._restarts = Restarts()

    @property
    def pulls_in_model(self) -> int | None:
        """Not counted: the network lags behind the statistics of the deviation."""
        return None

    def scores(self, arms: ArmSet) -> FloatArray:
        config = self.config
        inputs = enter(config, arms.features)
        self._features = self.network.features(self.theta, inputs)
        deviation = config.nu * np.sqrt(config.lam * self.ridge.variance(self._features))
        return self.optimistic(self.network.values(self.theta, inputs), deviation)

    def optimistic(self, value: FloatArray, deviation: FloatArray) -> FloatArray:
        """f(x; theta) + nu sqrt(lam) ||g||_(U^-1)."""
        return value + deviation

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        """U += g g^T at the weights of the turn; then train."""
        self.ridge.add_squares(self._features[arm : arm + 1])
        return super().observe(arms, arm, reward)

    def learn(self, pull: Observations) -> None:
        """Train on all data."""
        config, data = self.config, self._data
        data.append(enter(config, pull.features)[0], float(pull.rewards[0]))
        if data.size <= config.train_until:
            trained = self._descent(Task(self.theta, self.theta_0, data.points, data.rewards))
            self.theta = self._restarts.checked(trained, self.theta_0)

    def report(self) -> dict[str, float | int]:
        return self._restarts.report()


class NeuralTS(NeuralUCB):
    """Thompson sampling arm by arm."""

    def optimistic(self, value: FloatArray, deviation: FloatArray) -> FloatArray:
        """A draw from N(f(x; theta), nu^2 lam ||g||^2) per arm."""
        return value + deviation * self._rng.standard_normal(len(value))


NEURAL_UCB = single(
    "neural_ucb",
    NeuralUCB,
    NeuralUcbConfig,
    "Neural UCB, every agent alone.",
    "Zhou et al. 2020; baseline of Dai et al. 2023",
    "zhou2020neural",
    METRICS,
    search=EXPLORATION,
)
NEURAL_TS = single(
    "neural_ts",
    NeuralTS,
    NeuralUcbConfig,
    "Neural Thompson sampling, every agent alone.",
    "Zhang et al. 2021; baseline of Dai et al. 2023",
    "zhang2021neural",
    METRICS,
    search=EXPLORATION,
)
