"""Turns that offer rows of one's own data, and the order in which agents meet them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from coband.simulator.arrays import FloatArray, IndexArray
from coband.simulator.problems.disjoint import scale_warnings
from coband.simulator.problems.world import Blocks, Noise, Streams, check_arm, read_only

_Turn = tuple[FloatArray, FloatArray, float, float]
"""One turn: arms (n, d), their means (n,), the largest mean, the draw of the noise."""
RowsOf = Callable[[int, np.random.Generator], Iterator[IndexArray]]
"""From an agent and its stream to the rows that its turns offer, turn after turn."""


class TableWorld:
    """A world whose turns offer rows of a table."""

    fixed_arms = False

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
        """Create the world.

        Args:
            features: of all rows, (n, d).
            rewards: mean reward of each row, (n,); (agents, n) where agents have tasks of their own.
            rows_of: which rows an agent is offered.
            noise: noise of the rewards.
            streams: the replication's random streams.
            longest: turns drawn at once, at most.
            realised: whether `pull` returns the realised regret.
        """
        self.realised = realised
        self.dimension = int(features.shape[1])
        self._features, self._rewards, self._rows_of = features, rewards, rows_of
        self._noise, self._streams, self._longest = noise, streams, longest
        self._blocks: dict[int, Blocks[_Turn]] = {}
        self.warnings = scale_warnings(features, rewards)

    def arms(self, agent: int, turn: int) -> FloatArray:
        """Arms of the turn, (n, d)."""
        return self._at(agent, turn)[0]

    def means(self, agent: int, turn: int) -> FloatArray:
        """Mean rewards of the turn's arms, (n,)."""
        return self._at(agent, turn)[1]

    def pull(self, agent: int, turn: int, arm: int) -> tuple[float, float]:
        """Reward and regret of an arm; an IndexError when there is no such arm."""
        _, means, best, draw = self._at(agent, turn)
        check_arm(arm, len(means))
        mean = float(means[arm])
        reward = self._noise.reward(mean, draw)
        return reward, best - (reward if self.realised else mean)

    def describe(self) -> dict[str, Any]:
        """Number of rows, and the range of their rewards."""
        return described(self._rewards)

    def _at(self, agent: int, turn: int) -> _Turn:
        blocks = self._blocks.get(agent)
        if blocks is None:
            blocks = self._blocks[agent] = self._open(agent)
        return blocks.at(turn)

    def _open(self, agent: int) -> Blocks[_Turn]:
        rows = self._rows_of(agent, self._streams("world", agent, "rows"))
        noise = self._streams("world", agent, "noise")
        own = self._rewards if self._rewards.ndim == 1 else self._rewards[agent]
        return Blocks(lambda turns: self._draw(rows, own, noise, turns), self._longest)

    def _draw(
        self, rows: Iterator[IndexArray], rewards: FloatArray, noise: np.random.Generator, turns: int
    ) -> list[_Turn]:
        drawn = []
        for draw in self._noise.draws(noise, turns):
            offered = next(rows)
            means = read_only(rewards[offered])
            drawn.append((read_only(self._features[offered]), means, float(means.max()), draw))
        return drawn


def described(rewards: FloatArray) -> dict[str, Any]:
    """Number of rows, and the range of their rewards."""
    return {"rows": rewards.shape[-1], "lowest": float(rewards.min()), "highest": float(rewards.max())}


def drawn_rows(rows: int, count: int) -> RowsOf:
    """Rows drawn without replacement at every turn."""

    def drawn(agent: int, rng: np.random.Generator) -> Iterator[IndexArray]:
        while True:
            yield rng.choice(rows, count, replace=False)

    return drawn


def shuffled_turns(turns: Sequence[IndexArray]) -> RowsOf:
    """All turns in a random order, again and again."""

    def ordered(agent: int, rng: np.random.Generator) -> Iterator[IndexArray]:
        while True:
            yield from (turns[place] for place in rng.permutation(len(turns)))

    return ordered


def own_turns(turns: Sequence[Sequence[IndexArray]]) -> RowsOf:
    """An agent's own turns in their order, again and again; ``turns``: those of each agent."""

    def cycled(agent: int, rng: np.random.Generator) -> Iterator[IndexArray]:
        while True:
            yield from turns[agent]

    return cycled
