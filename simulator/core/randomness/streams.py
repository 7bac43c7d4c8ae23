"""Named random streams: one seed per replication, a stream per (role, entity, purpose).

A stream is found by name and never by order of creation, so adding a node, a message or an algorithm moves nobody
else's draws; two algorithms in one comparison see the same arms and the same noise (common random numbers).
"""

from __future__ import annotations

import zlib

import numpy as np


class Streams:
    """The streams of one replication.

    Args:
        seed: the scenario's seed, >= 0.
        replication: index of the replication, from 0; its streams derive from (seed, replication).
    """

    def __init__(self, seed: int, replication: int = 0) -> None:
        self.seed, self.replication = seed, replication

    def __call__(self, role: str, entity: int, purpose: str) -> np.random.Generator:
        """A fresh generator at the start of the stream named (role, entity, purpose)."""
        key = (self.replication, zlib.crc32(role.encode()), entity, zlib.crc32(purpose.encode()))
        sequence = np.random.SeedSequence(self.seed, spawn_key=key)
        return np.random.Generator(np.random.PCG64(sequence))

    def coin(self, agent: int) -> np.random.Generator:
        """The private stream of an agent, or of the server (-1), from its start; who may open it can replay it."""
        return self("server", 0, "coin") if agent == -1 else self("agent", agent, "coin")

    def ties(self, agent: int) -> np.random.Generator:
        """The stream that decides which of equally good arms an agent pulls, from its start.

        It is apart from the coin: how many ties there are moves nothing else that the agent draws.
        """
        return self("agent", agent, "ties")
