"""Messages that carry one pull: to the server and on to the others, to a neighbour, or by LOCAL (Dubey and Pentland
2020)."""

from __future__ import annotations

from typing import ClassVar

from coband.simulator.arrays import FloatArray
from coband.simulator.core.nodes.message import Message, payload


class Point(Message):
    """Up, and down to the others, or to a neighbour in a graph: one point with its reward.

    ``position``: in the server's log on the way down, among the agent's own points on the way up; else -1. ``before``:
    on the way down, how many points of each agent come before it in the log.
    """

    kind: ClassVar[str] = "point"
    point: FloatArray = payload("d", kind="points")
    reward: float = payload(kind="rewards")
    position: int = -1
    before: tuple[int, ...] = ()


class LostPointsRequest(Message):
    """Up: the agent lacks points of the log between ``first`` and ``last``, both included; no payload.

    ``last``: None for all that there are.
    """

    kind: ClassVar[str] = "lost_points_request"
    first: int
    last: int | None = None


class LostPoints(Message, n="points that the agent lacked"):
    """Down: the points of the log that an agent asked for, but for its own.

    ``positions``, ``before``: of each of them, as in :class:`Point`; for ``before`` the receiver's own alone.
    """

    kind: ClassVar[str] = "lost_points"
    points: FloatArray = payload("n", "d", kind="points")
    rewards: FloatArray = payload("n", kind="rewards")
    positions: tuple[int, ...] = ()
    before: tuple[int, ...] = ()


class Pull(Message):
    """To all agents within some hops: <t, v, x, y> of one pull, d + 3 scalars.

    ``context``: z_v, if the algorithm uses known contexts of the agents.
    """

    kind: ClassVar[str] = "pull"
    trial: int = payload(kind="index", of="turns")
    agent: int = payload(kind="index", of="agents")
    point: FloatArray = payload("d", kind="points")
    reward: float = payload(kind="rewards")
    context: FloatArray | None = payload("z", kind="points")

    @property
    def d_z(self) -> int:
        """Coordinates of the network context in the message, 0 for none."""
        return 0 if self.context is None else len(self.context)
