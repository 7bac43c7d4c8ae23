"""Everything that can be said, and what each of it costs: the payload fields.

Shapes: m points in the dictionary, d dimensions, n points of one agent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from coband.simulator.arrays import FloatArray, IntArray
from coband.simulator.core.message import Message, payload
from coband.simulator.maths.linalg.gram import Gram

# --- asynchronous exchange (paper 000, Algorithm 1)


@dataclass(frozen=True, kw_only=True, eq=False)
class Request(Message):
    """Up: the trigger has fired (a signal). ``version``: of the agent's model."""

    kind: ClassVar[str] = "request"


@dataclass(frozen=True, kw_only=True, eq=False)
class ServerModel(Message):
    """Down, line 8: the server's dictionary with rewards and its embedded statistics.

    With ``transfer: delta`` only the points from ``start`` on, and no statistics when the agent has them.
    """

    kind: ClassVar[str] = "dictionary"
    points: FloatArray = payload()
    rewards: FloatArray = payload()
    A: FloatArray | None = payload()
    b: FloatArray | None = payload()
    start: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Upload(Message):
    """Up, line 11: new dictionary points with rewards, statistics of the new data over the enlarged dictionary.

    ``version`` is that of the dictionary which the points extend.
    """

    kind: ClassVar[str] = "upload"
    points: FloatArray = payload()
    rewards: FloatArray = payload()
    A: FloatArray = payload()
    b: FloatArray = payload()


@dataclass(frozen=True, kw_only=True, eq=False)
class NewModel(Message):
    """Down, line 13: the server's statistics with the upload taken in.

    ``points``, ``rewards``: dictionary points that came in between with interleaved exchanges; they stand before the
    agent's own. With ``transfer: delta`` no statistics when the agent can add them up itself.
    """

    kind: ClassVar[str] = "model"
    points: FloatArray = payload()
    rewards: FloatArray = payload()
    A: FloatArray | None = payload()
    b: FloatArray | None = payload()


# --- synchronisation of all agents (Li et al. 2022)


@dataclass(frozen=True, kw_only=True, eq=False)
class SyncRequest(Message):
    """Up: the trigger has fired. ``version``: of the agent's model."""

    kind: ClassVar[str] = "sync_request"


@dataclass(frozen=True, kw_only=True, eq=False)
class SyncStart(Message):
    """Down: everybody is to take part in a synchronisation."""

    kind: ClassVar[str] = "sync_start"


@dataclass(frozen=True, kw_only=True, eq=False)
class Overdue(Message):
    """The server's own timer: the time to wait for everyone is over, in a phase of a synchronisation."""

    kind: ClassVar[str] = "overdue"
    phase: int = 1


@dataclass(frozen=True, kw_only=True, eq=False)
class Sample(Message):
    """Up: the agent's sample for the dictionary, d scalars a point."""

    kind: ClassVar[str] = "sample"
    points: FloatArray = payload()


@dataclass(frozen=True, kw_only=True, eq=False)
class SharedDictionary(Message):
    """Down: the union of all samples."""

    kind: ClassVar[str] = "dictionary"
    points: FloatArray = payload()


@dataclass(frozen=True, kw_only=True, eq=False)
class LocalStatistics(Message):
    """Up: embedded statistics of all local data."""

    kind: ClassVar[str] = "statistics"
    A: FloatArray = payload()
    b: FloatArray = payload()


@dataclass(frozen=True, kw_only=True, eq=False)
class GlobalStatistics(Message):
    """Down: the sum of all local statistics."""

    kind: ClassVar[str] = "model"
    A: FloatArray = payload()
    b: FloatArray = payload()


@dataclass(frozen=True, kw_only=True, eq=False)
class NewPoints(Message):
    """Up: raw points since the last synchronisation, d + 1 scalars each."""

    kind: ClassVar[str] = "points"
    points: FloatArray = payload()
    rewards: FloatArray = payload()


@dataclass(frozen=True, kw_only=True, eq=False)
class MissingPoints(Message):
    """Down: the points that the receiver lacks; ``own`` of its own, the oldest, stand after the first ``before``."""

    kind: ClassVar[str] = "missing_points"
    points: FloatArray = payload()
    rewards: FloatArray = payload()
    before: int = 0
    own: int = 0


# --- linear and generalised linear models; matrices d x d


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearUpload(Message):
    """Up: the agent's new statistics, W = sum x x^T and b = sum y x."""

    kind: ClassVar[str] = "upload"
    W: Gram = payload()
    b: FloatArray = payload()


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearModel(Message):
    """Down: the sums over all agents."""

    kind: ClassVar[str] = "model"
    W: Gram = payload()
    b: FloatArray = payload()


@dataclass(frozen=True, kw_only=True, eq=False)
class PointsUpload(Message):
    """Up: W = sum x x^T of the agent's new pulls, and how many they are."""

    kind: ClassVar[str] = "upload"
    W: Gram = payload()
    count: int = payload()


@dataclass(frozen=True, kw_only=True, eq=False)
class Iterate(Message):
    """Down: theta, at which the gradient of the loss is wanted. ``step``: which one of this synchronisation."""

    kind: ClassVar[str] = "iterate"
    theta: FloatArray = payload()
    step: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Gradient(Message):
    """Up: the sum of the gradients of the loss over all data of the agent."""

    kind: ClassVar[str] = "gradient"
    gradient: FloatArray = payload()


@dataclass(frozen=True, kw_only=True, eq=False)
class RegressionModel(Message):
    """Down: the sum of x x^T over all agents, the estimate theta from all their data, and how many those are."""

    kind: ClassVar[str] = "model"
    W: Gram = payload()
    theta: FloatArray = payload()
    count: int = payload()


# --- immediate sharing


@dataclass(frozen=True, kw_only=True, eq=False)
class Point(Message):
    """Up, and down to the others: one point with its reward, at ``position`` in the server's log (-1 on the way up)."""

    kind: ClassVar[str] = "point"
    point: FloatArray = payload()
    reward: float = payload()
    position: int = -1


# --- epochs with shared randomness (paper 001)


@dataclass(frozen=True, kw_only=True, eq=False)
class EpochEnd(Message):
    """Up: the agent has pulled all points of its epoch (a signal). ``round``: the epoch."""

    kind: ClassVar[str] = "epoch_end"


@dataclass(frozen=True, kw_only=True, eq=False)
class InducingSet(Message):
    """Down, Algorithm 2, line 8: the inducing set S_j."""

    kind: ClassVar[str] = "inducing_set"
    points: FloatArray = payload()


@dataclass(frozen=True, kw_only=True, eq=False)
class Projection(Message):
    """Up, Algorithm 1, line 14: the agent's rewards projected on the inducing set, v = Z^T Y."""

    kind: ClassVar[str] = "projection"
    v: FloatArray = payload()


@dataclass(frozen=True, kw_only=True, eq=False)
class EpochModel(Message):
    """Down, Algorithm 2, line 11: weights vbar and the largest deviation sigma_max.

    ``gram``: with ``elimination: ucb`` Z^T Z of all pulls too, without which an agent knows no deviations.
    """

    kind: ClassVar[str] = "epoch_model"
    vbar: FloatArray = payload()
    sigma_max: float = payload()
    gram: FloatArray | None = payload()


# --- collaborative pure exploration (paper 003)


@dataclass(frozen=True, kw_only=True, eq=False)
class ArmMeans(Message):
    """To all others, or up: how often the agent pulled each of its n arms in this round and their mean rewards."""

    kind: ClassVar[str] = "arm_means"
    counts: IntArray = payload()
    means: FloatArray = payload()


@dataclass(frozen=True, kw_only=True, eq=False)
class AllArmMeans(Message):
    """Down: the counts and means (V, n) of all agents in this round."""

    kind: ClassVar[str] = "all_arm_means"
    counts: IntArray = payload()
    means: FloatArray = payload()


# --- LOCAL messages in a graph (paper 004)


@dataclass(frozen=True, kw_only=True, eq=False)
class Pull(Message):
    """To all within some hops: <t, v, x, y> of one pull, d + 3 scalars.

    With it z_v where agents are told apart by known contexts, and the arm's place in its arm set where arms in
    different places have different models.
    """

    kind: ClassVar[str] = "pull"
    trial: int = payload()
    agent: int = payload()
    point: FloatArray = payload()
    reward: float = payload()
    context: FloatArray | None = payload()
    place: int | None = payload()


# --- federated neural bandit (paper 002); p network parameters, matrices p x p or their diagonals (p,)


@dataclass(frozen=True, kw_only=True, eq=False)
class NeuralUpload(Message):
    """Up, algorithm 1, line 16: W_new, B_new, the trained weights, alpha_i and the inverse of V_local.

    ``loss``: the network's mean squared error on the agent's training set, where the server picks by it.
    """

    kind: ClassVar[str] = "upload"
    W: Gram | FloatArray = payload()
    B: FloatArray = payload()
    theta: FloatArray = payload()
    alpha: float = payload()
    inverse: Gram | FloatArray = payload()
    loss: float | None = payload()


@dataclass(frozen=True, kw_only=True, eq=False)
class NeuralModel(Message):
    """Down, algorithm 2, line 6: W_sync, B_sync, theta_sync, alpha; all inverses, or their average alone."""

    kind: ClassVar[str] = "model"
    W: Gram | FloatArray = payload()
    B: FloatArray = payload()
    theta: FloatArray = payload()
    alpha: float = payload()
    inverses: tuple[Gram | FloatArray, ...] = payload()
