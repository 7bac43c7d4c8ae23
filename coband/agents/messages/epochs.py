"""Messages at the ends of epochs and batches: DUETS (Pavlovic et al. 2024) and batched pure exploration (Li and
Scarlett 2022)."""

from __future__ import annotations

from typing import ClassVar

from coband.simulator.arrays import FloatArray
from coband.simulator.core.nodes.message import Message, payload


class EpochEnd(Message):
    """Up: the agent has pulled all points of its epoch; no payload. ``round``: the epoch."""

    kind: ClassVar[str] = "epoch_end"


class InducingSet(Message, m="points of the inducing set"):
    """Down, Algorithm 2, line 8: the inducing set S_j."""

    kind: ClassVar[str] = "inducing_set"
    points: FloatArray = payload("m", "d", kind="points")


class Projection(Message, m="points of the inducing set"):
    """Up, Algorithm 1, line 14: the agent's rewards projected on the inducing set, v = Z^T Y."""

    kind: ClassVar[str] = "projection"
    v: FloatArray = payload("m", kind="moment", adds="all")


class EpochModel(Message, m="points of the inducing set"):
    """Down, Algorithm 2, line 11: weights vbar and the largest deviation sigma_max.

    ``gram``: with ``elimination: ucb`` also Z^T Z of all pulls, from which agents compute deviations.
    """

    kind: ClassVar[str] = "epoch_model"
    vbar: FloatArray = payload("m", kind="weights")
    sigma_max: float = payload()
    gram: FloatArray | None = payload("m", "m", kind="gram", symmetric=True)


class BatchRewards(Message, n="pulls of the agent in the batch"):
    """Up: the agent's rewards of a batch, in the order of its pulls."""

    kind: ClassVar[str] = "batch_rewards"
    rewards: FloatArray = payload("n", kind="rewards")


class RewardSums(Message, p="distinct points of the batch"):
    """Down: the sum of all agents' rewards of each distinct point of a batch, in the order of their first places."""

    kind: ClassVar[str] = "reward_sums"
    sums: FloatArray = payload("p", kind="moment")
