"""An algorithm that can kill its process, wait or fail; for tests of what surrounds it."""

import os
import time
from pathlib import Path
from typing import Literal

from coband.simulator.arms import ArmSet
from coband.simulator.core.algorithm import Algorithm
from coband.simulator.core.config import Config
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import Agent, NodeContext, Outbox


class Deadly(Config):
    """What happens at the third pull of an agent."""

    mischief: Literal["none", "kill", "error"] = "none"
    """kill: the process ends at once; error: an exception."""
    gate: str | None = None
    """It waits as long as there is such a file."""
    size: float = 0.0
    """Means nothing."""


class DeadlyAgent(Agent):
    """Pulls the first arm, until something happens."""

    def __init__(self, setting: NodeContext) -> None:
        super().__init__(setting)
        self._turns = 0

    def choose(self, arms: ArmSet) -> int:
        self._turns += 1
        if self._turns == 3:
            self._misbehave()
        return 0

    def _misbehave(self) -> None:
        config = self.context.config
        while config.gate is not None and Path(config.gate).exists():
            time.sleep(0.02)
        if config.mischief == "kill":
            os._exit(9)
        if config.mischief == "error":
            raise ZeroDivisionError("a bug")

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        self.unshared += 1
        return []

    def receive(self, message: Message, source: int) -> Outbox:
        return []


ALGORITHM = Algorithm("deadly", DeadlyAgent, None, Deadly, "Misbehaves.", "none")
