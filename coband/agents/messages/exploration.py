"""Messages of collaborative pure exploration (Du et al. 2023): how often arms were pulled, and their mean rewards."""

from __future__ import annotations

from typing import ClassVar

from coband.simulator.arrays import FloatArray, IntArray
from coband.simulator.core.nodes.message import Message, payload


class ArmMeans(Message):
    """To all other agents, or up: how often the agent pulled each of its n arms in this round, and mean rewards."""

    kind: ClassVar[str] = "arm_means"
    counts: IntArray = payload("n", kind="count", of="pulls")
    means: FloatArray = payload("n", kind="rewards")


class AllArmMeans(Message):
    """Down: the counts and means (V, n) of all agents in this round."""

    kind: ClassVar[str] = "all_arm_means"
    counts: IntArray = payload("V", "n", kind="count", of="pulls")
    means: FloatArray = payload("V", "n", kind="rewards")
