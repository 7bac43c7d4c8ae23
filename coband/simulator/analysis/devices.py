"""The devices of stored runs: drawn once more from the population of their scenario."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from coband.simulator.arrays import FloatArray
from coband.simulator.core.populations.kinds import POPULATIONS
from coband.simulator.core.populations.populations import BasePopulation
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.plugins.kinds import adapter


@dataclass(frozen=True)
class Devices:
    """Those of the first replication.

    Attributes:
        numbers: by what they set (`core.populations.table.NUMBERS`), shape (agents,); nan where a device does not say.
        hours: share of devices that are up, by hour of the day; None where none says.
        shares: share of time for which each is up; likewise.
    """

    numbers: Mapping[str, FloatArray]
    hours: FloatArray | None
    shares: FloatArray | None = None


def devices_of(scenario: Mapping[str, Any]) -> Devices | None:
    """The devices of a resolved scenario.

    None without a population, and where it cannot be drawn any more: its files are gone, or its kind is not installed.
    """
    agents = scenario.get("agents") or {}
    section = agents.get("population")
    kind = None if section is None else POPULATIONS.get(section.get("kind"))
    if kind is None:
        return None
    try:
        population: BasePopulation = adapter(kind).validate_python(section)
    except (ValueError, OSError):
        return None
    streams = Streams(int(scenario.get("seed", 0)), 0)
    drawn = population.draw(int(agents["count"]), streams("faults", 0, "population")).only(population.sets)
    if drawn.windows is None:
        return Devices(drawn.numbers, None)
    return Devices(drawn.numbers, drawn.by_hour(population.day), drawn.shares)
