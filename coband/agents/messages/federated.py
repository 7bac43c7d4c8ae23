"""Messages of federated Thompson sampling (Dai et al. 2020, Dai et al. 2021)."""

from __future__ import annotations

from typing import ClassVar

from coband.simulator.arrays import FloatArray
from coband.simulator.core.nodes.message import Message, payload


class DrawnWeights(Message):
    """Up: weights of the shared features, drawn from the agent's posterior."""

    kind: ClassVar[str] = "drawn_weights"
    weights: FloatArray = payload("m", kind="weights")


class RegionWeights(Message):
    """Down: for each region of the domain, the average of the agents' weights."""

    kind: ClassVar[str] = "region_weights"
    weights: FloatArray = payload("p", "m", kind="weights")


class PrivateRegionWeights(RegionWeights):
    """Down: the same of a random subset of the agents, with the server's noise."""

    weights: FloatArray = payload("p", "m", kind="weights", noised=True)
