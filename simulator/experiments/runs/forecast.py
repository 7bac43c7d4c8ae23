"""How long a study takes, and how much memory and disk: before it begins, and while it runs."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from coband.simulator.experiments.runs import costs, memory
from coband.simulator.experiments.runs.costs import Memories
from coband.simulator.experiments.runs.executors import cores
from coband.simulator.experiments.runs.repetitions import repetitions

if TYPE_CHECKING:
    from coband.simulator.experiments.runs.results import Record
    from coband.simulator.experiments.runs.study import Study

USUAL = 1.28
"""So many spreads on both sides have 80 % of a normal distribution."""
STARTS_IN, START_SECONDS = 0.3, 1.5
"""Seconds until the first job runs: in the driver's process, and in processes of its own."""
A_PROCESS = 100 << 20
"""Bytes of a process that runs small jobs."""
LITTLE_SECONDS, LITTLE_MEMORY, LITTLE_DISK = 5.0, 1 << 30, 100e6
"""What takes less of all three is not announced."""
UNTRACED = 60_000
"""Bytes that a job without a trace keeps."""
REPEATED_BYTES, REPEATED_SECONDS = 105, 2e-5
"""What one more copy of a message takes in the trace, and on the machine of the table."""
BEGUN_SHARE, BEGUN_SECONDS = 0.02, 0.2
"""From here on the progress of a job says more than what its algorithm usually costs."""


@dataclass(frozen=True)
class Estimate:
    """What a study takes, as far as anybody knows before.

    Attributes:
        seconds: from, to: in 8 of 10 cases, where nothing else keeps the machine busy; None where nobody knows.
        memory: bytes of all processes together, at least.
        disk: bytes of the run directory, from, to: the second where messages to nodes that are away are sent again as
            often as `repetitions` says; infinite where nobody knows.
        workers: processes that run at once.
        open_ended: whether replications may be added.
    """

    seconds: tuple[float, float] | None
    memory: float
    disk: tuple[float, float]
    workers: int
    open_ended: bool = False

    @property
    def most(self) -> float:
        """Bytes of disk, as many as anybody expects."""
        return max(size for size in self.disk if size < math.inf)

    @property
    def notable(self) -> bool:
        """Whether it takes enough to say so."""
        long = self.seconds is None or self.seconds[1] >= LITTLE_SECONDS
        return long or self.memory >= LITTLE_MEMORY or self.most >= LITTLE_DISK

    def __str__(self) -> str:
        parts = []
        if self.seconds is not None:
            words = span(*self.seconds)
            head = "at least " if self.open_ended and not words.startswith("less") else ""
            processes = f" with {self.workers} processes" if self.workers > 1 else ""
            parts.append(f"{head}{words}{processes}")
        parts.append(f"about {memory.in_bytes(self.memory)} of memory")
        least, most = self.disk
        head = "at least" if math.isinf(most) else "about"
        parts.append(f"{head} {memory.in_bytes(least)} of disk")
        if least < most < math.inf:
            parts.append(f"or up to about {memory.in_bytes(most)}, as messages to nodes that are away are sent again")
        return ", ".join(parts)


def estimate(study: Study, workers: int | None = None, *, elsewhere: bool = False) -> Estimate:
    """What a study takes on this machine.

    Args:
        workers: processes; None for one per job, at most one per core.
        elsewhere: whether they are on other machines, which count as as fast as this one.
    """
    first = study.first_replications
    count = max(1, min(cores() if workers is None else workers, first * len(study.variants)))
    beside = count if elsewhere else min(count, cores())
    known = Memories()
    logs: list[tuple[float, float]] = []
    late: list[float] = []
    least = most = needed = 0.0
    often: dict[str, float] = {}
    for variant in study.variants:
        scenario, entry = variant.scenario, variant.configured
        found = known.predict(scenario, entry)
        logs += [] if found is None else [found]
        needed = max(needed, memory.estimate(scenario, entry).size)
        network, sends = scenario.network, bool(entry.algorithm.messages)
        parts = (network.transport, network.retransmission, network.first_timeout, network.outages)
        key = repr((scenario.agents, scenario.schedule, *parts)) if sends else ""
        if key not in often:
            often[key] = repetitions(scenario) if sends else 0.0
        usual, repeated = _bytes(costs.typical(entry.algorithm.name, costs.features(scenario), "bytes"), often[key])
        late.append(0.0 if known.met(scenario, entry) or not often[key] else _seconds(repeated))
        traced = scenario.trace != "off"
        least += first * (UNTRACED + (usual if traced and usual < math.inf else 0.0))
        most += first * (UNTRACED + (usual + repeated if traced else 0.0))
    seconds = None
    if logs and len(logs) == len(study.variants):
        ends = [[math.exp(min(700.0, log + side * USUAL * spread)) for log, spread in logs] for side in (-1, 1)]
        ends[1] = [end + more for end, more in zip(ends[1], late, strict=True)]
        low, high = ((START_SECONDS if count > 1 else STARTS_IN) + _beside(end, first, beside) for end in ends)
        seconds = low, high
    return Estimate(seconds, count * (A_PROCESS + needed), (least, most), count, study.goes_on)


def _beside(seconds: list[float], replications: int, workers: int) -> float:
    """Time of jobs that run side by side: no less than the longest of them takes."""
    return max(max(seconds), sum(seconds) * replications / workers)


def _bytes(found: tuple[float, float] | None, often: float) -> tuple[float, float]:
    """Of a job's trace, as a rule; and of repetitions at most, were all of it messages. Infinite where nobody knows."""
    if found is None:
        return math.inf, 0.0
    log, spread = found
    return math.exp(min(60.0, log)), often * math.exp(min(60.0, log + USUAL * spread))


def _seconds(repeated: float) -> float:
    """What repetitions take that have so many bytes."""
    return REPEATED_SECONDS * costs.slowness() * repeated / REPEATED_BYTES


UNITS = ((86_400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))


def span(low: float, high: float) -> str:
    """A range of time in words, such as ``about 2 to 5 min``."""
    if high < LITTLE_SECONDS:
        return f"less than {LITTLE_SECONDS:g} s"
    size, unit = next((size, unit) for size, unit in UNITS if high >= 1.5 * size or size == 1)
    first, last = _rounded(low / size), _rounded(high / size)
    if first == "0":
        return f"less than {last} {unit}"
    return f"about {last} {unit}" if first == last else f"about {first} to {last} {unit}"


def _rounded(number: float) -> str:
    """With one digit more than needed to tell its size."""
    if number >= 10:
        digits = 10 ** (math.floor(math.log10(number)) - 1)
        return f"{round(number / digits) * digits:,}"
    return f"{number:.1f}".removesuffix(".0") if number < 2 else f"{number:.0f}"


class Forecast:
    """Seconds that are left: from what jobs cost as a rule, from finished ones, and from the progress of others.

    Args:
        folder: where worker processes write how far their jobs are.
    """

    def __init__(self, study: Study, workers: int, folder: Path | None = None) -> None:
        self._study, self._workers, self._folder = study, max(1, workers), folder
        self._memories = Memories()
        self._expected: dict[int, float | None] = {}
        self._totals: dict[int, int | None] = {}
        self._under_way: dict[Hashable, tuple[int, Path | None]] = {}
        self._shares: dict[Hashable, tuple[float, float]] = {}
        self._observed: dict[int, list[float]] = {}
        self._begun = 0
        self._wall = self._computed = 1e-3

    def expected(self, variant: int) -> float | None:
        """Seconds of a job of a variant, as far as is known."""
        if (seen := self._observed.get(variant)) is not None:
            return sum(seen) / len(seen)
        if variant not in self._expected:
            given = self._study.variants[variant]
            found = self._memories.predict(given.scenario, given.configured)
            self._expected[variant] = None if found is None else math.exp(min(700.0, found[0]))
        usual = self._expected[variant]
        return None if usual is None else usual * self._pace

    @property
    def _pace(self) -> float:
        """Seconds by the clock for each one that jobs compute: above 1 where other programs keep the machine busy."""
        return max(1.0, self._wall / self._computed)

    def begins(self, key: Hashable, variant: int) -> Path | None:
        """A job is handed out; where it is to write how far it is."""
        self._begun += 1
        file = None if self._folder is None else self._folder / str(self._begun)
        self._under_way[key] = variant, file
        return file

    def advances(self, key: Hashable, pulls: int, seconds: float) -> None:
        """A job has made so many pulls in so many seconds."""
        if key not in self._under_way:
            return
        variant = self._under_way[key][0]
        if variant not in self._totals:
            scenario = self._study.variants[variant].scenario
            self._totals[variant] = scenario.schedule.total_turns(scenario.agents.count)
        total = self._totals[variant]
        if total and pulls:
            self._shares[key] = min(1.0, pulls / total), seconds

    def ends(self, key: Hashable, record: Record | None) -> None:
        """A job has ended."""
        variant, file = self._under_way.pop(key)
        self._shares.pop(key, None)
        if file is not None:
            file.unlink(missing_ok=True)
        if record is not None:
            self._observed.setdefault(variant, []).append(float(record["wall_seconds"] or 0.0))
            given, computed = self._study.variants[variant], float(record["cpu_seconds"] or 0.0)
            self._memories.note(given.scenario, given.configured, int(record["turns"] or 0), computed)
            self._wall, self._computed = self._wall + self._observed[variant][-1], self._computed + computed

    def look(self) -> None:
        """Read how far the jobs of worker processes are."""
        for key, (_, file) in list(self._under_way.items()):
            if file is not None:
                try:
                    pulls, seconds = file.read_text().split()
                    self.advances(key, int(pulls), float(seconds))
                except (OSError, ValueError):
                    continue

    @property
    def under_way(self) -> float:
        """How much of the jobs under way is done, in jobs."""
        return sum(share for share, _ in self._shares.values())

    def left(self, open_jobs: Mapping[int, int]) -> float | None:
        """Seconds until the end, None as long as nobody knows.

        Args:
            open_jobs: variant -> jobs of it that have not ended, those under way included.
        """
        jobs, known, unknown = [], [], 0
        running = {key: self._whole(key) for key in self._under_way}
        for variant, count in open_jobs.items():
            own = [whole for key, whole in running.items() if self._under_way[key][0] == variant and whole is not None]
            each = sum(own) / len(own) if own and variant not in self._observed else self.expected(variant)
            if each is None:
                unknown += count
            else:
                known.append(each * count)
                jobs.append(count)
        if not known:
            return None
        total = sum(known) + unknown * sum(known) / max(1, sum(jobs))
        done = sum(seconds for _, seconds in self._shares.values())
        left = [max(0.0, whole - self._shares[key][1]) for key, whole in running.items() if whole is not None]
        return max(max(left, default=0.0), (total - done) / min(self._workers, max(1, sum(open_jobs.values()))))

    def _whole(self, key: Hashable) -> float | None:
        """Seconds of a job under way, from its progress: with share f of its pulls done it has used f^b of its time."""
        share, seconds = self._shares.get(key, (0.0, 0.0))
        if share < BEGUN_SHARE or seconds < BEGUN_SECONDS:
            return None
        algorithm = self._study.variants[self._under_way[key][0]].algorithm
        return float(seconds / share ** max(0.5, costs.growth(algorithm)))

    def close(self) -> None:
        """Remember what jobs took."""
        self._memories.keep()
