"""What the engine asks of a problem: a world that gives arm sets and rewards; the true reward function stays hidden.

The engine alone talks to a world; an agent sees the arm features of its turn and the reward of its pull, nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeGuard

from coband.simulator.arrays import FloatArray, IntArray
from coband.simulator.core.config import JsonObject


class World(Protocol):
    """The truth of one replication, drawn once, and the turns of its agents.

    For one agent, turn numbers start at 1 and never go back; agents may be asked in any order.

    Some attributes are optional. ``contexts``, rows (agents, d_z): agents have different tasks, described by network
    contexts z_v, and each agent is told its own. ``realised``: true where regret is against the noisy reward, and may
    be negative. ``measures``, a mapping: numbers about the instance for the result, asked for after the run; the
    problem declares them as metrics. ``upcoming(agent, turn)``: the arms of the turn and of some turns after it,
    (turns, n, d), for agents that look ahead. ``steady_arms``: true where the arms of an agent are the same at all of
    its turns. ``warnings``, sentences for the user: why the instance may mislead. ``expect(turns)``: told before the
    first turn about how many turns an agent takes; it must not change what is drawn. ``follow_clock(now)``: given what
    tells the simulated time, where rewards change with it.
    """

    @property
    def dimension(self) -> int:
        """Features per arm, d."""

    @property
    def fixed_arms(self) -> bool:
        """Whether every agent sees the same arm set, in the same order, at every turn."""

    def arms(self, agent: int, turn: int) -> FloatArray:
        """Arm features of a turn, shape (n, d), C-contiguous and read-only."""

    def pull(self, agent: int, turn: int, arm: int) -> tuple[float, float]:
        """Noisy reward of ``arm``, and its pseudo-regret max_x f(x) - f(x_arm) >= 0.

        A ``realised`` world gives max_x f(x) - reward instead.

        Raises:
            IndexError: the turn has no such arm.
        """

    def means(self, agent: int, turn: int) -> FloatArray:
        """Expected reward f(x) of each arm of a turn, shape (n,), read-only: the hidden truth."""

    def describe(self) -> JsonObject:
        """The drawn truth (theta, ...) in JSON types, for the record of the run."""


class BatchWorld(Protocol):
    """A world whose arms stay and that can be pulled in batches."""

    def knowledge(self) -> Any:
        """What every agent knows beforehand."""

    def pull_batch(self, agent: int, phase: int, counts: IntArray) -> tuple[FloatArray, float]:
        """(mean reward of each arm, 0 where not pulled; pseudo-regret of all pulls) of an agent's phase, from 1."""

    def score(self, answers: Sequence[int | None]) -> dict[str, float]:
        """How right the agents' answers are, as numbers for the result."""

    def score_of(self, agent: int, answer: int | None) -> dict[str, float]:
        """How right one agent's answer is."""


_BATCHES = ("knowledge", "pull_batch", "score", "score_of")


def in_batches(world: object) -> TypeGuard[BatchWorld]:
    """Whether a world is a `BatchWorld`; ``isinstance`` of a protocol would take a tenth of a short run."""
    return all(hasattr(world, name) for name in _BATCHES)
