"""Named random streams: one seed per replication, a stream per (role, entity, purpose).

A stream is found by name and never by order of creation, so adding a message or an algorithm moves nobody else's draws;
two algorithms in one comparison see the same arms and the same noise (common random numbers). Adding an agent leaves
arms, noise, links and the coins of the others; what is drawn for a whole fleet (presets, FLASH, who is slow or lies) is
drawn again, and so are how long the server handles messages and how it rounds and noises them: it counts as agent N.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from numpy.random.bit_generator import ISpawnableSeedSequence

WORD = (1 << 32) - 1
"""The largest number in a word of 32 bits."""


class Seed(ISpawnableSeedSequence):
    """What a SeedSequence gives; generators keep it, and so would keep a SeedSequence, of many times its size.

    Args:
        seed: the entropy.
        key: the spawn key.
    """

    __slots__ = ("_key", "_seed", "_spawned")

    def __init__(self, seed: int, key: tuple[int, ...]) -> None:
        self._seed, self._key, self._spawned = seed, key, 0

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Any:
        """The words that a generator starts from."""
        # A SeedSequence reads an array of words in a quarter of the time that a seed with a key takes it.
        seed, key = self._seed, self._key
        words = (seed & WORD, seed >> 32 & WORD, seed >> 64 & WORD, seed >> 96, *key)
        if min(words) >= 0 and max(words) <= WORD:
            sequence = np.random.SeedSequence(np.array(words, np.uint32))
        else:
            sequence = np.random.SeedSequence(seed, spawn_key=key)
        return sequence.generate_state(n_words, dtype)

    def spawn(self, n_children: int) -> list[Any]:
        """Children, as those of the SeedSequence."""
        sequence = np.random.SeedSequence(self._seed, spawn_key=self._key, n_children_spawned=self._spawned)
        self._spawned += n_children
        return sequence.spawn(n_children)


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
        return np.random.Generator(np.random.PCG64(Seed(self.seed, key)))  # type: ignore[arg-type]

    def coin(self, agent: int) -> np.random.Generator:
        """The private stream of an agent, or of the server (-1), from its start; who may open it can replay it."""
        return self("server", 0, "coin") if agent == -1 else self("agent", agent, "coin")

    def ties(self, agent: int) -> np.random.Generator:
        """The stream that decides which of equally good arms an agent pulls, from its start.

        It is apart from the coin: how many ties there are moves nothing else that the agent draws.
        """
        return self("agent", agent, "ties")
