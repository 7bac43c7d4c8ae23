"""Messages of bandits with K arms: single pulls, averaged mass, totals, and the numbers of arms."""

from __future__ import annotations

from typing import ClassVar

from coband.simulator.arrays import BoolArray, FloatArray
from coband.simulator.core.nodes.message import Message, payload


class ArmReward(Message):
    """To all neighbours: one pull."""

    kind: ClassVar[str] = "arm_reward"
    arm: int = payload(kind="index", of="arms")
    reward: float = payload(kind="rewards")


class Mass(Message, m="numbers for each arm", k="arms"):
    """To all neighbours: what agents average with each other.

    Where weights are doubly stochastic and nothing is late or lost, averaging keeps the sum over agents of each value.
    """

    kind: ClassVar[str] = "mass"
    values: FloatArray = payload("m", "k")


class MassAndDrops(Mass):
    """The same, with the arms that the sender has dropped."""

    dropped: BoolArray = payload("k", kind="flag")


class MixedMass(Mass):
    """The same of one step of mixing in one stage, which its receiver waits for."""

    kind: ClassVar[str] = "mixed"
    stage: int = payload(kind="index", of="turns")
    step: int = payload(kind="index", of="turns")


class Totals(Message, k="arms"):
    """To one neighbour: number and sum of rewards of each arm, of all pulls of the sender's own so far."""

    kind: ClassVar[str] = "totals"
    counts: FloatArray = payload("k", kind="count", of="turns")
    sums: FloatArray = payload("k", kind="moment")


class ArmRequest(Message):
    """To one neighbour, at the end of a phase: which arm do you recommend? No payload."""

    kind: ClassVar[str] = "arm_request"


class ArmAnswer(Message):
    """Back: the arm that its sender has pulled most in its last phase."""

    kind: ClassVar[str] = "arm_answer"
    arm: int = payload(kind="index", of="arms")


class FloodedPull(Message):
    """To a neighbour: one pull of an agent that may be further away; ``hops``: how often it may still be passed on."""

    kind: ClassVar[str] = "flooded"
    origin: int = payload(kind="index", of="agents")
    turn: int = payload(kind="index", of="turns")
    arm: int = payload(kind="index", of="arms")
    reward: float = payload(kind="rewards")
    hops: int = 0
