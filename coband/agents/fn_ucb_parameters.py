"""Parameters of FN-UCB (Dai et al. 2023, algorithm 1, section 3, appendix E), and what its published code does
instead."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from coband.agents.neural_parameters import NeuralBandit
from coband.agents.parameters import Synchronous


class FnUcbConfig(NeuralBandit, Synchronous):
    """Parameters of algorithm 1."""

    nu2: float = Field(default=0.1, ge=0)
    """nu_TK, exploration in UCB b; ``nu`` is nu_TKN, exploration in UCB a."""
    threshold: float = Field(default=0.0, ge=0)
    """The paper's D: a synchronisation is due when (t - t_last) * (gain in log det) exceeds it; 0: every turn."""
    trigger: Literal["diagonal", "full"] = "diagonal"
    """Determinants of the diagonals alone (appendix E), or of the full matrices (line 11)."""
    less_comm: bool = True
    """FN-UCB (Less Comm.): the server sends the average of the inverses, not all N."""
    rescale: bool | None = None
    """Rescale the means of UCB a to [0, 1] over the arms of a turn (footnote 4); null: as ``diagonal``."""
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
