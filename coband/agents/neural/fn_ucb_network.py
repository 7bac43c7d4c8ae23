"""Parameters of FN-UCB (Dai et al. 2023, algorithm 1, section 3, appendix E) and what its published code does instead;
the networks of an agent (algorithm 1, line 14), and when they are trained on what."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
from pydantic import Field, model_validator

from coband.agents.common.parameters import Synchronous
from coband.agents.neural.networks import NeuralBandit, Restarts
from coband.simulator.arrays import FloatArray
from coband.simulator.core.nodes.node import NodeContext
from coband.simulator.maths.neural.training import Task, TrainingPool
from coband.simulator.maths.posteriors.observations import GrowingObservations


class FnUcbConfig(NeuralBandit, Synchronous):
    """Parameters of algorithm 1."""

    nu2: float = Field(default=0.1, ge=0)
    """nu_TK, exploration in UCB b; ``nu`` is nu_TKN, exploration in UCB a."""
    threshold: float = Field(default=0.0, ge=0)
    """The paper's D: a synchronisation is due when (t - t_last) * (gain in log det) exceeds it; 0: every turn."""
    trigger: Literal["diagonal", "full"] = "diagonal"
    """Determinants only of the diagonals (appendix E), or of the full matrices (line 11)."""
    less_comm: bool = True
    """FN-UCB (Less Comm.): the server sends the average of the inverses, not all N."""
    alpha: Literal["schedule", "theory"] = "schedule"
    """The weight of UCB b: a schedule (section 5), or min sigma / max sigma over arms offered so far (section 3.3)."""
    alpha_start: int = Field(default=0, ge=0)
    """schedule: the weight is 0 for this many turns."""
    alpha_ramp: int = Field(default=700, ge=1)
    """schedule: after ``alpha_start`` turns the weight grows to 1 in this many more."""
    alpha_points: int = Field(default=200, ge=1)
    """theory: the first so many arms that the agent is offered stand for the domain."""
    use: Literal["both", "a_only", "b_only"] = "both"
    """Ablation: both bounds, alpha = 0, or alpha = 1 in choosing."""
    average: Literal["none", "weights", "best"] = "weights"
    """theta_sync of UCB b: the agent's own network (ablation; the messages stay), the mean of all weights (the paper),

    or the network with the smallest mean squared error on its agent's training set (ours).
    """
    train_from: Literal["own", "averaged"] = "own"
    """Where the next training starts: own: the agent's last weights (appendix E); averaged: theta_sync (ours)."""
    train_until: int = Field(default=2000, ge=0)
    """Networks are not trained after this turn."""
    train_when: Literal["always", "alpha"] = "always"
    """alpha: only once the agent's alpha is positive."""
    training_points: Literal["all", "communicated"] = "all"
    """communicated: only points pulled in turns that end with a synchronisation in which the network is trained."""
    networks: Literal["separate", "shared_storage"] = "separate"
    """separate: the paper; shared_storage: one set of weights for all nodes, outside of all messages."""

    @model_validator(mode="before")
    @classmethod
    def _renamed(cls, given: Any) -> Any:
        if isinstance(given, dict) and "aggregate_networks" in given:
            raise ValueError("aggregate_networks is called average: write average: none for false, weights for true.")
        return given

    @model_validator(mode="after")
    def _one_network_has_no_average(self) -> FnUcbConfig:
        given = f"average(={self.average})" if self.average != "weights" else f"train_from(={self.train_from})"
        if self.networks == "shared_storage" and (self.average, self.train_from) != ("weights", "own"):
            raise ValueError(
                f"{given} means nothing with networks: shared_storage, where all agents train one network; "
                "leave it out, or write networks: separate."
            )
        if self.average == "none" and self.train_from == "averaged":
            raise ValueError(
                "train_from(=averaged) needs an average, and there is none with average: none; "
                "write train_from: own, or average: weights or best."
            )
        return self


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
