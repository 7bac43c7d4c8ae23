"""Populations: where the devices of a scenario come from."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from coband.simulator.arrays import FloatArray, IntArray
from coband.simulator.core.config import SECONDS, Config, TimeUnit, Unit
from coband.simulator.core.populations import reading
from coband.simulator.core.populations.table import AVAILABILITY, NUMBERS, SETTABLE, Fleet, Pairs, Windows, mistake_in

RateUnit = Literal["bits", "kilobits", "megabits", "gigabits"]
BITS: Mapping[RateUnit, float] = {"bits": 1.0, "kilobits": 1e3, "megabits": 1e6, "gigabits": 1e9}
"""Bits in a unit of size."""
SHARES: Mapping[str, float] = {"share": 1.0, "percent": 0.01}
LONGEST, FASTEST, MOST, FULLEST = 86400.0, 1e12, 1e6, 1e12
"""What is absurd: a turn or a way of more seconds, a link of more bits per second, a speed of more than that, a battery
of more joules."""
OnBadRow = Literal["refuse", "drop"]
Settable = Literal["compute", "speed", "uplink", "downlink", "latency", "battery", "capacity", "availability"]


class BasePopulation(Config):
    """Base of populations, which draw the devices of agents."""

    time_unit: TimeUnit = "seconds"
    """What a unit of the simulation's clock stands for."""
    only: Annotated[tuple[Settable, ...], Field(min_length=1)] | None = None
    """What devices set; null: all that they say. The rest comes from the scenario."""

    @property
    @abstractmethod
    def offers(self) -> frozenset[str]:
        """What devices say, among `SETTABLE`."""

    @abstractmethod
    def draw(self, count: int, rng: np.random.Generator) -> Fleet:
        """Devices of so many agents, in units of simulated time and bits; ``rng`` is a stream of its own."""

    def misfit(self, count: int) -> str:
        """What does not fit so many agents; empty when nothing is wrong."""
        return ""

    @property
    def sets(self) -> frozenset[str]:
        """What is taken from devices."""
        return self.offers if self.only is None else self.offers & {*self.only}

    @property
    def day(self) -> float:
        """Length of a day in simulated time."""
        return SECONDS["days"] / SECONDS[self.time_unit]

    @property
    def dropped(self) -> str:
        """Which rows were left out as bad, in a sentence; empty if none was."""
        return ""

    @model_validator(mode="after")
    def _sets_something(self) -> BasePopulation:
        missing = sorted({*(self.only or ())} - self.offers)
        if missing:
            offered = ", ".join(name for name in SETTABLE if name in self.offers)
            raise ValueError(f"only: these devices do not say {missing[0]}; they say {offered}")
        return self


class Rows(BasePopulation):
    """Populations with a table, whose rows are drawn or taken one after the other."""

    order: Literal["sampled", "in_order"] = "sampled"
    """sampled: each agent is a row drawn with the seed, so that a row may come twice; in_order: agent 0 is the first
    row, and so on."""
    on_bad_row: OnBadRow = "refuse"
    """Rows that cannot be true: refuse them, or drop them and say which."""

    @abstractmethod
    def read(self) -> tuple[Fleet, FloatArray | None, str]:
        """(rows, their weights in draws or None for equal ones, which rows were dropped)."""

    @property
    def offers(self) -> frozenset[str]:
        fleet, _, _ = self.read()
        return frozenset((*fleet.numbers, *(() if fleet.windows is None else (AVAILABILITY,))))

    @property
    def dropped(self) -> str:
        return self.read()[2]

    def table(self) -> Fleet:
        """All rows."""
        return self.read()[0]

    def misfit(self, count: int) -> str:
        rows = self.table().count
        return f"has {rows} rows for {count} agents; give order: sampled" if count > rows > 0 and self._ordered else ""

    @property
    def _ordered(self) -> bool:
        return self.order == "in_order"

    def draw(self, count: int, rng: np.random.Generator) -> Fleet:
        fleet, weights, _ = self.read()
        if self._ordered:
            return fleet.take(np.arange(count))
        return fleet.take(rng.choice(fleet.count, count, p=None if weights is None else weights / weights.sum()))

    @model_validator(mode="after")
    def _readable(self) -> Rows:
        self.read()
        return self


def _is_none(value: object) -> bool:
    return value is None


class Columns(Config):
    """Names of columns in the file; null for what it does not have."""

    compute: str | None = None
    """Time of a turn."""
    speed: str | None = None
    """Speed, by which compute and handling times are divided."""
    uplink: str | None = None
    """Bandwidth from the device."""
    downlink: str | None = None
    """Bandwidth to the device."""
    latency: str | None = None
    """Time on the way, in one direction."""
    round_trip: str | None = None
    """Time there and back, of which a message takes half; give either this or ``latency``."""
    availability: str | None = None
    """The id of the device's windows in ``windows_file``; in JSON also its windows, a list of [up, down]."""
    battery: str | None = Field(default=None, exclude_if=_is_none)
    """Level of the battery at time 0, as a share of its capacity."""
    capacity: str | None = Field(default=None, exclude_if=_is_none)
    """What a full battery holds, in joules."""
    weight: str | None = None
    """How often a row is drawn, in proportion."""
    name: str | None = Field(default=None, exclude_if=_is_none)
    """What the device is called, which tables and traces of agents say beside their numbers."""

    @model_validator(mode="after")
    def _something(self) -> Columns:
        if self.latency is not None and self.round_trip is not None:
            raise ValueError("give either latency or round_trip")
        if all(value is None for name, value in self if name not in ("weight", "name")):
            raise ValueError("give at least one column besides weight and name")
        return self


class Units(Config):
    """Units of the columns."""

    compute: TimeUnit = "seconds"
    """Of ``compute``."""
    latency: TimeUnit = "seconds"
    """Of ``latency`` and ``round_trip``."""
    availability: TimeUnit = "seconds"
    """Of windows and of ``repeat_after``."""
    bandwidth: Annotated[RateUnit, Unit("per second")] = "bits"
    """Of ``uplink`` and ``downlink``, per second."""
    battery: Literal["share", "percent"] = Field(default="share", exclude_if=lambda unit: unit == "share")
    """Of ``battery``."""


class FilePopulation(Rows):
    """A table with one row per device: .csv, .parquet, or .json (a list of objects)."""

    kind: Literal["file"]
    file: str
    """The table, relative to the scenario."""
    columns: Columns
    """Which column says what."""
    units: Units = Units()
    """The units of columns."""
    windows_file: str | None = None
    """A table with the columns id, up, down: one row for each time that devices with that id are up."""
    repeat_after: float | None = Field(default=None, gt=0)
    """Windows start again after so long, in ``units.availability``; null: after the last one a device stays down."""

    def read(self) -> tuple[Fleet, FloatArray | None, str]:
        times = tuple(map(modified_at, (self.file, self.windows_file)))
        return _read(self.model_copy(update={"order": "sampled", "only": None}), times)

    @model_validator(mode="after")
    def _windows_are_named(self) -> FilePopulation:
        if self.windows_file is not None and self.columns.availability is None:
            raise ValueError("windows_file needs columns.availability, the column with the ids of windows")
        return self


def modified_at(file: str | None) -> int:
    """When a file was changed, so that it is read again then."""
    return Path(file).stat().st_mtime_ns if file is not None and Path(file).is_file() else 0


@lru_cache(maxsize=8)
def _read(config: FilePopulation, modified: tuple[int, ...]) -> tuple[Fleet, FloatArray | None, str]:
    columns, units, unit = config.columns, config.units, SECONDS[config.time_unit]
    texts = [column for column in (columns.availability, columns.name) if column is not None]
    names = [name for _, name in columns if name is not None and name not in texts]
    found, bad = reading.columns_of(config.file, names, texts)
    rate = BITS[units.bandwidth]
    sizes = {  # seconds or bits per second in a unit of the column, and the largest value that can be true
        "compute": (SECONDS[units.compute], LONGEST, "seconds"),
        "latency": (SECONDS[units.latency], LONGEST, "seconds"),
        "round_trip": (SECONDS[units.latency], LONGEST, "seconds"),
        "uplink": (rate, FASTEST, "bits per second"),
        "downlink": (rate, FASTEST, "bits per second"),
        "speed": (1.0, MOST, ""),
        "battery": (SHARES[units.battery], 1.0, "of the capacity"),
        "capacity": (1.0, FULLEST, "joules"),
    }
    numbers: dict[str, FloatArray] = {}
    for key, (size, limit, name) in sizes.items():
        if (column := getattr(columns, key)) is not None:
            values = found[column]
            reading.check_range(values * size, values, column, limit, name, bad, zero=key == "battery")
            numbers[key] = values * size
    numbers = in_simulated_units(numbers, unit)
    weights = None if columns.weight is None else found[columns.weight]
    if weights is not None:
        for place in np.flatnonzero(~((weights >= 0) & np.isfinite(weights))).tolist():
            bad.add(place, f"{columns.weight} is {weights[place]:g}: must be finite and >= 0")
    trace, windows, dropped = None, None, ""
    if columns.availability is not None:
        trace, windows, dropped = _windows(config, found[columns.availability], bad)
        windows = windows.scaled(SECONDS[units.availability] / unit)
    bad.settle(config.on_bad_row)
    kept = bad.kept
    if weights is not None and not weights[kept].sum() > 0:
        raise ValueError(f"file {config.file!r}: all weights are 0; give a row a weight > 0")
    called = () if columns.name is None else ["" if cell is None else str(cell) for cell in found[columns.name]]
    fleet = Fleet(bad.rows, numbers, trace, windows, called).take(kept)
    return fleet, None if weights is None else weights[kept], "; ".join(filter(None, (dropped, bad.dropped)))


def in_simulated_units(numbers: Mapping[str, FloatArray], unit: float) -> dict[str, FloatArray]:
    """Seconds and bits per second in units of simulated time of so many seconds; round trips are halved."""
    found = dict(numbers)
    if (round_trip := found.pop("round_trip", None)) is not None:
        found["latency"] = round_trip / 2
    for name in ("compute", "latency"):
        if name in found:
            found[name] = found[name] / unit
    for name in ("uplink", "downlink"):
        if name in found:
            found[name] = found[name] * unit
    return {name: found[name] for name in NUMBERS if name in found}


def _windows(config: FilePopulation, cells: reading.Cells, bad: reading.BadRows) -> tuple[IntArray, Windows, str]:
    """The trace of each row, -1 for an empty cell; all traces, in the file's unit; and which windows were dropped."""
    traces: dict[str, Pairs]
    mistakes: dict[str, str] = {}
    dropped = ""
    if config.windows_file is not None:
        found, dropped = reading.windows_by_id(config.windows_file, config.on_bad_row)
        traces = dict(found)
        ids = list(map(str, cells))
    elif not config.file.endswith(".json"):
        raise ValueError("columns.availability has the ids of windows; give windows_file, which has the windows")
    else:
        traces, ids = {}, [f"{row}" for row in range(len(cells))]
        for id, cell in zip(ids, cells, strict=True):
            try:
                traces[id] = () if _is_empty(cell) else tuple(reading.pairs_in(cell))
            except ValueError as error:
                traces[id], mistakes[id] = (), str(error)
    for id, pairs in traces.items():
        if id not in mistakes and (mistake := _mistake(pairs, config.repeat_after)):
            mistakes[id] = mistake
    places = {id: place for place, id in enumerate(traces) if id not in mistakes}
    trace = np.fromiter((places.get(id, -1) for id in ids), dtype=np.intp, count=len(ids))
    for row in np.flatnonzero(trace < 0).tolist():
        if not _is_empty(cells[row]):
            bad.add(row, mistakes.get(ids[row]) or f"{config.windows_file!r} has no windows with the id {ids[row]!r}")
    period = math.inf if config.repeat_after is None else config.repeat_after
    whole = [sorted(pair for pair in pairs if pair[1] > pair[0]) for pairs in traces.values()]
    return trace, Windows.of(whole, [period] * len(traces)), dropped


def _is_empty(cell: object) -> bool:
    return cell is None or cell == ""


def _mistake(pairs: Pairs, period: float | None) -> str:
    late = period is not None and max((down for _, down in pairs), default=0.0) > period
    return mistake_in(pairs) or (f"a window ends after repeat_after, {period:g}" if late else "")
