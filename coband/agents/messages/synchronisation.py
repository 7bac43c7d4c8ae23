"""Messages of synchronisations in which all agents take part (Li et al. 2022)."""

from __future__ import annotations

from typing import ClassVar

from coband.simulator.arrays import FloatArray
from coband.simulator.core.nodes.message import Message, payload


class SyncRequest(Message):
    """Up: the agent's trigger has fired; no payload. ``version``: of the agent's model."""

    kind: ClassVar[str] = "sync_request"


class SyncStart(Message):
    """Down: a synchronisation starts, and all agents take part; no payload."""

    kind: ClassVar[str] = "sync_start"


class SyncAbandoned(Message):
    """Down, or from one agent to the others: a synchronisation has ended without a result, and all agents go on with
    what they have; no payload."""

    kind: ClassVar[str] = "sync_abandoned"


class Sample(Message, n="points that the agent sampled"):
    """Up: the agent's sample for the dictionary, d scalars per point."""

    kind: ClassVar[str] = "sample"
    points: FloatArray = payload("n", "d", kind="points")


class SharedDictionary(Message, m="points of the union"):
    """Down: the union of all samples."""

    kind: ClassVar[str] = "dictionary"
    points: FloatArray = payload("m", "d", kind="points")


class LocalStatistics(Message, m="points of the dictionary"):
    """Up: embedded statistics of all data of the agent."""

    kind: ClassVar[str] = "statistics"
    A: FloatArray = payload("m", "m", kind="gram", symmetric=True, adds="all")
    b: FloatArray = payload("m", kind="moment", adds="all")


class GlobalStatistics(Message, m="points of the dictionary"):
    """Down: the sum of all local statistics."""

    kind: ClassVar[str] = "model"
    A: FloatArray = payload("m", "m", kind="gram", symmetric=True)
    b: FloatArray = payload("m", kind="moment")


class NewPoints(Message, n="points since the last synchronisation"):
    """Up: raw points since the last synchronisation, d + 1 scalars each."""

    kind: ClassVar[str] = "points"
    points: FloatArray = payload("n", "d", kind="points")
    rewards: FloatArray = payload("n", kind="rewards")


class MissingPoints(Message, n="points that the receiver lacks"):
    """Down: new points of all other agents.

    In the common order of points, the receiver's ``own`` oldest unshared points follow the first ``before`` of these.
    ``follows``: the version that they continue; one before the message's, or more to an agent that was not there.
    """

    kind: ClassVar[str] = "missing_points"
    points: FloatArray = payload("n", "d", kind="points")
    rewards: FloatArray = payload("n", kind="rewards")
    before: int = 0
    own: int = 0
    follows: int = 0
