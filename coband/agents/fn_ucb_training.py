"""The networks of an agent of FN-UCB (Dai et al. 2023, algorithm 1, line 14), and when they are trained on what."""

from __future__ import annotations

import math

import numpy as np

from coband.agents.fn_ucb_parameters import FnUcbConfig
from coband.agents.restarts import Restarts
from coband.simulator.arrays import FloatArray
from coband.simulator.core.nodes.node import NodeContext
from coband.simulator.maths.neural.training import Task, TrainingPool
from coband.simulator.maths.posteriors.observations import GrowingObservations


class Training:
    """The agent's own network and its training set.

    Attributes:
        network: the shape of all networks.
        theta_0: the first weights, the same for all agents, (p,); with ``networks: shared_storage`` the weights of all.
        theta_own: the weights of the agent's network.
        theta_sync: those that the server sent.
        data: the training set.
        restarts: trainings that diverged.
    """

    def __init__(self, context: NodeContext) -> None:
        config: FnUcbConfig = context.config
        self.config, self._owner = config, context.index
        self.network = config.network(context.dimension)
        # Line 1. theta_0 comes from a coin that all agents may open, and so is the same for all.
        first = context.sharing.get("theta_0", lambda: self.network.initial(context.open_coin(0)))
        self.theta_0, self._centre = first, first.copy()
        if config.networks == "shared_storage":
            self.theta_0 = context.sharing.common("storage", lambda: first)
        self.theta_own = self.theta_sync = self.theta_0
        self.data = GrowingObservations(self.network.inputs)
        self.restarts = Restarts()
        self._newest: tuple[FloatArray, float] | None = None
        self._pool = context.sharing.get("pool", lambda: TrainingPool(config.descent(self.network)))

    def add(self, x: FloatArray, reward: float) -> None:
        """A pull, which is in the training set from now on, or from the next training on."""
        if self.config.training_points == "all":
            self.data.append(x, reward)
        else:
            self._newest = x, reward

    def train(self, turn: int, alpha: float) -> FloatArray:
        """Train if it is time, at a turn and with the agent's alpha; the weights as they are then and stay."""
        newest, self._newest = self._newest, None
        if self._is_due(turn, alpha):
            if newest is not None:
                self.data.append(*newest)
            if self.data.size:
                self._replace(self._pool.train(self._owner, self._task()))
        return self.theta_own.copy() if self.config.networks == "shared_storage" else self.theta_own

    def _replace(self, trained: FloatArray) -> None:
        trained = self.restarts.checked(trained, self._centre)
        if self.config.networks == "shared_storage":
            self.theta_0[:] = trained
        else:
            self.theta_own = trained

    def announce(self, turn: int, alpha: float) -> None:
        """Tell the pool what would be trained if a synchronisation began now."""
        if self.config.networks == "separate" and self.data.size and self._is_due(turn, alpha):
            self._pool.announce(self._owner, self._task())

    def _is_due(self, turn: int, alpha: float) -> bool:
        """A network that is never asked is not trained."""
        config = self.config
        if config.use == "a_only" or turn > config.train_until:
            return False
        return config.train_when == "always" or alpha > 0

    def _task(self) -> Task:
        start = self.theta_own if self.config.train_from == "own" else self.theta_sync
        return Task(start, self._centre, self.data.points, self.data.rewards)

    def loss(self) -> float:
        """Mean squared error of the agent's network on its training set; infinite without data.

        The decay of the weights is left out: it weighs less the more data an agent has.
        """
        if not self.data.size:
            return math.inf
        errors = self.network.values(self.theta_own, self.data.points) - self.data.rewards
        loss = float(np.mean(errors * errors))
        return loss if math.isfinite(loss) else math.inf
