"""Small populations that come with coband: each number in them has a source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import yaml
from pydantic import ConfigDict, TypeAdapter

from coband.simulator.arrays import FloatArray
from coband.simulator.core.config import SECONDS
from coband.simulator.core.populations.populations import BasePopulation, in_simulated_units
from coband.simulator.core.populations.table import AVAILABILITY, Fleet, Windows

TRACES = 500
"""Different traces of availability in one draw; devices share them."""
PERIOD = 7 * 86400.0
"""Seconds after which they begin anew."""


@dataclass(frozen=True)
class Drawn:
    """A number that differs between devices: a quantile, at equal steps of probability, linear in between.

    Attributes:
        quantiles: of probability 0 to 1; one alone is the same for all devices.
        source: where they are from.
    """

    quantiles: tuple[float, ...]
    source: str

    def at(self, u: FloatArray) -> FloatArray:
        """Values at probabilities."""
        values: FloatArray = np.interp(u, np.linspace(0.0, 1.0, len(self.quantiles)), self.quantiles)
        return values


@dataclass(frozen=True)
class Away:
    """Availability: up and down in turn for exponential times.

    Attributes:
        share: of time for which a device is up.
        up: mean time for which it stays up, in seconds.
        source: of that mean.
    """

    share: Drawn
    up: float
    source: str

    def trace(self, share: float, rng: np.random.Generator) -> list[tuple[float, float]]:
        """Windows of one device; the last one ends with the period at the latest, and there is one at least."""
        down, pairs = self.up * (1.0 - share) / share, list[tuple[float, float]]()
        now = 0.0 if rng.random() < share else down * rng.standard_exponential()
        while now < PERIOD or not pairs:
            begin = now if now < PERIOD else rng.random() * (PERIOD - self.up)
            end = min(begin + self.up * rng.standard_exponential(), PERIOD)
            pairs.append((begin, end))
            now = end + down * rng.standard_exponential()
        return pairs


@dataclass(frozen=True)
class Kit:
    """One preset, in seconds and bits per second.

    Attributes:
        classes: devices in each class; the k-th class has the k-th value of every tuple in ``numbers``.
    """

    numbers: Mapping[str, tuple[Drawn, ...]]
    away: Away | None = None
    classes: tuple[int, ...] = (1,)
    source: str = ""

    @property
    def shares(self) -> list[float]:
        """Of the classes among all devices."""
        return [count / sum(self.classes) for count in self.classes]


@cache
def presets() -> Mapping[str, Kit]:
    """The presets of ``presets.yaml``, by name."""
    text = (Path(__file__).parent / "presets.yaml").read_text(encoding="utf-8")
    return TypeAdapter(dict[str, Kit]).validate_python(yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))


UNITS = {"compute": "seconds", "uplink": "bits per second", "downlink": "bits per second"}


def _sources(schema: dict[str, Any]) -> None:
    """Add all numbers of the presets to their description, each with its unit and its source."""
    found = schema["sources"] = list[dict[str, Any]]()

    def add(of: str, numbers: Sequence[float], unit: str, source: str) -> None:
        found.append({"of": of, "numbers": list(numbers), "unit": unit, "source": source})

    for name, kit in presets().items():
        if kit.source:
            add(f"{name}, size of classes", kit.classes, "devices", kit.source)
        for what, classes in kit.numbers.items():
            for place, drawn in enumerate(classes):
                of = f"{name}, {what}{f' of class {place + 1}' if len(classes) > 1 else ''}"
                add(of, drawn.quantiles, UNITS[what], drawn.source)
        if kit.away is not None:
            add(f"{name}, availability", kit.away.share.quantiles, "of the time", kit.away.share.source)
            add(f"{name}, mean time up", [kit.away.up], "seconds", kit.away.source)


class Preset(BasePopulation):
    """A small population that comes with coband, as a start: phones (turns, downlinks, availability), hospitals (links)
    or cars (links, availability); columns are independent of each other, as they are from different sources."""

    model_config = ConfigDict(json_schema_extra=_sources)
    kind: Literal["preset"]
    name: Literal["phones", "hospitals", "cars"]
    """Which one."""

    @property
    def _kit(self) -> Kit:
        return presets()[self.name]

    @property
    def offers(self) -> frozenset[str]:
        return frozenset((*self._kit.numbers, *(() if self._kit.away is None else (AVAILABILITY,))))

    def draw(self, count: int, rng: np.random.Generator) -> Fleet:
        kit, unit = self._kit, SECONDS[self.time_unit]
        classes = rng.choice(len(kit.shares), count, p=kit.shares)
        numbers = {}
        for name, drawn in kit.numbers.items():
            u = rng.random(count)
            numbers[name] = np.select([classes == place for place in range(len(drawn))], [one.at(u) for one in drawn])
        fleet = Fleet(count, in_simulated_units(numbers, unit))
        if kit.away is None:
            return fleet
        shares = kit.away.share.at(rng.random(min(count, TRACES)))
        traces = [kit.away.trace(share, rng) for share in shares.tolist()]
        windows = Windows.of(traces, [PERIOD] * len(traces)).scaled(1 / unit)
        trace = np.arange(count) if count <= TRACES else rng.integers(TRACES, size=count)
        return Fleet(count, {}, trace, windows).beside(fleet)
