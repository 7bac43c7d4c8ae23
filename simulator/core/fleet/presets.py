"""Small populations that come with coband: each number in them has a source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from coband.simulator.arrays import FloatArray
from coband.simulator.core.config import SECONDS
from coband.simulator.core.fleet.populations import BasePopulation, in_simulated_units
from coband.simulator.core.fleet.table import AVAILABILITY, Fleet, Windows

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
        shares: devices come in classes of these shares, each of which has the k-th value of every tuple in ``numbers``.
    """

    numbers: Mapping[str, tuple[Drawn, ...]]
    away: Away | None = None
    shares: tuple[float, ...] = (1.0,)
    source: str = ""


_PHONES = "FLHetBench (Zhang et al. 2024)"
_DRIVING = "its packets of 1,500 bytes over its 120.002 s (Mahimahi's traces; Winstein et al. 2013)"
_CLINICS = "FCC, Health Care Broadband in America (2010), minimum for"
PRESETS: Mapping[str, Kit] = {
    "phones": Kit(
        {
            "compute": (
                Drawn(
                    (0.040, 0.069, 0.088, 0.103, 0.139, 0.172, 0.218, 0.262, 0.343, 0.476, 15.070),
                    f"deciles of 978 measured times of a training step of a ResNet, {_PHONES}",
                ),
            ),
            "downlink": (
                Drawn(
                    (
                        2e3,
                        8.005e6,
                        10.518e6,
                        27.658e6,
                        36.772e6,
                        40.14e6,
                        48.085e6,
                        58.94e6,
                        74.856e6,
                        87.019e6,
                        98.292e6,
                    ),
                    f"deciles of the mean TCP download in 100 records of MobiPerf, {_PHONES}",
                ),
            ),
        },
        Away(
            Drawn(
                (0.0001, 0.0011, 0.008, 0.0182, 0.036, 0.0547, 0.0809, 0.1132, 0.1586, 0.2549, 0.7844),
                f"deciles of the share of time for which 710 phones are idle, charging and on wifi, {_PHONES}",
            ),
            2053.6,
            f"mean of the 13,295 windows of these phones, {_PHONES}",
        ),
    ),
    "hospitals": Kit(
        {
            name: (Drawn((100e6,), f"{_CLINICS} a hospital"), Drawn((1e9,), f"{_CLINICS} an academic medical centre"))
            for name in ("uplink", "downlink")
        },
        shares=(1 - 400 / 6093, 400 / 6093),
        source="6,093 hospitals in the USA (American Hospital Association 2022), 400 of them major teaching hospitals "
        "(Association of American Medical Colleges)",
    ),
    "cars": Kit(
        {
            "uplink": (Drawn((1.910e6,), f"ATT-LTE-driving-2016.up, {_DRIVING}"),),
            "downlink": (Drawn((4.560e6,), f"ATT-LTE-driving-2016.down, {_DRIVING}"),),
        },
        Away(
            Drawn((59 / 1440,), "59 minutes a day at the wheel (AAA Foundation for Traffic Safety 2021)"),
            59 / 2.5 * 60,
            "59 minutes a day in 2.5 trips (AAA Foundation for Traffic Safety 2021)",
        ),
    ),
}
"""By name."""


class Preset(BasePopulation):
    """A small population that comes with coband, as a start: phones (turns, downlinks, availability), hospitals (links)
    or cars (links, availability); columns are independent of each other, as they are from different sources."""

    kind: Literal["preset"]
    name: Literal["phones", "hospitals", "cars"]
    """Which one."""

    @property
    def _kit(self) -> Kit:
        return PRESETS[self.name]

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
