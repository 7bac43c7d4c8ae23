"""Turns that offer rows of one's own data, and the order in which agents meet them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from coband.simulator.arrays import FloatArray, IndexArray
from coband.simulator.core.config import JsonObject
from coband.simulator.problems.disjoint import scale_warnings
from coband.simulator.problems.world import Blocks, Noise, Streams, Turn, TurnsWorld, read_only

RowsOf = Callable[[int, np.random.Generator], Iterator[IndexArray]]
"""From an agent and its stream to the rows that its turns offer, turn after turn."""


class TableWorld(TurnsWorld):
    """A world whose turns offer rows of a table.

    Args:
        features: of all rows, (n, d).
        rewards: mean reward of each row, (n,); (agents, n) where agents have tasks of their own.
        rows_of: which rows an agent is offered.
        noise, streams, realised: see `TurnsWorld`.
        longest: turns drawn at once, at most.
    """

    def __init__(
        self,
        features: FloatArray,
        rewards: FloatArray,
        rows_of: RowsOf,
        noise: Noise,
        streams: Streams,
        longest: int,
        realised: bool,
    ) -> None:
        super().__init__(int(features.shape[1]), noise, streams, realised)
        self._features, self._rewards, self._rows_of, self._longest = features, rewards, rows_of, longest
        self.warnings = scale_warnings(features, rewards)

    def describe(self) -> JsonObject:
        return described(self._rewards)

    def _open(self, agent: int) -> Blocks[Turn]:
        rows = self._rows_of(agent, self._streams("world", agent, "rows"))
        noise = self._streams("world", agent, "noise")
        own = self._rewards if self._rewards.ndim == 1 else self._rewards[agent]
        return Blocks(lambda turns: self._draw(rows, own, noise, turns), self._longest)

    def _draw(
        self, rows: Iterator[IndexArray], rewards: FloatArray, noise: np.random.Generator, turns: int
    ) -> list[Turn]:
        drawn = []
        for draw in self._noise.draws(noise, turns):
            offered = next(rows)
            means = read_only(rewards[offered])
            drawn.append((read_only(self._features[offered]), means, float(means.max()), draw))
        return drawn


def described(rewards: FloatArray) -> JsonObject:
    """Number of rows, and the range of their rewards."""
    return {"rows": rewards.shape[-1], "lowest": float(rewards.min()), "highest": float(rewards.max())}


def drawn_rows(rows: int, count: int, agent: int, rng: np.random.Generator) -> Iterator[IndexArray]:
    """Rows drawn without replacement at every turn."""
    while True:
        yield rng.choice(rows, count, replace=False)


def shuffled_turns(turns: Sequence[IndexArray], agent: int, rng: np.random.Generator) -> Iterator[IndexArray]:
    """All turns in a random order, again and again."""
    while True:
        yield from (turns[place] for place in rng.permutation(len(turns)))


def own_turns(turns: Sequence[Sequence[IndexArray]], agent: int, rng: np.random.Generator) -> Iterator[IndexArray]:
    """An agent's own turns in their order, again and again; ``turns``: those of each agent."""
    while True:
        yield from turns[agent]
