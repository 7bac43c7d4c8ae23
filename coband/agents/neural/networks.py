"""Networks of the algorithms that have one: their parameters, and what becomes of a training that diverges.

Where the inputs of few data are long, a step of gradient descent overshoots by more than it corrects; the weights grow
with every step, and are no longer numbers in the end. Whatever such a network says, the first arm seems best from then
on. The papers and their public codes do not provide for that. Here the network starts again from theta_0 at its next
training (Dai et al. 2023, algorithm 1, line 14), which has more data, and the run says how often this happened.
"""

from __future__ import annotations

import math
from typing import Literal, Self

import numpy as np
from pydantic import Field, model_validator

from coband.simulator.arrays import FloatArray, require_room
from coband.simulator.core.config import Config
from coband.simulator.core.nodes.node import UnsupportedScenario
from coband.simulator.maths.neural.network import Init, Network
from coband.simulator.maths.neural.training import Descent, Precision, has_diverged
from coband.simulator.metrics import Metric


class NeuralBandit(Config):
    """Parameters of every algorithm with a network (Dai et al. 2023, section 5.1 and appendix E)."""

    width: int = Field(default=20, ge=1)
    """Units m of every hidden layer."""
    layers: int = Field(default=2, ge=2)
    """Depth L, the number of weight matrices; 2: one hidden layer."""
    init: Init = "paper"
    """paper: appendix B, features g/sqrt(m), output scaled by sqrt(m); normal: weights and biases N(0, 1), unscaled."""
    duplicate_input: bool | None = None
    """Feed [x; x]/sqrt(2), whose halves are equal (assumption 1); null: with ``init: paper``."""
    diagonal: bool = False
    """Keep only the diagonals of matrices."""
    lam: float = Field(default=0.1, gt=0)
    """Ridge parameter lambda."""
    nu: float = Field(default=0.1, ge=0)
    """Exploration: nu * sqrt(lam) * (norm of the features)."""
    steps: int = Field(default=30, ge=0)
    """Steps of gradient descent at each training."""
    lr: float | None = Field(default=None, gt=0)
    """Learning rate; null: 0.01 with ``train: public``, 1/(m lam + m n L) for n points with ``train: paper``."""
    train: Literal["public", "paper"] = "public"
    """Loss: mean squared error with weight decay lam/n (published code), or eq. 1."""
    precision: Precision = "float64"
    """Precision of the steps of a training; everything else is float64."""

    @model_validator(mode="after")
    def _halves_are_equal(self) -> Self:
        if self.init == "paper" and self.width % 2:
            raise ValueError(
                f"width(={self.width}) must be even with init: paper, whose weights are two equal blocks; "
                f"write width: {self.width + 1}, or init: normal."
            )
        return self

    def network(self, dimension: int) -> Network:
        """The network for arms of a dimension.

        Raises:
            UnsupportedScenario: ``init: paper`` with an odd number of inputs, which have no equal halves.
            TooLarge: no machine like this one holds a matrix of all pairs of its weights.
        """
        inputs = 2 * dimension if self.doubles_input else dimension
        try:
            network = Network(inputs, self.width, self.layers, self.init)
        except ValueError as error:
            raise UnsupportedScenario(str(error)) from None
        if not self.diagonal:
            what = f"a matrix for the gradients of {network.size:,} weights"
            require_room(what, network.size, network.size, instead="choose a smaller width, or diagonal: true")
        return network

    @property
    def doubles_input(self) -> bool:
        """Whether inputs are made of two equal halves."""
        return self.init == "paper" if self.duplicate_input is None else self.duplicate_input

    def descent(self, network: Network) -> Descent:
        """How networks are trained."""
        return Descent(network, self.steps, self.lr, self.lam, self.train, self.precision)


def enter(config: NeuralBandit, arms: FloatArray) -> FloatArray:
    """Inputs of the network for arms (..., n, d)."""
    return np.concatenate([arms, arms], axis=-1) * math.sqrt(0.5) if config.doubles_input else arms


METRICS = (
    Metric(
        "restarts", "trainings", "trainings that diverged, after which the network starts again from its first weights"
    ),
    Metric(
        "trainings_converge",
        "0 or 1",
        "0: a training ended with weights that are not numbers or beyond 1e30",
        aggregate="min",
        caution="training diverged, and networks started again from their first weights; give lr a smaller value, or "
        "scale the inputs",
    ),
)


class Restarts:
    """Counts the trainings of one agent that diverged."""

    def __init__(self) -> None:
        self.count = 0

    def checked(self, trained: FloatArray, first: FloatArray) -> FloatArray:
        """The weights after a training (p,), or ``first``, those of theta_0, if it has diverged."""
        if not has_diverged(trained):
            return trained
        self.count += 1
        return first

    def report(self) -> dict[str, float | int]:
        """What METRICS declares."""
        return {"restarts": self.count, "trainings_converge": int(not self.count)}
