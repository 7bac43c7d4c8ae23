"""Which nodes are down now, where that is worked out when somebody asks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from coband.simulator.arrays import FloatArray
from coband.simulator.core.clock.clock import Clock
from coband.simulator.core.nodes.node import Address
from coband.simulator.core.run_context import Down

NOTHING: FloatArray = np.empty((0, 2))
NEVER: FloatArray = np.full((1, 2), math.inf)


class Ahead:
    """The times of one agent that are still to come: windows, from going down to coming up."""

    __slots__ = ("_block", "_blocks", "_place")

    def __init__(self, blocks: Iterator[FloatArray]) -> None:
        self._blocks, self._block, self._place = blocks, NOTHING, 0
        self.drop()

    @property
    def window(self) -> tuple[float, float]:
        """The next one."""
        start, end = self._block[self._place].tolist()
        return start, end

    def drop(self) -> None:
        """The next one is over."""
        self._place += 1
        if self._place >= len(self._block):
            self._block, self._place = next(self._blocks, NEVER), 0

    def skip(self, now: float) -> tuple[float, float]:
        """Drop all that are over by now; the next one."""
        while self._block[-1, 1] <= now:
            self._block, self._place = next(self._blocks, NEVER), 0
        self._place += int(self._block[self._place :, 1].searchsorted(now, "right"))
        return self.window


class Absent(Down):
    """The nodes that are down now.

    Attributes:
        until: by address, when somebody who asks for a node has to look at its times; they are never looked at before.
        catch_up: brings what is known of a node up to now.
        is_away: whether a node, up when last asked for, is down now; nothing is taken note of.
    """

    catch_up: Callable[[Address], None]
    is_away: Callable[[Address], bool]

    def __init__(self, clock: Clock, agents: int, gone: set[Address]) -> None:
        super().__init__(gone)
        self._clock = clock
        self.until = [math.inf] * (agents + 1)  # the last one is the server's, whose address is -1

    def __contains__(self, node: Any) -> bool:
        if self.until[node] <= self._clock.now:
            self.catch_up(node)
        return super().__contains__(node)

    def peek(self, node: Address) -> bool:
        """Whether a node is down now, without consequences."""
        return self.is_away(node) if self.until[node] <= self._clock.now else super().__contains__(node)
