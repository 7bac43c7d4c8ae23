"""What a run needs, compared with what is free, before it begins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from coband.simulator.core.memory import NUMBER, RunSize
from coband.simulator.core.nodes.graphs import Graph
from coband.simulator.core.nodes.node import UnsupportedScenario
from coband.simulator.experiments.runs.free_memory import FreeMemory, capacity, free_memory
from coband.simulator.experiments.scenario.scenario import Scenario, ScenarioEntry

if TYPE_CHECKING:
    from coband.simulator.experiments.runs.study import Study

OF_A_PULL = 120
"""Bytes that the accounts keep of every pull: time, regret, scalars and agent, in lists and at the end in arrays."""
OF_AN_AGENT = 8_000
"""Bytes of an agent and its host that has not learnt anything."""
CAUTION = 0.7
"""Share of what is free from which on a run is warned of."""

CERTAIN = 16 << 20
"""Bytes that any process has which has come so far; for less it is not looked what is free, which reads files."""
SUSPICIOUS = 0.2
"""Share of what is free from which on a worker that died may have died of that."""


@dataclass(frozen=True)
class Part:
    """One thing that takes memory.

    Attributes:
        what: in words.
        change: what makes it smaller.
    """

    what: str
    size: float
    change: str


@dataclass(frozen=True)
class Estimate:
    """What a run needs at least.

    Attributes:
        title: whose run: its label.
        scale: its sizes, in words.
        parts: what takes it.
    """

    title: str
    scale: str
    parts: tuple[Part, ...]

    @property
    def size(self) -> float:
        """Bytes in all."""
        return sum(part.size for part in self.parts)

    @property
    def largest(self) -> Part:
        """The part that takes most."""
        return max(self.parts, key=lambda part: part.size)

    def sentence(self, free: float | None, workers: int = 1) -> str:
        """What it needs, what is free, and what to change: a sentence that goes on from the title."""
        most = self.largest
        head = f"needs about {in_bytes(self.size)} of memory at {self.scale}"
        each = "" if workers == 1 else f", in each of {workers} processes"
        have = "" if free is None else f", and {in_bytes(free)} are free"
        return f"{head}{each}, {in_bytes(most.size)} of it for {most.what}{have}; it needs less with {most.change}"


def estimate(scenario: Scenario, entry: ScenarioEntry, graph: Graph | None = None) -> Estimate:
    """What a run of an entry needs at least.

    Args:
        graph: of the agents, where it has been drawn.
    """
    agents, schedule = scenario.agents.count, scenario.schedule
    turns = schedule.total_turns(agents) if schedule.duration is None else None
    extent = scenario.problem.extent(agents)
    sizes = RunSize(entry.config, agents, turns, graph=graph, share=scenario.share)
    scale = [f"{agents:,} agent{'s' * (agents != 1)}"]
    parts = [Part("the agents", float(OF_AN_AGENT * agents), "fewer agents (agents.count)")]
    if turns is not None:
        scale.append(f"{turns:,} turns")
        parts.append(Part("the accounts of all turns", float(OF_A_PULL * turns), "fewer turns (schedule.turns)"))
    if extent is not None:
        scale.append(f"{extent.arms:,} arms of dimension {extent.dimension:,}")
        parts.append(Part("arms and contexts", NUMBER * float(extent.held), f"smaller {extent.change}"))
        fixed = extent.arms if extent.fixed else 0
        sizes = RunSize(entry.config, agents, turns, extent.dimension, extent.arms, fixed, graph, scenario.share)
    found = entry.algorithm.memory_of(sizes)
    parts += [Part(part.what, size, part.change) for part, size in found]
    name = entry.label if entry.label == entry.algorithm.name else f"{entry.label} ({entry.algorithm.name})"
    return Estimate(name, ", ".join(scale), tuple(parts))


def refusal(found: Estimate, free: FreeMemory) -> str | None:
    """Why a run is hopeless, in a sentence that goes on from its title; None if it is not."""
    return found.sentence(free.one) if free.one is not None and found.size > free.one else None


def before(study: Study, workers: int) -> list[str]:
    """Compare a study with the memory of this machine, before anything of it runs.

    Args:
        workers: processes on this machine.

    Returns:
        Warnings.

    Raises:
        UnsupportedScenario: a run of it is hopeless.
    """
    free = free_memory()
    found = [estimate(variant.scenario, variant.configured) for variant in study.variants]
    for one in found:
        if (sentence := refusal(one, free)) is not None:
            raise UnsupportedScenario(f"{one.title} {sentence}")
    return list(dict.fromkeys(cautions(found, free, min(workers, study.jobs))))


def exhausted(scenario: Scenario, entry: ScenarioEntry, error: MemoryError) -> str:
    """What is said of a job that has run out of memory."""
    found = estimate(scenario, entry)
    reason = f" ({error})" if str(error) else ""
    return f"out of memory{reason}: {found.title} {found.sentence(free_memory().one)}"


def died(scenario: Scenario, entry: ScenarioEntry) -> str:
    """What to add where a worker has died: that it may have been for want of memory; empty if that is unlikely."""
    found, free = estimate(scenario, entry), free_memory()
    return (
        f"; {found.title} {found.sentence(free.one)}"
        if free.one is not None and found.size > SUSPICIOUS * free.one
        else ""
    )


def check(scenario: Scenario, entry: ScenarioEntry, graph: Graph | None = None) -> None:
    """Refuse a job for which there is not enough memory here, even if it had the machine to itself.

    Raises:
        UnsupportedScenario: with the estimate.
    """
    found = estimate(scenario, entry, graph)
    if found.size > CERTAIN and (sentence := refusal(found, capacity())) is not None:
        raise UnsupportedScenario(f"{found.title} {sentence}")


def cautions(estimates: Iterable[Estimate], free: FreeMemory, workers: int) -> Iterator[str]:
    """Warnings of runs that take most of what is free, by themselves or beside each other."""
    for found in estimates:
        if free.process is not None and found.size > CAUTION * free.process:
            yield f"{found.title} {found.sentence(free.process)}"
        elif free.machine is not None and found.size > CAUTION * free.machine:
            yield f"{found.title} {found.sentence(free.machine)}"
        elif free.machine is not None and workers * found.size > CAUTION * free.machine:
            most = max(1, int(CAUTION * free.machine / found.size))
            yield f"{found.title} {found.sentence(free.machine, workers)}, or with --workers {most}"


def in_bytes(size: float) -> str:
    """A size for people."""
    for unit, name in ((2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB")):
        if size >= unit:
            number = size / unit
            if number >= 1e6:
                return f"{number:.1e} {name}"
            return f"{number:,.0f} {name}" if number >= 10 else f"{number:.1f} {name}"
    return f"{size / 2**10:,.0f} KiB"
