"""A fleet: one row per device, in simulated time units and bits."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, pairwise, product

import numpy as np

from coband.simulator.arrays import FloatArray, IntArray

BATTERY = ("battery", "capacity")
"""What a device may say of its battery: the share of its capacity that is there at first, and its capacity."""
NUMBERS = ("compute", "speed", "uplink", "downlink", "latency", *BATTERY)
"""What a device may have as one number: time of a turn, speed, bits per time unit up and down, time on the way, and of
its battery the share that is there at first, and the joules that it holds."""
AVAILABILITY = "availability"
SETTABLE = (*NUMBERS, AVAILABILITY)
"""What a device can say of its agent."""
Pairs = Sequence[tuple[float, float]]
"""(time of coming up, time of going down), in order."""


@dataclass(frozen=True)
class Windows:
    """When devices are up: traces, each of which any number of devices may follow.

    Attributes:
        offsets: trace t has the windows ``offsets[t]`` to ``offsets[t + 1]`` (exclusive), in order of time.
        up: when windows begin.
        down: when they end.
        period: of each trace, after which it starts again; inf: it does not, and the device stays down.
    """

    offsets: IntArray
    up: FloatArray
    down: FloatArray
    period: FloatArray

    @staticmethod
    def of(traces: Sequence[Pairs], periods: Sequence[float]) -> Windows:
        offsets = np.cumsum([0, *map(len, traces)])
        pairs = np.array([pair for trace in traces for pair in trace], dtype=np.float64).reshape(-1, 2)
        return Windows(offsets, pairs[:, 0], pairs[:, 1], np.asarray(periods, dtype=np.float64))

    def __len__(self) -> int:
        return len(self.period)

    def scaled(self, factor: float) -> Windows:
        """The same in another unit of time."""
        return Windows(self.offsets, self.up * factor, self.down * factor, self.period * factor)

    def joined(self, other: Windows) -> Windows:
        """These traces, and then those of others."""
        offsets = np.concatenate([self.offsets, other.offsets[1:] + self.offsets[-1]])
        columns = ((getattr(self, name), getattr(other, name)) for name in ("up", "down", "period"))
        return Windows(offsets, *map(np.concatenate, columns))

    def pairs(self, trace: int) -> Pairs:
        """The windows of one trace."""
        part = slice(self.offsets[trace], self.offsets[trace + 1])
        return list(zip(self.up[part].tolist(), self.down[part].tolist(), strict=True))

    def absences(self, trace: int) -> Iterator[tuple[float, float]]:
        """(time of going down, time of coming up) again and again, in order; inf for never."""
        pairs, period, now = self.pairs(trace), float(self.period[trace]), 0.0
        if sum(down - up for up, down in pairs) >= period:
            return  # never down
        for cycle in count() if pairs and math.isfinite(period) else range(1):
            start = cycle * period if cycle else 0.0
            for up, down in pairs:
                if start + up > now:
                    yield now, start + up
                now = start + down
        if math.isfinite(now):
            yield now, math.inf

    def leaves(self, trace: int) -> float | None:
        """When it goes down for good; inf: never; None: it is never up."""
        pairs = self.pairs(trace)
        return (math.inf if math.isfinite(self.period[trace]) else pairs[-1][1]) if pairs else None

    def shares(self) -> FloatArray:
        """Share of its period (of the time to its last window, without one) for which each trace is up; 1 where the
        last one does not end."""
        ended = np.where(np.isfinite(self.down), self.down, self.up)
        lengths = np.concatenate([[0.0], np.cumsum(ended - self.up)])
        ends = np.concatenate([self.down, [1.0]])[np.maximum(self.offsets[1:] - 1, 0)]
        whole = np.where(np.isfinite(self.period), self.period, np.maximum(ends, np.finfo(float).tiny))
        shares: FloatArray = (lengths[self.offsets[1:]] - lengths[self.offsets[:-1]]) / whole
        shares[np.isinf(ends) & (np.diff(self.offsets) > 0)] = 1.0
        return shares

    def by_hour(self, day: float, hours: int = 24) -> FloatArray:
        """Share of each hour of the day for which each trace is up, shape (traces, hours); ``day``: its length.

        A trace that repeats counts for as many periods as a day needs; another one up to the end of the day of its last
        window, or for good.
        """
        up = np.zeros((len(self), hours))
        hour = day / hours
        for trace in range(len(self)):
            pairs, period = self.pairs(trace), float(self.period[trace])
            last = pairs[-1][1] if pairs else day
            if math.isinf(last):
                up[trace] = 1.0
                continue
            cycles = math.ceil(day / period) or 1
            whole = cycles * period if math.isfinite(period) else math.ceil(last / day) * day
            for cycle, (begin, end) in product(range(cycles), pairs):
                shift = cycle * period if cycle else 0.0
                for number in range(int((begin + shift) // hour), math.ceil((end + shift) / hour)):
                    overlap = min(end + shift, (number + 1) * hour) - max(begin + shift, number * hour)
                    up[trace, number % hours] += max(overlap, 0.0)
            up[trace] /= whole // day * hour + np.clip(whole % day - np.arange(hours) * hour, 0.0, hour)
        return up


def mistake_in(pairs: Pairs) -> str:
    """What is wrong with the windows of a device, in words; empty if nothing is."""
    for up, down in pairs:
        if not (0 <= up < math.inf) or math.isnan(down):
            return f"a window from {up:g} to {down:g} does not lie in time"
        if down < up:
            return f"a window ends at {down:g}, before it begins at {up:g}"
    for (_, earlier), (later, _) in pairwise(sorted(pairs)):
        if later < earlier:
            return f"windows overlap at {later:g}"
    return "" if any(down > up for up, down in pairs) else "has no window of any length, so that it is never up"


def in_period(pairs: Pairs, period: float) -> Pairs:
    """Windows at times modulo a period, in order; those of no length are left out, those over its end are cut, and
    those that then overlap are one."""
    found, united = list[tuple[float, float]](), list[tuple[float, float]]()
    for up, down in pairs:
        begin = up % period
        end = begin + down - up
        found += [(begin, min(end, period))] + ([(0.0, min(end - period, period))] if end > period else [])
    for up, down in sorted((up, down) for up, down in found if down > up):
        if united and up < united[-1][1]:
            up, down = united[-1][0], max(down, united.pop()[1])
        united.append((up, down))
    return united


@dataclass(frozen=True)
class Fleet:
    """A table of devices, one row for each.

    Attributes:
        numbers: columns of `NUMBERS`, shape (count,); nan where a device does not say.
        trace: of each device, the trace of ``windows`` that it follows; -1 where it does not say.
        windows: when devices are up; None: no device says.
        names: what devices are called; empty: no device says.
    """

    count: int
    numbers: Mapping[str, FloatArray]
    trace: IntArray | None = None
    windows: Windows | None = None
    names: Sequence[str] = ()

    def take(self, rows: IntArray) -> Fleet:
        """Some rows, as often as they are named."""
        numbers = {name: values[rows] for name, values in self.numbers.items()}
        names = [self.names[row] for row in rows] if self.names else ()
        return Fleet(len(rows), numbers, None if self.trace is None else self.trace[rows], self.windows, names)

    def only(self, names: frozenset[str]) -> Fleet:
        kept = {name: values for name, values in self.numbers.items() if name in names}
        windows = (self.trace, self.windows) if AVAILABILITY in names else (None, None)
        return Fleet(self.count, kept, *windows, self.names)

    def beside(self, other: Fleet) -> Fleet:
        """The columns of both, which have equally many rows."""
        numbers = {**self.numbers, **other.numbers}
        return replace(other if self.windows is None else self, numbers=numbers)

    @property
    def shares(self) -> FloatArray:
        """Share of time for which each device is up; nan where it does not say."""
        assert self.windows is not None
        assert self.trace is not None
        shares: FloatArray = np.concatenate([self.windows.shares(), [np.nan]])[self.trace]
        return shares

    def by_hour(self, day: float) -> FloatArray:
        """Share of devices that are up, among those that say so, by hour of the day; nan where none says."""
        assert self.windows is not None
        assert self.trace is not None
        devices = np.bincount(self.trace[self.trace >= 0], minlength=len(self.windows))
        up: FloatArray = devices @ self.windows.by_hour(day)
        hours: FloatArray = up / devices.sum() if devices.any() else np.full_like(up, np.nan)
        return hours
