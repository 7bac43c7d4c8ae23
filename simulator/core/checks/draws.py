"""Draws of links, replayed: what a link does to its n-th copy follows from the streams at its address alone.

A stream's address is (network, agent, purpose and way). Every loss, doubling and latency of a run is drawn once more
from a fresh stream at the address that the documentation gives, in plain loops; and no two links may share an address.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from coband.simulator.core.audit.invariants import InvariantViolation
from coband.simulator.core.network.bandwidth import PACKET_BITS, BaseBandwidth, Packets, Rate
from coband.simulator.core.network.links import LinkModel, LinkRule
from coband.simulator.core.network.loss import BaseLoss, GilbertElliott
from coband.simulator.core.network.network import NetworkConfig
from coband.simulator.core.network.partitions import Partition
from coband.simulator.core.nodes.node import SERVER, Address
from coband.simulator.core.packet import Packet
from coband.simulator.core.randomness.distributions import BaseDistribution, Constant
from coband.simulator.core.randomness.streams import Streams

ONCE = ("network", "compute", "faults")
"""Roles of streams that only one part of a run draws from; nodes may replay coins, and turns are counted beforehand."""
Opened = dict[tuple[str, int, str], np.random.Generator]
KEYS = ("latency", "bandwidth", "loss", "duplicate", "reorder")


class RecordedStreams(Streams):
    """Streams that remember which of them were opened.

    Attributes:
        opened: by address.
    """

    def __init__(self, seed: int, replication: int) -> None:
        super().__init__(seed, replication)
        self.opened: Opened = {}

    def __call__(self, role: str, entity: int, purpose: str) -> np.random.Generator:
        """A fresh generator; nobody else may have one of the same name."""
        address = role, entity, purpose
        if role in ONCE and address in self.opened:
            raise InvariantViolation(f"two parts of the run draw from one stream, {address}")
        made = self.opened[address] = super().__call__(role, entity, purpose)
        return made


class Replay:
    """What one link must do, drawn anew.

    Args:
        model: latency, loss, duplication and order.
        stream: a fresh stream for a purpose.
        way: up, down, or to an agent.
        heals: from when on nothing is lost or doubled.

    Attributes:
        states: what the streams of losses and doublings must have come to, by purpose.
    """

    def __init__(self, model: LinkModel, stream: Callable[[str], np.random.Generator], way: str, heals: float) -> None:
        self._heals, self._fifo, self._latest = heals, model.reorder == "fifo", 0.0
        self._pipe = Pipe(model.bandwidth)
        self._latency = _values(model.latency, stream(f"latency {way}"))
        self._again = _values(model.latency, stream(f"duplicate latency {way}"))
        loss, twice = stream(f"loss {way}"), stream(f"duplicate {way}")
        self._losses, self._doublings = _coins(model.loss, loss), _coins(model.duplicate, twice)
        self.streams = {f"loss {way}": loss, f"duplicate {way}": twice}

    def leaves(self, start: float, scalars: int, bits: int) -> float:
        """When a copy that enters the link at ``start`` must have left its sender."""
        return self._pipe.passed(start, scalars, bits)

    def copy(self, start: float, left: float) -> tuple[float, ...]:
        """When a copy that enters the link at ``start`` and leaves its sender at ``left`` must arrive."""
        arrival, lost, twice = left + next(self._latency), next(self._losses), next(self._doublings)
        if lost and start < self._heals:
            return ()
        arrivals = [arrival, left + next(self._again)] if twice and start < self._heals else [arrival]
        if self._fifo:
            for place, time in enumerate(arrivals):
                arrivals[place] = self._latest = max(time, self._latest)
        return tuple(arrivals)

    def acknowledgement(self, now: float) -> float:
        """When an acknowledgement that is sent now must arrive; inf: it must be lost, and no latency is drawn."""
        return math.inf if next(self._losses) and now < self._heals else now + next(self._latency)


class LinkDraws:
    """Compares what links do with replays."""

    def __init__(self, recorded: RecordedStreams, config: NetworkConfig) -> None:
        self._recorded, self._config = recorded, config
        self._heals = math.inf if config.heals is None else config.heals
        self._fresh = Streams(recorded.seed, recorded.replication)
        self._replays: dict[tuple[Address, Address], Replay] = {}

    def _replay(self, source: Address, destination: Address) -> Replay:
        replay = self._replays.get((source, destination))
        if replay is None:
            entity, way = address_of(source, destination)
            model = self._model(source, destination)
            replay = Replay(model, lambda purpose: self._fresh("network", entity, purpose), way, self._heals)
            self._replays[source, destination] = replay
        return replay

    def carried(self, packet: Packet, now: float, start: float, left: float, arrivals: tuple[float, ...]) -> None:
        """A link has taken a copy that was sent now and enters it at ``start``."""
        way = _way(*packet.pair)
        if self._parted(*packet.pair, now):
            raise InvariantViolation(f"a {packet.message.kind!r} went {way} through a partition", packet.send)
        replay, scalars = self._replay(packet.source, packet.destination), packet.message.scalars
        coded = packet.message.field_bits
        bits = scalars * self._config.scalar_bits if coded is None else sum(coded)
        leaves = replay.leaves(start, scalars, bits + self._config.header_bits)
        if not math.isclose(left, leaves, rel_tol=1e-9):
            text = f"a {packet.message.kind!r} {way} left at {left:g}, by its size and bandwidth at {leaves:g}"
            raise InvariantViolation(text, packet.send)
        expected = replay.copy(start, left)
        if arrivals != expected or left < start:
            text = (
                f"a {packet.message.kind!r} {_fate(arrivals)}, but the streams of the link {_way(*packet.pair)} say: "
            )
            raise InvariantViolation(text + _fate(expected), packet.send)

    def acknowledged(self, packet: Packet, now: float, arrival: float) -> None:
        """A link has taken an acknowledgement of a packet; inf: it was lost."""
        expected = self._replay(packet.destination, packet.source).acknowledgement(now)
        if arrival != expected:
            way = _way(packet.destination, packet.source)
            found, wanted = (_fate(() if math.isinf(time) else (time,)) for time in (arrival, expected))
            text = f"an acknowledgement {found}, but the streams of the link {way} say: {wanted}"
            raise InvariantViolation(text, packet.send)

    def _model(self, source: Address, destination: Address) -> LinkModel:
        config = self._config
        found = {key: getattr(config, key) for key in KEYS}
        found["latency"] = config.latency.between(source, destination)
        for rule in config.links:
            if _speaks_of(rule, source, destination):
                found.update({key: value for key in KEYS if (value := getattr(rule, key)) is not None})
        if isinstance(bandwidth := found["bandwidth"], BaseBandwidth):
            found["bandwidth"] = bandwidth.between(source, destination)
        return LinkModel.model_construct(**found)

    def _parted(self, source: Address, destination: Address, now: float) -> bool:
        for partition in self._config.partitions:
            if not isinstance(partition, Partition):
                if now < self._heals and partition.cuts(source, destination, now):
                    return True
            elif partition.start <= now < min(partition.end, self._heals):
                sides = [
                    next((place for place, group in enumerate(partition.groups) if node in group), math.inf)
                    for node in (source, destination)
                ]
                if sides[0] < sides[1] or (sides[0] > sides[1] and not partition.one_way):
                    return True
        return False

    def at_end(self) -> None:
        """Nobody has drawn from the streams of a link but for its copies."""
        for (source, destination), replay in self._replays.items():
            entity, _ = address_of(source, destination)
            for purpose, stream in replay.streams.items():
                opened = self._recorded.opened.get(("network", entity, purpose))
                if opened is not None and opened.bit_generator.state != stream.bit_generator.state:
                    text = (
                        f"the stream of {purpose!r} of agent {entity} was drawn from more or less often than the link"
                    )
                    raise InvariantViolation(f"{text} {_way(source, destination)} carried copies")


def address_of(source: Address, destination: Address) -> tuple[int, str]:
    """The agent and the way that name the streams of a link."""
    if source == SERVER:
        return destination, "down"
    return source, "up" if destination == SERVER else f"to {destination}"


def _values(latency: BaseDistribution, stream: np.random.Generator) -> Iterator[float]:
    while True:
        yield latency.value if isinstance(latency, Constant) else float(latency.draw(stream, 1)[0])


def _coins(chance: float | BaseLoss, stream: np.random.Generator) -> Iterator[bool]:
    """Whether each copy in turn is lost (or doubled); no draws where that never happens."""
    if isinstance(chance, BaseLoss) and not isinstance(chance, GilbertElliott):
        process = chance.process(stream)  # of another package: the same once more
        while True:
            yield process()
    if not isinstance(chance, GilbertElliott):
        while True:
            yield chance > 0 and bool(stream.random() < chance)
    bad = stream.random() < chance.p / (chance.p + chance.r)
    while True:
        lost, changed = stream.random(), stream.random()
        yield bool(lost >= (chance.h if bad else chance.k))
        if changed < (chance.r if bad else chance.p):
            bad = not bad


def _way(source: Address, destination: Address) -> str:
    return f"from node {source} to node {destination}"


def _fate(arrivals: tuple[float, ...]) -> str:
    return f"arrives at {' and '.join(f'{time:g}' for time in arrivals)}" if arrivals else "is lost"


def _speaks_of(rule: LinkRule, source: Address, destination: Address) -> bool:
    """A rule is about what goes up from its agents, what goes down to them, or both; among agents, about both ends."""
    ends = [source] if rule.direction != "down" else []
    ends += [destination] if rule.direction != "up" else []
    return any(end != SERVER and (rule.agents == "all" or end in rule.agents) for end in ends)


class Pipe:
    """When copies have passed a bandwidth: each one puts off by size / rate the time when the bucket is full again."""

    def __init__(self, bandwidth: float | BaseBandwidth | None) -> None:
        self._rate = Rate(scalars=bandwidth) if isinstance(bandwidth, int | float) else bandwidth
        self._other = None if self._rate is None or isinstance(self._rate, Rate | Packets) else self._rate.stage()
        self._packets = _Opportunities(self._rate) if isinstance(self._rate, Packets) else None
        self._full = 0.0

    def passed(self, start: float, scalars: int, bits: int) -> float:
        """When a copy that comes at ``start`` has passed."""
        if self._other is not None:  # of another package: the same once more
            return self._other.leave(start, scalars, bits)
        if self._packets is not None:
            return max(start, *(self._packets.next(start) for _ in range(max(1, math.ceil(bits / PACKET_BITS)))))
        if not isinstance(self._rate, Rate):
            return start
        size, speed = (scalars, self._rate.scalars) if self._rate.scalars is not None else (bits, self._rate.bits)
        assert speed is not None
        self._full = max(start, self._full) + size / speed
        return max(start, self._full - self._rate.burst / speed)


class _Opportunities:
    """The times at which a packet can pass, one after the other."""

    def __init__(self, recorded: Packets) -> None:
        times, self._scale = recorded.opportunities
        self._listed: list[int] = times.tolist()
        self._period, self._start, self._place = self._listed[-1], 0, 0

    def next(self, earliest: float) -> float:
        """The first that is left and not before ``earliest``; periods that end long before it are not looked at."""
        passed = (int(earliest * self._scale / self._period) - 1) * self._period
        if passed > self._start:
            self._start, self._place = passed, 0
        while True:
            time = (self._start + self._listed[self._place]) / self._scale
            self._place += 1
            if self._place == len(self._listed):
                self._start, self._place = self._start + self._period, 0
            if time >= earliest:
                return time
