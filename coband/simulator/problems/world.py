"""What the worlds of problems are made of: noise, blocks of turns, arms that stay the same, and positions of random
streams (a generator that waits takes 700 bytes, and in a large population most of them wait).

All draws of a turn depend on (agent, the agent's own turn number) only, so that two algorithms compared on one
replication meet the same arms and the same noise, whatever they send and in whatever order their agents act.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from coband.simulator.arrays import FloatArray
from coband.simulator.core.config import JsonObject
from coband.simulator.core.world import World as World
from coband.simulator.problems.problem import InstanceError as InstanceError
from coband.simulator.problems.problem import Problem as Problem
from coband.simulator.problems.problem import ProblemEntry as ProblemEntry
from coband.simulator.problems.problem import Streams as Streams
from coband.simulator.problems.problem import check_columns as check_columns

WORD, WHOLE = 32, 128
"""Bits of a word that is left over, and of a state or an increment."""


def position(rng: np.random.Generator) -> int:
    """Where a PCG64 stream stands, in one number of 64 bytes."""
    now = rng.bit_generator.state
    found, left = now["state"], now["has_uint32"] << WORD | now["uinteger"]
    at: int = (left << WHOLE | found["state"]) << WHOLE | found["inc"]
    return at


class GoingOn:
    """One generator that goes on where any of many streams stands.

    Args:
        rng: the generator, whose own state is lost.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def at(self, position: int) -> np.random.Generator:
        """The generator at a position, until it is asked for at another one."""
        whole = (1 << WHOLE) - 1
        state, left = position >> WHOLE & whole, position >> 2 * WHOLE
        self._rng.bit_generator.state = {
            "bit_generator": "PCG64",
            "state": {"state": state, "inc": position & whole},
            "has_uint32": left >> WORD,
            "uinteger": left & (1 << WORD) - 1,
        }
        return self._rng


FIRST_BLOCK = 4
"""Turns drawn when an agent acts for the first time."""

LONGEST_BLOCK = 16
"""Turns drawn at once for one agent, at most, where it is not known how many it will take."""

LONGEST_EXPECTED = 64
"""The same where it is known, so that few are drawn and not used."""

BLOCK_MEMORY = 2**27
"""Bytes that the blocks of all agents may hold together, as long as each holds at least one turn."""

T = TypeVar("T")


class Noise(Protocol):
    """How a reward scatters around its mean: one draw per turn, the same for every arm (common random numbers)."""

    def draws(self, rng: np.random.Generator, turns: int) -> list[float]:
        """The next draws of a stream, one per turn."""

    def reward(self, mean: float, draw: float) -> float:
        """The reward of an arm with this mean in the turn with this draw."""


class Blocks(Generic[T]):
    """One agent's draws, turn by turn, made in blocks that double in length up to `longest` turns.

    Short first blocks keep agents that act rarely cheap, longer ones spread numpy's cost per call. `draw(turns)` must
    continue its streams turn after turn, so that the lengths of the blocks leave the values alone.

    Args:
        longest: turns drawn at once, at most.
        expected: about how many turns there will be; a block ends with them, and short ones follow it.
    """

    __slots__ = ("_draw", "_end", "_expected", "_items", "_length", "_longest", "_start")

    def __init__(
        self, draw: Callable[[int], Sequence[T]], longest: int = LONGEST_BLOCK, expected: int | None = None
    ) -> None:
        self._draw = draw
        self._longest = longest
        self._length = min(FIRST_BLOCK, longest)
        self._expected = expected
        self._start = self._end = 1
        self._items: Sequence[T] = ()

    def at(self, turn: int) -> T:
        """The draws of a turn.

        Raises:
            ValueError: the turn lies in a block that has been left behind.
        """
        index = turn - self._start
        if index < 0:
            raise ValueError(f"turn(={turn}) must be >= {self._start}: an agent's turns start at 1 and do not go back.")
        while index >= len(self._items):
            index -= len(self._items)
            self._start += len(self._items)
            self._items = self._draw(self._length)
            self._end = self._start + len(self._items)
            self._length = self._next_length()
        return self._items[index]

    def _next_length(self) -> int:
        """The length of the block after the present one."""
        length = min(2 * self._length, self._longest)
        if self._expected is None:
            return length
        first, left = min(FIRST_BLOCK, self._longest), self._expected - (self._end - 1)
        if left > 0:
            return max(first, min(length, left))
        self._expected, self._longest = None, min(self._longest, LONGEST_BLOCK)
        return first

    def upcoming(self, turn: int) -> tuple[Sequence[T], int]:
        """Draws that were made together, and the place of a turn's among them; those after it are of turns to come."""
        if not self._start <= turn < self._end:
            self.at(turn)
        return self._items, turn - self._start


def longest_block(agents: int, values_per_turn: int, expected: bool = False) -> int:
    """Turns per block that keep all agents together within `BLOCK_MEMORY`.

    1 to `LONGEST_BLOCK`, or to `LONGEST_EXPECTED` within a quarter of the memory where numbers of turns are expected.
    """
    turns = BLOCK_MEMORY // (8 * max(1, agents) * values_per_turn)
    longest = min(LONGEST_BLOCK, max(1, turns))
    return max(longest, min(LONGEST_EXPECTED, turns // 4)) if expected else longest


Turn = tuple[FloatArray, FloatArray, float, float]
"""One turn: arms (n, d), their means (n,), the largest mean, the draw of the noise."""


class DrawnTurns(Sequence[Turn]):
    """Turns that were drawn together; each is a view.

    Args:
        arms: (turns, n, d), read-only.
        means: (turns, n).
        noise: one draw per turn.
    """

    __slots__ = ("_count", "_rest", "arms")

    def __init__(self, arms: FloatArray, means: FloatArray, noise: Sequence[float]) -> None:
        turns, n = means.shape
        self._count = n
        self.arms, rest = arms, np.empty((turns, n + 2))  # means, the largest one, noise
        rest[:, :n], rest[:, n], rest[:, n + 1] = means, means.max(axis=1), noise
        self._rest = frozen(rest)

    def __len__(self) -> int:
        return len(self._rest)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[number] for number in range(*place.indices(len(self)))]
        rest = self._rest[place]
        return self.arms[place], rest[:-2], rest.item(-2), rest.item(-1)

    def of(self, place: int, arm: int) -> tuple[float, float, float]:
        """In one turn: the mean of an arm, the largest mean, and the draw of the noise."""
        n, rest = self._count, self._rest
        if not 0 <= arm < n:
            check_arm(arm, n)
        return rest.item(place, arm), rest.item(place, n), rest.item(place, n + 1)


class TurnsWorld(abc.ABC):
    """A world whose arms change from turn to turn; an agent's turns are drawn in blocks, in their order.

    Args:
        dimension: d.
        realised: whether ``pull`` returns the realised regret.
    """

    fixed_arms = False

    def __init__(self, dimension: int, noise: Noise, streams: Streams, realised: bool = False) -> None:
        self.dimension, self.realised = dimension, realised
        self._noise, self._streams = noise, streams
        self._blocks: dict[int, Blocks[Turn]] = {}
        self._newest_asked = -1, 0  # agent and turn that were looked at last
        self._newest: Turn = np.empty((0, dimension)), np.empty(0), 0.0, 0.0

    @abc.abstractmethod
    def _open(self, agent: int) -> Blocks[Turn]:
        """The turns of an agent that acts for the first time."""

    def _of(self, agent: int) -> Blocks[Turn]:
        blocks = self._blocks.get(agent)
        if blocks is None:
            blocks = self._blocks[agent] = self._open(agent)
        return blocks

    def arms(self, agent: int, turn: int) -> FloatArray:
        return self._drawn(agent, turn)[0]

    def means(self, agent: int, turn: int) -> FloatArray:
        return self._as_now(agent, turn)[1]

    def _drawn(self, agent: int, turn: int) -> Turn:
        """A turn as it was drawn; of the one that was looked at last, the same object."""
        if self._newest_asked != (agent, turn):
            self._newest_asked, self._newest = (agent, turn), self._of(agent).at(turn)
        return self._newest

    def _as_now(self, agent: int, turn: int) -> Turn:
        """A turn as it is now."""
        return self._drawn(agent, turn)

    def pull(self, agent: int, turn: int, arm: int) -> tuple[float, float]:
        _, means, best, draw = self._as_now(agent, turn)
        check_arm(arm, len(means))
        mean = means.item(arm)
        reward = self._noise.reward(mean, draw)
        return reward, best - (reward if self.realised else mean)


def one_right(arms: FloatArray, right: int) -> Turn:
    """A turn without noise in which one arm has reward 1 and all others 0."""
    means = np.zeros(len(arms))
    means[right] = 1.0
    return read_only(arms), read_only(means), 1.0, 0.0


class FixedArmsWorld:
    """One arm set for all turns of all agents; only the noise changes.

    Args:
        arms: (n, d).
        means: f(x) of the arms, (n,); (agents, n) where agents have tasks of their own.
        noise, streams, realised: see `TurnsWorld`.
        truth: what ``describe`` returns.
    """

    fixed_arms = True
    steady_arms = True

    def __init__(
        self,
        arms: FloatArray,
        means: FloatArray,
        noise: Noise,
        streams: Streams,
        truth: JsonObject,
        realised: bool = False,
        warnings: tuple[str, ...] = (),
    ) -> None:
        if np.shape(means)[-1:] != arms.shape[-2:-1]:
            raise InstanceError(f"arms {arms.shape} are to be (n, d), and means {np.shape(means)} one for each of them")
        self.realised = realised
        self.dimension = int(arms.shape[1])
        self._arms = read_only(arms)
        self._set_means(means)
        self._noise, self._streams, self._truth, self.warnings = noise, streams, truth, warnings
        self._draws: dict[int, Blocks[float]] = {}

    def arms(self, agent: int, turn: int) -> FloatArray:
        return self._arms

    def means(self, agent: int, turn: int) -> FloatArray:
        means: FloatArray = self._means[agent if self._own else 0]
        return means

    def pull(self, agent: int, turn: int, arm: int) -> tuple[float, float]:
        task = agent if self._own else 0
        means = self._mean_of[task]
        check_arm(arm, len(means))
        draws = self._draws.get(agent)
        if draws is None:
            draws = self._draws[agent] = self._open(agent)
        mean = means[arm]
        reward = self._noise.reward(mean, draws.at(turn))
        return reward, self._best[task] - (reward if self.realised else mean)

    def describe(self) -> JsonObject:
        return self._truth

    def _set_means(self, means: FloatArray) -> None:
        self._means = read_only(np.atleast_2d(means))
        self._own = means.ndim > 1
        self._mean_of: list[list[float]] = self._means.tolist()
        self._best = list(map(max, self._mean_of))

    def _open(self, agent: int) -> Blocks[float]:
        rng = self._streams("world", agent, "noise")
        return Blocks(lambda turns: self._noise.draws(rng, turns))


class OwnArmsWorld(FixedArmsWorld):
    """Every agent has arms of its own, the same at all of its turns.

    Args:
        arms: (agents, n, d).
        means: f(x) of the arms, (agents, n).
        rest: as for `FixedArmsWorld`.
    """

    fixed_arms = False

    def __init__(self, arms: FloatArray, means: FloatArray, *rest: Any) -> None:
        super().__init__(arms[0], means, *rest)
        self._arms_of = [read_only(own) for own in arms]

    def arms(self, agent: int, turn: int) -> FloatArray:
        return self._arms_of[agent]


def check_arm(arm: int, count: int) -> None:
    """Refuse an index outside 0 .. count - 1; a negative one would silently count from the end."""
    if not 0 <= arm < count:
        raise IndexError(f"arm(={arm}) must be one of 0 .. {count - 1}: the turn offers {count} arms.")


def read_only(values: FloatArray) -> FloatArray:
    """The array as C-contiguous float64 that nobody can write to."""
    frozen = np.ascontiguousarray(values, dtype=np.float64).view()
    frozen.setflags(write=False)
    return frozen


def frozen(values: FloatArray) -> FloatArray:
    """The same of values that nobody else has: the array itself where it is of this form."""
    values = np.ascontiguousarray(values, dtype=np.float64)
    values.setflags(write=False)
    return values
