"""Noise that nodes put on what they send by their own rule: what accounts and audits need to know of it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np


@dataclass(frozen=True)
class Spent:
    """Gaussian releases, as an accountant takes them.

    Attributes:
        multiplier: deviation of the noise over what hidden data change at most, in one release.
        rate: with which probability the hidden data take part in a release.
        releases: how many there are.
    """

    multiplier: float
    rate: float = 1.0
    releases: int = 1


class OwnNoise(ABC):
    """The privacy that an algorithm brings along (`Algorithm.private`).

    Attributes:
        unit: what is hidden: one pull, or all pulls of an agent.
        adversary: from whom.
        epsilon, delta: what is promised, if anything is: epsilon, but with probability delta.
    """

    unit: ClassVar[Literal["pull", "agent"]] = "pull"
    adversary: ClassVar[Literal["server", "others"]] = "server"
    delta: float
    epsilon: float = math.inf

    @abstractmethod
    def spent(self, releases: int) -> Spent:
        """What the first releases of a node have spent."""

    @abstractmethod
    def see(self, rng: np.random.Generator, releases: int, canary: bool) -> list[float]:
        """What the adversary sees of the first releases, where the hidden data show most, with them or without.

        The noise is drawn by the code that draws it in a run.
        """
