"""All messages of the algorithms. The size of a message is the number of scalars in its payload fields.

"Up" is from an agent to the server, "down" from the server to one or all agents. Shapes: m points in the dictionary,
d dimensions, n points of one agent.
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
    """Up: the agent's trigger has fired; no payload.

    ``version``: of the agent's model; ``number``: among its requests.
    """

    kind: ClassVar[str] = "request"
    number: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Declined(Message):
    """Up: the agent has given up the exchange of this ``round``, to which the server's model belongs; no payload."""

    kind: ClassVar[str] = "declined"


@dataclass(frozen=True, kw_only=True, eq=False)
class ServerModel(Message):
    """Down, line 8: the server's dictionary with rewards and its embedded statistics.

    With ``transfer: delta`` it contains only the points from index ``start`` on, and no statistics if the agent has
    the current ones. ``reply_to``: number of the request that it answers.
    """

    kind: ClassVar[str] = "dictionary"
    points: FloatArray = payload()
    rewards: FloatArray = payload()
    A: FloatArray | None = payload()
    b: FloatArray | None = payload()
    start: int = 0
    reply_to: int = 0

    @property
    def s(self) -> int:
        """Dictionary points in the message."""
        return len(self.points)

    @property
    def m(self) -> int:
        """Size of the statistics in the message, 0 for none."""
        return 0 if self.b is None else len(self.b)


@dataclass(frozen=True, kw_only=True, eq=False)
class Upload(Message):
    """Up, line 11: new dictionary points with rewards, and statistics of the new data over the enlarged dictionary.

    ``version``: of the dictionary that the points extend.
    """

    kind: ClassVar[str] = "upload"
    points: FloatArray = payload()
    rewards: FloatArray = payload()
    A: FloatArray = payload()
    b: FloatArray = payload()

    @property
    def n(self) -> int:
        """New points."""
        return len(self.points)

    @property
    def k(self) -> int:
        """Points of the enlarged dictionary."""
        return len(self.b)


@dataclass(frozen=True, kw_only=True, eq=False)
class NewModel(Message):
    """Down, line 13: the server's statistics, including the agent's upload.

    ``points``, ``rewards``: with interleaved exchanges, the dictionary points that other agents added during the
    exchange; they come before the agent's own points. With ``transfer: delta`` there are no statistics if the agent
    can compute them itself.
    """

    kind: ClassVar[str] = "model"
    points: FloatArray = payload()
    rewards: FloatArray = payload()
    A: FloatArray | None = payload()
    b: FloatArray | None = payload()

    @property
    def j(self) -> int:
        """Points that other agents added during the exchange; none with serial exchanges."""
        return len(self.points)

    @property
    def k(self) -> int:
        """Size of the statistics in the message, 0 for none."""
        return 0 if self.b is None else len(self.b)


# --- synchronisation of all agents (Li et al. 2022)


@dataclass(frozen=True, kw_only=True, eq=False)
class SyncRequest(Message):
    """Up: the agent's trigger has fired; no payload. ``version``: of the agent's model."""

    kind: ClassVar[str] = "sync_request"


@dataclass(frozen=True, kw_only=True, eq=False)
class SyncStart(Message):
    """Down: a synchronisation starts, and all agents take part; no payload."""

    kind: ClassVar[str] = "sync_start"


@dataclass(frozen=True, kw_only=True, eq=False)
class Overdue(Message):
    """The server to itself: the timeout of a synchronisation phase has passed (see ``wait: {quorum, timeout}``)."""

    kind: ClassVar[str] = "overdue"
    phase: int = 1


@dataclass(frozen=True, kw_only=True, eq=False)
class SyncAbandoned(Message):
    """Down, or from one agent to the others: a synchronisation has ended without a result, and all agents go on with
    what they have; no payload."""

    kind: ClassVar[str] = "sync_abandoned"


@dataclass(frozen=True, kw_only=True, eq=False)
class Sample(Message):
    """Up: the agent's sample for the dictionary, d scalars per point."""

    kind: ClassVar[str] = "sample"
    points: FloatArray = payload()

    @property
    def n(self) -> int:
        """Points that the agent sampled."""
        return len(self.points)


@dataclass(frozen=True, kw_only=True, eq=False)
class SharedDictionary(Message):
    """Down: the union of all samples."""

    kind: ClassVar[str] = "dictionary"
    points: FloatArray = payload()

    @property
    def m(self) -> int:
        """Points of the union."""
        return len(self.points)


@dataclass(frozen=True, kw_only=True, eq=False)
class LocalStatistics(Message):
    """Up: embedded statistics of all data of the agent."""

    kind: ClassVar[str] = "statistics"
    A: FloatArray = payload()
    b: FloatArray = payload()

    @property
    def m(self) -> int:
        """Points of the dictionary."""
        return len(self.b)


@dataclass(frozen=True, kw_only=True, eq=False)
class GlobalStatistics(Message):
    """Down: the sum of all local statistics."""

    kind: ClassVar[str] = "model"
    A: FloatArray = payload()
    b: FloatArray = payload()

    @property
    def m(self) -> int:
        """Points of the dictionary."""
        return len(self.b)


@dataclass(frozen=True, kw_only=True, eq=False)
class NewPoints(Message):
    """Up: raw points since the last synchronisation, d + 1 scalars each."""

    kind: ClassVar[str] = "points"
    points: FloatArray = payload()
    rewards: FloatArray = payload()

    @property
    def n(self) -> int:
        """Points since the last synchronisation."""
        return len(self.rewards)


@dataclass(frozen=True, kw_only=True, eq=False)
class MissingPoints(Message):
    """Down: new points of all other agents.

    In the common order of points, the receiver's ``own`` oldest unshared points follow the first ``before`` of these.
    """

    kind: ClassVar[str] = "missing_points"
    points: FloatArray = payload()
    rewards: FloatArray = payload()
    before: int = 0
    own: int = 0

    @property
    def n(self) -> int:
        """Points that the receiver lacks."""
        return len(self.rewards)


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
    """Up: W = sum x x^T of the agent's new pulls, and their number."""

    kind: ClassVar[str] = "upload"
    W: Gram = payload()
    count: int = payload()


@dataclass(frozen=True, kw_only=True, eq=False)
class Iterate(Message):
    """Down: theta, at which agents compute the gradient of their loss. ``step``: gradient round, from 1."""

    kind: ClassVar[str] = "iterate"
    theta: FloatArray = payload()
    step: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Gradient(Message):
    """Up: the gradient of the agent's loss, summed over all its data. ``step``: of the iterate that asked for it."""

    kind: ClassVar[str] = "gradient"
    gradient: FloatArray = payload()
    step: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class RegressionModel(Message):
    """Down: the sum of x x^T over all agents, the estimate theta from all their data, and the number of their pulls."""

    kind: ClassVar[str] = "model"
    W: Gram = payload()
    theta: FloatArray = payload()
    count: int = payload()


# --- immediate sharing


@dataclass(frozen=True, kw_only=True, eq=False)
class Point(Message):
    """Up, and down to the others, or to a neighbour in a graph: one point with its reward.

    ``position``: in the server's log on the way down, among the agent's own points on the way up; else -1. ``before``:
    on the way down, how many points of each agent come before it in the log.
    """

    kind: ClassVar[str] = "point"
    point: FloatArray = payload()
    reward: float = payload()
    position: int = -1
    before: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class LostPointsRequest(Message):
    """Up: the agent lacks points of the log between ``first`` and ``last``, both included; no payload.

    ``last``: None for all that there are.
    """

    kind: ClassVar[str] = "lost_points_request"
    first: int
    last: int | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class LostPoints(Message):
    """Down: the points of the log that an agent asked for, but for its own.

    ``positions``, ``before``: of each of them, as in :class:`Point`; for ``before`` the receiver's own alone.
    """

    kind: ClassVar[str] = "lost_points"
    points: FloatArray = payload()
    rewards: FloatArray = payload()
    positions: tuple[int, ...] = ()
    before: tuple[int, ...] = ()

    @property
    def n(self) -> int:
        """Points that the agent lacked."""
        return len(self.rewards)


# --- epochs with shared randomness (paper 001)


@dataclass(frozen=True, kw_only=True, eq=False)
class EpochEnd(Message):
    """Up: the agent has pulled all points of its epoch; no payload. ``round``: the epoch."""

    kind: ClassVar[str] = "epoch_end"


@dataclass(frozen=True, kw_only=True, eq=False)
class InducingSet(Message):
    """Down, Algorithm 2, line 8: the inducing set S_j."""

    kind: ClassVar[str] = "inducing_set"
    points: FloatArray = payload()

    @property
    def m(self) -> int:
        """Points of the inducing set."""
        return len(self.points)


@dataclass(frozen=True, kw_only=True, eq=False)
class Projection(Message):
    """Up, Algorithm 1, line 14: the agent's rewards projected on the inducing set, v = Z^T Y."""

    kind: ClassVar[str] = "projection"
    v: FloatArray = payload()

    @property
    def m(self) -> int:
        """Points of the inducing set."""
        return len(self.v)


@dataclass(frozen=True, kw_only=True, eq=False)
class EpochModel(Message):
    """Down, Algorithm 2, line 11: weights vbar and the largest deviation sigma_max.

    ``gram``: with ``elimination: ucb`` also Z^T Z of all pulls, from which agents compute deviations.
    """

    kind: ClassVar[str] = "epoch_model"
    vbar: FloatArray = payload()
    sigma_max: float = payload()
    gram: FloatArray | None = payload()

    @property
    def m(self) -> int:
        """Points of the inducing set."""
        return len(self.vbar)


# --- batched pure exploration (Li and Scarlett 2022)


@dataclass(frozen=True, kw_only=True, eq=False)
class BatchRewards(Message):
    """Up: the agent's rewards of a batch, in the order of its pulls."""

    kind: ClassVar[str] = "batch_rewards"
    rewards: FloatArray = payload()

    @property
    def n(self) -> int:
        """Pulls of the agent in the batch."""
        return len(self.rewards)


@dataclass(frozen=True, kw_only=True, eq=False)
class RewardSums(Message):
    """Down: the sum of all agents' rewards of each distinct point of a batch, in the order of their first places."""

    kind: ClassVar[str] = "reward_sums"
    sums: FloatArray = payload()

    @property
    def p(self) -> int:
        """Distinct points of the batch."""
        return len(self.sums)


# --- collaborative pure exploration (paper 003)


@dataclass(frozen=True, kw_only=True, eq=False)
class ArmMeans(Message):
    """To all other agents, or up: how often the agent pulled each of its n arms in this round, and mean rewards."""

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
    """To all agents within some hops: <t, v, x, y> of one pull, d + 3 scalars.

    ``context``: z_v, if the algorithm uses known contexts of the agents. ``place``: the arm's index in its arm set, if
    arms of different index have different models.
    """

    kind: ClassVar[str] = "pull"
    trial: int = payload()
    agent: int = payload()
    point: FloatArray = payload()
    reward: float = payload()
    context: FloatArray | None = payload()
    place: int | None = payload()

    @property
    def d_z(self) -> int:
        """Coordinates of the network context in the message, 0 for none."""
        return 0 if self.context is None else len(self.context)


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
