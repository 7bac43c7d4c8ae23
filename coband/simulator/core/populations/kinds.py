"""The populations that scenarios can name: tables, presets whose numbers have sources, and measurements of phones."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal

import numpy as np
import yaml
from pydantic import ConfigDict, Field, TypeAdapter, model_validator

from coband.simulator.arrays import FloatArray
from coband.simulator.core.config import SECONDS, existing
from coband.simulator.core.populations.populations import (
    FASTEST,
    LONGEST,
    BasePopulation,
    FilePopulation,
    OnBadRow,
    Rows,
    in_simulated_units,
    modified_at,
)
from coband.simulator.core.populations.reading import BadRows, check_range
from coband.simulator.core.populations.table import AVAILABILITY, Fleet, Windows, in_period, mistake_in
from coband.simulator.plugins.kinds import Kinds

TRACES = 500
"""Different traces of availability in one draw; devices share them."""
PERIOD = 7 * 86400.0
"""Seconds after which they start again."""


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
        """Return the shares of the classes among all devices."""
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


THERE = "there or in the directory of downloads ($COBAND_DATA)"
"""Where files that are published are looked for, by those who read scenarios."""


class Flash(BasePopulation):
    """Phones of FLASH (Yang et al. 2021) as FLHetBench has them (Zhang et al. 2024): three measurements of different
    phones, so that each agent draws from each of the files by itself."""

    kind: Literal["flash"]
    availability_file: str | None = None
    """JSON: id -> trace_start, trace_end and ready_time, the windows in which a phone is idle, charging and on wifi,
    in seconds. A trace starts again at its end; days begin at the same time for all."""
    latency_file: str | None = None
    """JSON: a list with the time in milliseconds of a training step on models of phones, the turn of an agent."""
    speed_file: str | None = None
    """JSON: a list of records of MobiPerf, with TCP downloads in kbit/s, whose mean is the downlink."""
    model: Literal["ResNet", "Vit"] = "ResNet"
    """Whose training step."""
    steps: float = Field(default=1.0, gt=0)
    """Training steps that a turn takes."""
    uplink_share: float | None = Field(default=None, gt=0)
    """The uplink as a share of the downlink, which alone was measured; null: the bandwidth of the scenario."""
    on_bad_row: OnBadRow = "refuse"
    """Rows that cannot be true: refuse them, or drop them and say which."""

    def _parts(self) -> Mapping[str, tuple[Fleet, str]]:
        """The rows of each file, and which were dropped."""
        files = {"availability": self.availability_file, "latency": self.latency_file, "speed": self.speed_file}
        given = {key: file for key, file in files.items() if file is not None}
        return {key: _part(self, key, file, modified_at(file)) for key, file in given.items()}

    @property
    def offers(self) -> frozenset[str]:
        names = {name for fleet in self._tables() for name in fleet.numbers}
        return frozenset(names | ({AVAILABILITY} if self.availability_file is not None else set()))

    @property
    def dropped(self) -> str:
        return "; ".join(filter(None, (text for _, text in self._parts().values())))

    def _tables(self) -> Sequence[Fleet]:
        return [fleet for fleet, _ in self._parts().values()]

    def draw(self, count: int, rng: np.random.Generator) -> Fleet:
        found = Fleet(count, {})
        for fleet in self._tables():
            found = fleet.take(rng.integers(fleet.count, size=count)).beside(found)
        return found

    @model_validator(mode="after")
    def _readable(self) -> Flash:
        if not self._parts():
            raise ValueError("give at least one of availability_file, latency_file, speed_file")
        return self


@lru_cache(maxsize=16)
def _part(config: Flash, key: str, file: str, modified: int) -> tuple[Fleet, str]:
    """The devices of one file."""
    try:
        rows = json.loads(existing(file, f"a file of FLASH or FLHetBench, {THERE}").read_bytes())
        bad, unit = BadRows(file, len(rows)), SECONDS[config.time_unit]
        readers: Mapping[str, Callable[..., Fleet]] = {"availability": _ready, "latency": _steps, "speed": _downloads}
        fleet = readers[key](config, rows, bad, unit)
    except (TypeError, KeyError, AttributeError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"file {file!r} does not have the format of {key}_file ({error!r})") from None
    bad.settle(config.on_bad_row)
    return fleet.take(bad.kept), bad.dropped


def _ready(config: Flash, rows: Mapping[str, Mapping[str, Any]], bad: BadRows, unit: float) -> Fleet:
    traces, periods = [], []
    for place, (id, row) in enumerate(rows.items()):
        pairs, start, end = row["ready_time"], row["trace_start"], row["trace_end"]
        mistake = "has no trace" if start is None or end is None or not end > start else mistake_in(pairs)
        if mistake:
            bad.add(place, f"phone {id}: {mistake}")
        period = 1.0 if mistake else float(end - start)
        traces.append([] if mistake else in_period(pairs, period))
        periods.append(period)
    windows = Windows.of(traces, periods).scaled(1 / unit)
    return Fleet(len(traces), {}, np.arange(len(traces)), windows)


def _steps(config: Flash, rows: list[Mapping[str, Any]], bad: BadRows, unit: float) -> Fleet:
    column = f"{config.model} Latency"
    times = np.array([math.nan if row.get(column) is None else row[column] for row in rows], dtype=np.float64)
    check_range(times / 1e3, times, column, LONGEST, "seconds", bad)
    for place in np.flatnonzero(np.isnan(times)).tolist():
        bad.add(place, f"has no {column}")
    return Fleet(len(rows), in_simulated_units({"compute": times / 1e3 * config.steps}, unit))


def _downloads(config: Flash, rows: list[Mapping[str, Any]], bad: BadRows, unit: float) -> Fleet:
    means = np.array([np.mean(row["tcp_speed_results"] or [0.0]) for row in rows], dtype=np.float64)
    check_range(means * 1e3, means, "the mean of tcp_speed_results", FASTEST, "bits per second", bad)
    numbers = {"downlink": means * 1e3}
    if config.uplink_share is not None:
        numbers["uplink"] = numbers["downlink"] * config.uplink_share
    return Fleet(len(rows), in_simulated_units(numbers, unit))


class FedScale(Rows):
    """Phones of FedScale (Lai et al. 2022), from its two pickles, which are read without running what they may hold."""

    kind: Literal["fedscale"]
    device_file: str | None = None
    """Pickle: id -> computation (milliseconds for a sample) and communication (kbit/s, both ways)."""
    behaviour_file: str | None = None
    """Pickle: id -> active and inactive (when a phone comes and goes), and finish_time, after which that starts again,
    in seconds. With both files, ids that are in both make a row."""
    samples: float = Field(default=1.0, gt=0)
    """Samples that a turn takes; FedScale counts three times the time of a sample for training on it."""

    def read(self) -> tuple[Fleet, FloatArray | None, str]:
        files = tuple(map(modified_at, (self.device_file, self.behaviour_file)))
        return _pickled(self.model_copy(update={"order": "sampled", "only": None}), files)


class _Plain(pickle.Unpickler):
    """Makes dict, list, tuple, numbers and strings, none of which needs a name to be looked up."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")


def unpickle(file: str) -> Any:
    """Return what a pickle holds, only dicts, lists, tuples, sets, numbers, strings and bytes; it runs no code.

    Raises:
        ValueError: it is not such a pickle, or asks for anything else.
    """
    stream: BinaryIO
    with existing(file, f"a pickle of FedScale, {THERE}").open("rb") as stream:
        try:
            return _Plain(stream).load()
        except Exception as error:  # a damaged pickle may raise anything
            text = f"file {file!r} is not a pickle of only numbers and text ({error})"
            raise ValueError(f"{text}; pickles that name classes or functions can run code and are refused") from None


@lru_cache(maxsize=4)
def _pickled(config: FedScale, modified: tuple[int, ...]) -> tuple[Fleet, None, str]:
    given = [file for file in (config.device_file, config.behaviour_file) if file is not None]
    if not given:
        raise ValueError("give device_file, behaviour_file or both")
    tables = [unpickle(file) for file in given]
    for file, table in zip(given, tables, strict=True):
        if not (isinstance(table, dict) and all(isinstance(row, dict) for row in table.values())):
            raise ValueError(f"file {file!r} must hold a dict of dicts: id -> what is known of the phone")
    ids = [id for id in tables[0] if all(id in table for table in tables)]
    bad, unit = BadRows(" and ".join(given), len(ids)), SECONDS[config.time_unit]
    if not ids:
        raise ValueError(f"files {bad.file!r} have no phone in common")
    fleet = Fleet(len(ids), {})
    try:
        if config.device_file is not None:
            fleet = _capacities(config, [tables[0][id] for id in ids], bad, unit)
        if config.behaviour_file is not None:
            fleet = _behaviour([tables[-1][id] for id in ids], bad, unit).beside(fleet)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"file {bad.file!r} does not have FedScale's format ({error!r})") from None
    bad.settle(config.on_bad_row)
    return fleet.take(bad.kept), None, bad.dropped


def _capacities(config: FedScale, rows: list[Mapping[str, Any]], bad: BadRows, unit: float) -> Fleet:
    sample, rate = (np.array([row[key] for row in rows], dtype=np.float64) for key in ("computation", "communication"))
    check_range(sample / 1e3, sample, "computation", LONGEST, "seconds", bad)
    check_range(rate * 1e3, rate, "communication", FASTEST, "bits per second", bad)
    numbers = {"compute": 3.0 * sample / 1e3 * config.samples, "uplink": rate * 1e3, "downlink": rate * 1e3}
    return Fleet(len(rows), in_simulated_units(numbers, unit))


def _behaviour(rows: list[Mapping[str, Any]], bad: BadRows, unit: float) -> Fleet:
    traces, periods = [], []
    for place, row in enumerate(rows):
        pairs = [(float(up), float(down)) for up, down in zip(row["active"], row["inactive"], strict=False)]
        period = float(row["finish_time"])
        mistake = "finish_time is 0" if not period > 0 else mistake_in(pairs)
        if not mistake and len(row["active"]) != len(row["inactive"]):
            mistake = f"has {len(row['active'])} times active and {len(row['inactive'])} inactive"
        if mistake:
            bad.add(place, mistake)
        traces.append([] if mistake else in_period(pairs, period))
        periods.append(1.0 if mistake else period)
    return Fleet(len(rows), {}, np.arange(len(rows)), Windows.of(traces, periods).scaled(1 / unit))


POPULATIONS: Kinds[type[BasePopulation]] = Kinds.of(
    "populations", BasePopulation, (FilePopulation, Flash, FedScale, Preset)
)
"""Where the devices of agents can come from."""
Population = Annotated[BasePopulation, POPULATIONS.field()]
