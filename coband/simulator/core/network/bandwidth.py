"""Bandwidths: numbers, token buckets, and recorded links."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left
from functools import lru_cache
from typing import Annotated, ClassVar, Literal, Protocol

import numpy as np
from pydantic import Field, model_validator

from coband.simulator.arrays import IntArray
from coband.simulator.core.config import RATE, SECONDS, Config, TimeUnit, Unit, existing, read_anew
from coband.simulator.core.nodes.node import Address
from coband.simulator.core.reading import DataError, numbers_in
from coband.simulator.plugins.kinds import Kinds

PACKET_BITS = 12_000
"""Bits of a packet of 1,500 bytes, which recorded links count."""


class Passage(Protocol):
    """A part of the way with a finite bandwidth."""

    def leave(self, arrival: float, scalars: int, bits: int) -> float:
        """Time at which a copy that arrives at ``arrival`` has passed; called in order of arrival."""


class BaseBandwidth(Config):
    """Base of bandwidths that are more than a number."""

    by_link: ClassVar[bool] = False
    """Whether links differ."""

    @property
    def clock_unit(self) -> TimeUnit | None:
        """What it takes a unit of the simulation's clock for; None: it does not say."""
        return None

    @abstractmethod
    def stage(self) -> Passage:
        """One link, or the server's capacity, at the start of a run."""

    def between(self, source: Address, destination: Address) -> float | BaseBandwidth | None:
        """The bandwidth of the link from one node to another: the same for all."""
        return self


class Rate(BaseBandwidth):
    """A bandwidth with a token bucket: tokens come at the rate and are kept up to ``burst``; a copy takes its size."""

    scalars: Annotated[float | None, RATE] = Field(default=None, gt=0)
    """Scalars per time unit; give either this or ``bits``."""
    bits: Annotated[float | None, Unit("bits per unit of simulated time")] = Field(default=None, gt=0)
    """Bits per time unit; give either this or ``scalars``."""
    burst: Annotated[float, Unit("scalars, or bits with `bits`")] = Field(default=0.0, ge=0)
    """Scalars (or bits) that pass at once after a rest; 0: every copy takes its time."""

    @model_validator(mode="after")
    def _one_unit(self) -> Rate:
        if (self.scalars is None) == (self.bits is None):
            raise ValueError("give exactly one of scalars, bits")
        return self

    def stage(self) -> Passage:
        """A token bucket that is full."""
        return Stage(self)


class Packets(BaseBandwidth):
    """Replays a recorded link: a text ``file`` in the format of Mahimahi (Netravali et al. 2015), one line for each
    time, in milliseconds, at which a packet of 1,500 bytes can pass; it starts again at its last time.

    A message takes ceil(bits / 12,000) packets, one at least, and leaves with its last one; messages pass in the order
    in which they came. What was possible while nothing waited is lost.
    """

    kind: Literal["packets"]
    file: str
    """The times, in ascending order, relative to the scenario."""
    time_unit: TimeUnit = "seconds"
    """What a unit of the simulation's clock stands for."""

    @model_validator(mode="after")
    def _readable(self) -> Packets:
        read_anew(_read_opportunities, self.file)
        _read_opportunities(self.file)
        return self

    @property
    def clock_unit(self) -> TimeUnit:
        return self.time_unit

    @property
    def opportunities(self) -> tuple[IntArray, float]:
        """(times in milliseconds, milliseconds in a unit of simulated time)."""
        return _read_opportunities(self.file), 1e3 * SECONDS[self.time_unit]

    def stage(self) -> Passage:
        """The link at the beginning of the recording."""
        return PacketStage(*self.opportunities)


@lru_cache(maxsize=16)
def _read_opportunities(file: str) -> IntArray:
    path = existing(file, "a text file with one time in milliseconds per line")
    rows = numbers_in(path)
    for line, row in rows:
        if len(row) > 1 or not row[0].is_integer() or abs(row[0]) > 2**53:
            raise DataError("the file must hold one whole number of milliseconds per line", path, line)
    times = np.array([row[0] for _, row in rows], dtype=np.int64)
    if not times.size or times[0] < 0 or times[-1] == 0:
        raise DataError("the file must hold times >= 0 in milliseconds, and end with one > 0", path)
    for place in np.flatnonzero(np.diff(times) < 0)[:1].tolist():
        text = f"the time {times[place + 1]} is before that of the line above"
        raise DataError(text, path, rows[place + 1][0])
    return times


class PacketStage:
    """A part of the way whose packets pass at recorded times, one message after the other.

    Args:
        times: in milliseconds, in order; they start again at the last one.
        scale: milliseconds in a unit of simulated time.
    """

    __slots__ = ("_next", "_scale", "_times")

    def __init__(self, times: IntArray, scale: float) -> None:
        self._times, self._scale, self._next = times, scale, 0

    def _at(self, number: int) -> float:
        cycle, place = divmod(number, len(self._times))
        return float(cycle * int(self._times[-1]) + int(self._times[place])) / self._scale

    def leave(self, arrival: float, scalars: int, bits: int) -> float:
        """Time at which a message that arrives at ``arrival`` has passed; call in order of arrival."""
        beyond = (int(arrival * self._scale / int(self._times[-1])) + 2) * len(self._times)
        first = bisect_left(range(beyond), arrival, lo=self._next, key=self._at) if beyond > self._next else self._next
        self._next = first + max(1, -(-bits // PACKET_BITS))
        return max(arrival, self._at(self._next - 1))


class Stage:
    """A part of the way with a finite bandwidth: one copy at a time, in order of arrival."""

    __slots__ = ("_bits", "_free_at", "_head_start", "_rate")

    def __init__(self, bandwidth: float | Rate) -> None:
        rate = bandwidth if isinstance(bandwidth, Rate) else Rate(scalars=bandwidth)
        self._bits = rate.bits is not None
        self._rate = float(rate.bits or rate.scalars or 0.0)
        self._head_start = rate.burst / self._rate
        self._free_at = 0.0

    def leave(self, arrival: float, scalars: int, bits: int) -> float:
        """Time at which a copy that arrives at ``arrival`` has passed; call in order of arrival.

        F = max(arrival, F) + size / rate is when a bucket with the burst b would be full again; the copy passes when
        its tokens are there, at max(arrival, F - b / rate).
        """
        start = max(arrival, self._free_at)
        self._free_at = start + (bits if self._bits else scalars) / self._rate
        return self._free_at if not self._head_start else max(arrival, self._free_at - self._head_start)


BANDWIDTHS: Kinds[type[BaseBandwidth]] = Kinds.of("bandwidths", BaseBandwidth, (Packets,))
"""The bandwidths that scenarios can name in addition to numbers and `Rate`, which has no kind."""
Bandwidth = Annotated[float, Field(gt=0)] | Annotated[BaseBandwidth, BANDWIDTHS.field(default=Rate)]


def stage_of(bandwidth: float | BaseBandwidth) -> Passage:
    """A part of the way with that bandwidth."""
    return bandwidth.stage() if isinstance(bandwidth, BaseBandwidth) else Stage(bandwidth)
