"""Messages of linear and generalised linear models; matrices (d, d)."""

from __future__ import annotations

from typing import ClassVar

from coband.simulator.arrays import FloatArray
from coband.simulator.core.nodes.message import Message, payload
from coband.simulator.maths.linalg.gram import Gram


class LinearUpload(Message):
    """Up: the agent's new statistics, W = sum x x^T and b = sum y x."""

    kind: ClassVar[str] = "upload"
    W: Gram = payload("d", "d", kind="gram", symmetric=True, adds="news", bound="points^2")
    b: FloatArray = payload("d", kind="moment", adds="news", bound="points*rewards")


class LinearModel(Message):
    """Down: the sums over all agents."""

    kind: ClassVar[str] = "model"
    W: Gram = payload("d", "d", kind="gram", symmetric=True, bound="points^2", pulls="all")
    b: FloatArray = payload("d", kind="moment", bound="points*rewards", pulls="all")


class DiscountedUpload(Message):
    """Up: the agent's new statistics with weights w: sum w x x^T, sum w^2 x x^T and sum w y x, and the number of pulls.

    They add up within a round, as those of earlier rounds have faded. ``turn``: of its own, at which it sent them.
    """

    kind: ClassVar[str] = "upload"
    W: FloatArray = payload("d", "d", kind="gram", symmetric=True, adds="all", bound="points^2", pulls="new")
    W_tilde: FloatArray = payload("d", "d", kind="gram", symmetric=True, adds="all", bound="points^2", pulls="new")
    b: FloatArray = payload("d", kind="moment", adds="all", bound="points*rewards", pulls="new")
    count: int = payload(kind="count", of="pulls")
    turn: int = 0


class DiscountedModel(Message):
    """Down: the sums over all agents, with the weights of now."""

    kind: ClassVar[str] = "model"
    W: FloatArray = payload("d", "d", kind="gram", symmetric=True, bound="points^2")
    W_tilde: FloatArray = payload("d", "d", kind="gram", symmetric=True, bound="points^2")
    b: FloatArray = payload("d", kind="moment", bound="points*rewards")


class CountedUpload(LinearUpload):
    """Up: the agent's new statistics, and the number of pulls in them."""

    count: int = payload(kind="count", of="pulls")


class Download(Message):
    """Down: the other agents' statistics that this agent does not have, and the number of pulls in them."""

    kind: ClassVar[str] = "download"
    W: Gram = payload("d", "d", kind="gram", symmetric=True)
    b: FloatArray = payload("d", kind="moment")
    count: int = payload(kind="count", of="pulls")


class PartialUpload(CountedUpload):
    """Up: the same of g features alone, where b rests on parts of rewards."""

    W: Gram = payload("g", "g", kind="gram", symmetric=True, adds="news", bound="points^2")
    b: FloatArray = payload("g", kind="moment", adds="news")


class PartialDownload(Download):
    """Down: the same of g features alone."""

    W: Gram = payload("g", "g", kind="gram", symmetric=True)
    b: FloatArray = payload("g", kind="moment")


class PointsUpload(Message):
    """Up: W = sum x x^T of the agent's new pulls, and their number."""

    kind: ClassVar[str] = "upload"
    W: Gram = payload("d", "d", kind="gram", symmetric=True, adds="news", bound="points^2")
    count: int = payload(kind="count", of="pulls")


class Iterate(Message):
    """Down: theta, at which agents compute the gradient of their loss. ``step``: gradient round, from 1."""

    kind: ClassVar[str] = "iterate"
    theta: FloatArray = payload("d", kind="weights")
    step: int = 0


class Gradient(Message):
    """Up: the gradient of the agent's loss, summed over all its data. ``step``: of the iterate that asked for it."""

    kind: ClassVar[str] = "gradient"
    gradient: FloatArray = payload("d", kind="moment", adds="all")
    step: int = 0


class RegressionModel(Message):
    """Down: the sum of x x^T over all agents, the estimate theta from all their data, and the number of their pulls."""

    kind: ClassVar[str] = "model"
    W: Gram = payload("d", "d", kind="gram", symmetric=True)
    theta: FloatArray = payload("d", kind="weights")
    count: int = payload(kind="count", of="pulls")


class PrivateSums(Message):
    """Up: W = sum x x^T and b = sum y x of all the agent's pulls, with noise that the agent has put on them."""

    kind: ClassVar[str] = "upload"
    W: FloatArray = payload("d", "d", kind="gram", symmetric=True, adds="newest", noised=True)
    b: FloatArray = payload("d", kind="moment", adds="newest", noised=True)


class PrivateModel(Message):
    """Down: the sums of what agents have sent with noise of their own."""

    kind: ClassVar[str] = "model"
    W: FloatArray = payload("d", "d", kind="gram", symmetric=True, noised=True)
    b: FloatArray = payload("d", kind="moment", noised=True)


class FloodedSums(PrivateSums):
    """To all agents within some hops: private sums of one of an agent's estimators.

    ``trial``: its sender's, which says what estimator they are of. ``wanted``: it wants those of the others.
    """

    trial: int = payload(kind="index", of="turns")
    agent: int = payload(kind="index", of="agents")
    wanted: bool = payload(kind="flag")
