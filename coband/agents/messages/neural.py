"""Messages of the federated neural bandit (Dai et al. 2023).

Shapes: p network parameters; matrices (p, p), or their diagonals (p,).
"""

from __future__ import annotations

from typing import ClassVar

from coband.simulator.arrays import FloatArray
from coband.simulator.core.nodes.message import Message, payload
from coband.simulator.maths.linalg.gram import Gram


class NeuralUpload(Message):
    """Up, algorithm 1, line 16: W_new, B_new, the trained weights, alpha_i and the inverse of V_local.

    ``loss``: the network's mean squared error on the agent's training set, where the server picks by it.
    """

    kind: ClassVar[str] = "upload"
    W: Gram | FloatArray = payload(kind="gram", symmetric=True, adds="news")
    B: FloatArray = payload("p", kind="moment", adds="news")
    theta: FloatArray = payload("p", kind="weights", adds="all")
    alpha: float = payload()
    inverse: Gram | FloatArray = payload(kind="gram", symmetric=True)
    loss: float | None = payload()


class NeuralModel(Message):
    """Down, algorithm 2, line 6: W_sync, B_sync, theta_sync, alpha; all inverses, or their average alone."""

    kind: ClassVar[str] = "model"
    W: Gram | FloatArray = payload(kind="gram", symmetric=True)
    B: FloatArray = payload("p", kind="moment")
    theta: FloatArray = payload("p", kind="weights")
    alpha: float = payload()
    inverses: tuple[Gram | FloatArray, ...] = payload(kind="gram", symmetric=True)

    @property
    def answered(self) -> int:
        """Agents whose inverses it holds: all whose uploads have come."""
        return len(self.inverses)
