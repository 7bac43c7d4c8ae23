"""How well a generator of devices (``agents.population.kind: fit``) is like rows that it has not seen.

Half of the rows of each table, drawn at random, are fitted; devices of the generator are compared with the other half:
quantiles of each column, Kendall's tau of each pair, and the share of devices that are up, by hour of the day.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np

from coband.simulator.arrays import FloatArray
from coband.simulator.core.fleet.copula import Copula, columns_of, kendall, whole_columns_of
from coband.simulator.core.fleet.populations import BasePopulation
from coband.simulator.core.fleet.table import Fleet

QUANTILES = (0.05, 0.5, 0.95)
LIMIT = 0.05
"""Of the relative difference of quantiles, and of the difference of tau and of shares."""
DRAWN, RESAMPLES = 50_000, 200
"""Devices that the generator draws, and resamples for what two halves of the rows differ by chance."""
COMPARED = 2_000
"""Rows of which Kendall's tau is resampled, which takes long; its deviation is scaled to the number of rows."""


@dataclass(frozen=True)
class Measure:
    """One comparison.

    Attributes:
        of: the column, or two of them.
        what: quantile, tau, or hour.
        held_out: of the rows that were held out.
        drawn: of devices of the generator.
        difference: between the two, for quantiles in proportion to that of the rows.
        chance: standard deviation of the difference between two halves of the rows.
    """

    of: str
    what: str
    held_out: float
    drawn: float
    difference: float
    chance: float

    @property
    def verdict(self) -> str:
        """Whether the limit is met; if not, whether more than chance must be the reason (1.96 deviations)."""
        if abs(self.difference) <= LIMIT:
            return "met"
        return "missed" if abs(self.difference) - 1.96 * self.chance > LIMIT else "missed, as halves of so few rows do"


def acceptance(population: BasePopulation) -> list[Measure]:
    """The acceptance list of a generator fitted to the rows of a population, each of its tables by itself.

    Raises:
        ValueError: it cannot be fitted.
    """
    rng, found = np.random.default_rng(0), list[Measure]()
    for halves in population.halves(rng):
        fitted, held = (half.only(population.sets) for half in halves)
        if whole_columns_of(held):
            drawn = Copula.of(fitted).draw(DRAWN, rng)
            found += _quantiles(fitted, held, drawn, rng)
            found += _taus(fitted, held, drawn, rng)
            found += _hours(fitted, held, drawn, population.day, rng)
    return found


def _quantiles(fitted: Fleet, held: Fleet, drawn: Fleet, rng: np.random.Generator) -> Iterator[Measure]:
    tables = [columns_of(one) for one in (fitted, held, drawn)]
    for name in tables[1]:
        rows, devices = (np.quantile(table[name], QUANTILES) for table in tables[1:])
        scale = np.maximum(np.abs(rows), np.finfo(float).tiny)
        changed = [np.quantile(_resampled(table[name], rng), QUANTILES, axis=1) for table in tables[:2]]
        chance = np.std(changed[0] - changed[1], axis=1) / scale
        for place, q in enumerate(QUANTILES):
            difference = float((devices[place] - rows[place]) / scale[place])
            yield Measure(name, f"{q:.0%} quantile", rows[place], devices[place], difference, float(chance[place]))


def _resampled(values: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Resamples of a column, shape (RESAMPLES, rows)."""
    drawn: FloatArray = values[rng.integers(len(values), size=(RESAMPLES, len(values)))]
    return drawn


def _taus(fitted: Fleet, held: Fleet, drawn: Fleet, rng: np.random.Generator) -> Iterator[Measure]:
    tables = [list(columns_of(one).values()) for one in (fitted, held, drawn)]
    names, (_, rows, devices) = list(columns_of(held)), [kendall(columns) for columns in tables]
    if len(names) < 2:
        return
    some = min(held.count, COMPARED)
    resampled = [
        kendall([column[chosen] for column in tables[1]])
        for chosen in (rng.integers(held.count, size=some) for _ in range(RESAMPLES // 4))
    ]
    chance = np.std(resampled, axis=0) * math.sqrt(some / held.count + some / fitted.count)
    for one, other in combinations(range(len(names)), 2):
        of, difference = f"{names[one]}, {names[other]}", devices[one, other] - rows[one, other]
        yield Measure(of, "Kendall's tau", rows[one, other], devices[one, other], difference, chance[one, other])


def _hours(fitted: Fleet, held: Fleet, drawn: Fleet, day: float, rng: np.random.Generator) -> Iterator[Measure]:
    if held.windows is None:
        return
    rows, devices = held.by_hour(day), drawn.by_hour(day)
    worst = int(np.argmax(np.abs(devices - rows)))
    changed = [_resampled(_up(half, day)[:, worst], rng).mean(axis=1) for half in (fitted, held)]
    difference, chance = float(devices[worst] - rows[worst]), float(np.std(changed[0] - changed[1]))
    yield Measure("availability", f"share up at {worst}-{worst + 1} h", rows[worst], devices[worst], difference, chance)


def _up(fleet: Fleet, day: float) -> FloatArray:
    """Share of each hour of the day for which each device is up, shape (devices, hours)."""
    assert fleet.windows is not None
    assert fleet.trace is not None
    found: FloatArray = fleet.windows.by_hour(day)[fleet.trace]
    return found


def as_json_rows(measures: list[Measure]) -> list[Mapping[str, Any]]:
    """The list in JSON types."""
    return [{**asdict(one), "limit": LIMIT, "verdict": one.verdict} for one in measures]
