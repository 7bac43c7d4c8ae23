"""One plugin of each kind, as another package would write it: it uses what `import coband` gives, and nothing
else of coband. The test copies this file into a folder and makes a distribution of it."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

import coband

ENTRIES = """
algorithms first_arm ALGORITHM, problems ladder PROBLEM, kernels laplace Laplace, rewards total Total, noises coin Coin,
topologies wheel Wheel, distributions triangle Triangle, latencies on_a_line OnALine, losses every_nth EveryNth,
bandwidths dear_start DearStart, schedules bursts Bursts, availabilities nights Nights, stragglers growing Growing,
partitions odd_even OddEven, outages one_at_random OneAtRandom, encodings halves Halves, adversaries mirror Mirror,
defences midrange Midrange, mechanisms flat_noise FlatNoise, populations two_classes TwoClasses,
recharges daylight Daylight, drifts flip Flip, metrics worst_agent METRIC
"""
ENTRY_POINTS = "".join(
    f"[coband.{group}]\n{name} = open_lists_plugin:{value}\n"
    for group, name, value in (entry.split() for entry in ENTRIES.split(","))
)


class FirstArmConfig(coband.Config):
    """Parameters."""

    skipped: int = 0
    """Arms before the one that is pulled."""


class FirstArm(coband.Agent):
    """Pulls the same arm again and again, and tells nobody."""

    def choose(self, arms: coband.ArmSet) -> int:
        config: Any = self.context.config
        return int(config.skipped)

    def observe(self, arms: coband.ArmSet, arm: int, reward: float) -> coband.Outbox:
        self.unshared += 1
        return []

    def receive(self, message: coband.Message, source: coband.Address) -> coband.Outbox:
        return []


ALGORITHM = coband.Algorithm(
    name="first_arm",
    agent=FirstArm,
    server=None,
    config=FirstArmConfig,
    summary="Pulls the first arm.",
    reference="none",
    needs=coband.Needs(topologies=("star", "graph"), reliable=False),
)


class Steps(coband.World):
    """The arms of a ladder, the highest of which pays most."""

    dimension, fixed_arms = 1, True

    def __init__(self, steps: int) -> None:
        self._heights = np.linspace(0.0, 1.0, steps)

    def arms(self, agent: int, turn: int) -> coband.FloatArray:
        return self._heights[:, None]

    def pull(self, agent: int, turn: int, arm: int) -> tuple[float, float]:
        return float(self._heights[arm]), float(1.0 - self._heights[arm])

    def describe(self) -> dict[str, Any]:
        return {}


class Ladder(coband.Problem):
    """Equal steps, of which the highest pays most."""

    kind: Literal["ladder"]
    steps: int = 4
    """Number of arms."""

    def build(self, streams: Any, agents: int, base: Path | None = None) -> coband.World:
        return Steps(self.steps)


PROBLEM = coband.ProblemEntry(name="ladder", config=Ladder, summary="Arms at equal steps.", reference="none")


@dataclass(frozen=True)
class Laplace(coband.StationaryKernel):
    """exp(-||x - y|| / l)."""

    length_scale: float = 1.0
    columns: coband.Columns | None = None
    kind: Literal["laplace"] = "laplace"

    def inverse_length(self) -> float:
        return 1.0 / self.length_scale

    def finish(self, G: coband.FloatArray) -> coband.FloatArray:
        return np.exp(-np.sqrt(-2.0 * np.minimum(G, 0.0)))


class Sum:
    """The sum of an arm's features."""

    def __call__(self, arms: coband.FloatArray) -> coband.FloatArray:
        return arms.sum(axis=-1)

    def describe(self) -> dict[str, Any]:
        return {}


class Total(coband.Reward):
    """f(x) = x . 1."""

    kind: Literal["total"]

    def draw(self, rng: np.random.Generator, source: coband.ArmSource) -> coband.RewardFunction:
        return Sum()


class Wheel(coband.BaseGraph):
    """A ring of agents around agent 0."""

    kind: Literal["wheel"]

    def draw(self, agents: int, rng: np.random.Generator) -> coband.Graph:
        rim = agents - 1
        rows = [sorted({0, 1 + agent % rim, 1 + (agent - 2) % rim}) for agent in range(1, agents)]
        return coband.Graph((tuple(range(1, agents)), *map(tuple, rows)), "wheel")


class Triangle(coband.BaseDistribution):
    """Values between 0 and ``width``, most of them in the middle."""

    kind: Literal["triangle"] = "triangle"
    width: float
    """The largest value."""

    @property
    def mean(self) -> float:
        return self.width / 2

    def draw(self, rng: np.random.Generator, size: int) -> coband.FloatArray:
        return rng.random((size, 2)).sum(axis=1) * self.width / 2


class OnALine(coband.BaseLatency):
    """Agents stand on a line, and messages take a time in proportion to the distance."""

    kind: Literal["on_a_line"]
    step: Triangle = Triangle(width=0.1)
    """Time for a distance of 1."""
    delays: tuple[float, ...] = (1.0,)

    def between(self, source: coband.Address, destination: coband.Address) -> coband.BaseDistribution:
        return Triangle(width=self.step.width * (1 + abs(source - destination)))

    @property
    def largest_mean(self) -> float:
        return 10 * self.step.mean


class Halves(coband.BaseEncoding):
    """Whole multiples of one half in 16 bits."""

    kind: Literal["halves"]

    def widths(self, n: int) -> Sequence[tuple[int, int]]:
        return [(n, 16)]

    def encode(self, values: coband.FloatArray, rng: np.random.Generator) -> Sequence[Any]:
        return [(np.clip(np.rint(2.0 * values), -32768, 32767) + 32768.0).astype(np.uint64)]

    def decode(self, parts: Sequence[Any], n: int) -> coband.FloatArray:
        return (parts[0].astype(np.float64) - 32768.0) / 2.0


class Mirror(coband.BaseBehaviour):
    """Sends the fields of its messages backwards."""

    kind: Literal["mirror"]

    def corrupt(self, fields: Mapping[str, coband.FloatArray], about: coband.Sight) -> Mapping[str, coband.FloatArray]:
        return {name: values[::-1].copy() if values.ndim == 1 else values for name, values in fields.items()}


class Midrange(coband.BaseDefence):
    """Half-way between the least and the largest number of any agent."""

    kind: Literal["midrange"]

    def mean(self, statistics: coband.FloatArray) -> coband.FloatArray:
        return (statistics.min(axis=0) + statistics.max(axis=0)) / 2.0


class FlatNoise(coband.BaseMechanism):
    """Uniform noise on every pull, which no epsilon describes."""

    kind: Literal["flat_noise"]
    local: ClassVar[bool] = True

    def noise(self, size: int, form: Any, number: int, draw: Callable[[str], np.random.Generator]) -> coband.FloatArray:
        return draw(str(number)).uniform(-1.0, 1.0, size)

    def weight(self, released: coband.Released, form: Any, agent: bool) -> float:
        return float(released.pulls > 0)

    def epsilon(self, sigma: float, weight: float, delta: float, accountant: Any) -> float:
        return math.inf if weight else 0.0


class EveryNth(coband.BaseLoss):
    """Every n-th copy on a link is lost."""

    kind: Literal["every_nth"]
    n: int = 3

    @property
    def mean(self) -> float:
        return 1 / self.n

    def process(self, rng: np.random.Generator) -> Callable[[], bool]:
        first = int(rng.integers(self.n))
        copies = iter(range(first, 10**9))
        return lambda: next(copies) % self.n == 0


class Stage:
    """A link whose first copy takes longer."""

    def __init__(self, start: float) -> None:
        self._free = start

    def leave(self, arrival: float, scalars: int, bits: int) -> float:
        self._free = max(arrival, self._free) + scalars / 1000
        return self._free


class DearStart(coband.BaseBandwidth):
    """A link that opens at a time, and then lets 1000 scalars through per time unit."""

    kind: Literal["dear_start"]
    start: float = 0.5

    def stage(self) -> Stage:
        return Stage(self.start)


class Bursts(coband.BaseSchedule):
    """All agents act several times at once, and rest then."""

    kind: Literal["bursts"]
    bursts: int = 3
    sizes: tuple[int, ...] = (2,)

    def total_turns(self, agents: int) -> int:
        return self.bursts * agents * self.sizes[0]

    def turns_per_agent(self, agents: int, streams: Any) -> int:
        return self.bursts * self.sizes[0]

    def ticks(self, agents: int, streams: Any) -> Iterator[tuple[float, int]]:
        for burst in range(self.bursts):
            for turn in range(self.sizes[0]):
                for agent in range(agents):
                    yield 10.0 * burst + turn, agent


class Nights(coband.BaseAvailability):
    """Every agent is down for the second half of each day."""

    kind: Literal["nights"]
    day: float = 8.0

    def windows(self, agent: coband.Address, rng: np.random.Generator) -> Iterator[tuple[float, float]]:
        for day in range(3):
            yield (day + 0.5) * self.day, (day + 1) * self.day


class Growing(coband.BaseStragglers):
    """Each agent is slower than the one before it."""

    kind: Literal["growing"]
    step: float = 0.5
    steady: bool = False  # a word of its own, which means nothing to anybody else

    def factors(self, count: int, streams: Any) -> list[float]:
        return [1.0 + self.step * agent for agent in range(count)]


class OddEven(coband.BasePartition):
    """Odd and even agents cannot reach each other in the first time units."""

    kind: Literal["odd_even"]
    until: float = 2.0

    def cuts(self, source: coband.Address, destination: coband.Address, time: float) -> bool:
        return time < self.until and (source - destination) % 2 == 1


class OneAtRandom(coband.BaseOutage):
    """One agent goes down for a while."""

    kind: Literal["one_at_random"]
    start: float = 3.0

    def windows(self, agents: int, rng: np.random.Generator) -> Mapping[coband.Address, Iterable[tuple[float, float]]]:
        return {int(rng.integers(agents)): ((self.start, self.start + 1.0),)}


class TwoClasses(coband.BasePopulation):
    """Odd agents have slower devices, with slower links."""

    kind: Literal["two_classes"]
    slower: tuple[float, ...] = (4.0,)

    @property
    def offers(self) -> frozenset[str]:
        return frozenset({"speed", "uplink"})

    def draw(self, count: int, rng: np.random.Generator) -> coband.Fleet:
        speed = np.where(np.arange(count) % 2, 1 / self.slower[0], 1.0)
        return coband.Fleet(count, {"speed": speed, "uplink": 64e3 * speed})


class Daylight(coband.BaseRecharge):
    """A solar cell: half of the time."""

    kind: Literal["daylight"]
    power: float = 1.0

    def charging(self, agent: int, now: float, offset: float) -> Iterator[tuple[float, float]]:
        half = int(now // 4.0)
        while True:
            yield 0.0 if half % 2 else self.power, 4.0 * (half + 1)
            half += 1


class Coin(coband.BaseNoise):
    """Up or down by as much."""

    kind: Literal["coin"]
    step: float = 0.5

    def draws(self, rng: np.random.Generator, turns: int) -> list[float]:
        return [float(step) for step in rng.choice((-self.step, self.step), size=turns)]

    def reward(self, mean: float, draw: float) -> float:
        return mean + draw


class Flip(coband.BaseDrift):
    """theta points the other way from some moment on."""

    kind: Literal["flip"]
    moments: tuple[float, ...] = (3.0,)

    def path(self, theta: coband.FloatArray, redraw: Any, streams: Any) -> Callable[[float], coband.FloatArray]:
        opposite = -theta
        return lambda time: theta if time < self.moments[0] else opposite


def worst(result: coband.RunResult) -> float:
    """The largest regret of a single agent."""
    return max((float(agent["regret"] or 0.0) for agent in result.by_agent), default=math.nan)


METRIC = coband.RunMetric(
    "worst_agent", "units of the reward", "regret of the agent with the largest", "lower", of=worst
)
