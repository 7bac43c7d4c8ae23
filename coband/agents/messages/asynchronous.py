"""Messages of asynchronous exchanges between one agent and the server (Li et al. 2023, Algorithm 1).

Shapes: n new points of the agent, m points in the dictionary, k in the enlarged one, d dimensions.
"""

from __future__ import annotations

from typing import ClassVar

from coband.simulator.arrays import FloatArray
from coband.simulator.core.nodes.message import Message, payload


class Request(Message):
    """Up: the agent's trigger has fired; no payload. ``version``: of the agent's model."""

    kind: ClassVar[str] = "request"


class ServerModel(Message, s="dictionary points in the message", m="size of the statistics in the message, 0 for none"):
    """Down, line 8: the server's dictionary with rewards and its embedded statistics.

    With ``transfer: delta`` it contains only the points after those that the agent has, and no statistics if the
    agent has the current ones.
    """

    kind: ClassVar[str] = "dictionary"
    points: FloatArray = payload("s", "d", kind="points")
    rewards: FloatArray = payload("s", kind="rewards")
    A: FloatArray | None = payload("m", "m", kind="gram", symmetric=True)
    b: FloatArray | None = payload("m", kind="moment")


class Upload(Message, n="new points", k="points of the enlarged dictionary"):
    """Up, line 11: new dictionary points with rewards, and statistics of the new data over the enlarged dictionary.

    ``version``: of the dictionary that the points extend.
    """

    kind: ClassVar[str] = "upload"
    points: FloatArray = payload("n", "d", kind="points")
    rewards: FloatArray = payload("n", kind="rewards")
    A: FloatArray = payload("k", "k", kind="gram", symmetric=True, adds="server")
    b: FloatArray = payload("k", kind="moment", adds="server")


class NewModel(
    Message,
    j="points that other agents added during the exchange; none with serial exchanges",
    k="points of the enlarged dictionary",
):
    """Down, line 13: the server's statistics, including the agent's upload.

    ``points``, ``rewards``: with interleaved exchanges, the dictionary points that other agents added during the
    exchange; they come before the agent's own points. With ``transfer: delta`` there are no statistics if the agent
    can compute them itself.
    """

    kind: ClassVar[str] = "model"
    points: FloatArray = payload("j", "d", kind="points")
    rewards: FloatArray = payload("j", kind="rewards")
    A: FloatArray | None = payload("k", "k", kind="gram", symmetric=True)
    b: FloatArray | None = payload("k", kind="moment")
