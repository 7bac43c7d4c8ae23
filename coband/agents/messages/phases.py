"""Messages at the ends of phases in which the server deals out pulls (Huang et al. 2021, Wang et al. 2020), or
at which agents share estimates (Salgia and Zhao 2022, Mitra et al. 2022)."""

from __future__ import annotations

from typing import ClassVar

from coband.simulator.arrays import FloatArray, IntArray
from coband.simulator.core.nodes.message import Message, payload, unary_bits


class PhaseEstimates(Message, n="arms of the agent that were dealt pulls"):
    """Up: x mean(y) / ||x||^2 of each arm that was dealt pulls, by arm; ``norms``: ||x||, of those who share them."""

    kind: ClassVar[str] = "phase_estimates"
    estimates: FloatArray = payload("n", "d", kind="moment")
    norms: FloatArray | None = payload("n", kind="points")


class PhaseModel(Message, b="parameters of which something was learnt"):
    """Down: theta and V^+ of each parameter of which something was learnt; ``arms``: whose they are, of several."""

    kind: ClassVar[str] = "phase_model"
    theta: FloatArray = payload("b", "d", kind="weights")
    inverse: FloatArray = payload("b", "d", "d", kind="gram", symmetric=True)
    arms: IntArray | None = payload("b", kind="index", of="arms")


class ActiveArms(Message, a="arms that are left"):
    """The arms that are left, ascending: of one agent, up, or of all, down."""

    kind: ClassVar[str] = "active_arms"
    arms: IntArray = payload("a", kind="index", of="arms")


class Allotment(Message, a="arms that the agent has left"):
    """Down: how often to pull each of the arms that the agent has left."""

    kind: ClassVar[str] = "allotment"
    counts: IntArray = payload("a", kind="count", of="turns")


class DealtMeans(Message, n="arms that the agent was dealt"):
    """Up: the mean reward of each arm that the agent was dealt, in the order of dealing."""

    kind: ClassVar[str] = "dealt_means"
    means: FloatArray = payload("n", kind="rewards")


class PhaseEstimate(Message):
    """Up: theta by the agent's own pulls of the phase."""

    kind: ClassVar[str] = "phase_estimate"
    theta: FloatArray = payload("d", kind="weights")


class PhaseOrder(Message, n="arms that the agent is dealt"):
    """Down: theta, from which all find the arms that are left, and which of them to pull how often in this order."""

    kind: ClassVar[str] = "phase_order"
    theta: FloatArray = payload("d", kind="weights")
    arms: IntArray = payload("n", kind="index", of="arms")
    counts: IntArray = payload("n", kind="count", of="turns")


class Levels(Message):
    """The change of an estimate, in steps of a grid that both sides know."""

    levels: IntArray = payload("d", kind="count", code="unary")

    def __post_init__(self) -> None:
        self.__dict__["field_bits"] = (unary_bits(self.levels),)


class EstimateLevels(Levels):
    """Up: an agent's estimate without what all know."""

    kind: ClassVar[str] = "estimate_levels"


class ModelLevels(Levels):
    """Down: the mean of the agents' changes."""

    kind: ClassVar[str] = "model_levels"
