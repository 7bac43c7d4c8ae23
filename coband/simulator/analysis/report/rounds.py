"""The critical path of communication rounds: the causal chain that determines when each round ends.

A round consists of the events with its round number. It ends with its last event. The chain leads back from there: from
each delivery to its send, and from each send to the delivery that caused it (if the server waits for all agents, the
last of their deliveries). It stops at the trigger that requested the round, at the start of the turn that began it, or
at an event of another round. The round has waited for the agent with the most time on the chain.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from coband.simulator.analysis.report.data import NONE, SERVER, Events
from coband.simulator.arrays import IntArray
from coband.simulator.experiments.store.files import StoreError

AT_NODE, TRANSFER, RETRANSMISSION = "at node", "transfer", "retransmission"


class Step(NamedTuple):
    """An interval of time on a causal chain.

    Attributes:
        start, end: simulated times.
        what: :data:`AT_NODE`, :data:`TRANSFER` or :data:`RETRANSMISSION`.
        node: the node; for a message in flight, its sender.
    """

    start: float
    end: float
    what: str
    node: int


class Chains:
    """The causal chains in the events of one job.

    A message is in flight from its send to its delivery; this includes links, queues, and waiting for earlier messages
    on ordered links. The part of this time before the first copy that is not lost enters the link is retransmission.
    """

    def __init__(self, events: Events) -> None:
        self._events = events
        columns = (events[name].tolist() for name in ("time", "cause", "event", "node"))
        self._time, self._cause, self._code, self._node = columns
        self._message_codes = {events.code(word) for word in ("deliver", "duplicate")}
        self._send = events.code("send")
        self._survivors = _first_survivors(events)

    def back(self, event: int) -> Iterator[int]:
        """Yield the cause of an event, the cause of that, and so on."""
        while (cause := self._cause[event]) >= 0:
            if cause >= event:
                raise StoreError(f"event {event} has cause {cause}, which is not earlier: the trace is damaged.")
            event = cause
            yield event

    def steps(self, event: int, since: float = -np.inf) -> Iterator[Step]:
        """Yield the steps between an event and its causes, the latest first; times before ``since`` are cut off."""
        for cause in self.back(event):
            for step in self._between(cause, event):
                if step.end > max(step.start, since):
                    yield step._replace(start=max(step.start, since))
            if self._time[cause] <= since:
                return
            event = cause

    def along(self, path: Sequence[int]) -> Iterator[Step]:
        """Yield the steps between the events of a path, in which each event is caused by the next one."""
        for event, cause in pairwise(path):
            yield from (step for step in self._between(cause, event) if step.end > step.start)

    def _between(self, cause: int, event: int) -> Iterator[Step]:
        start, end = self._time[cause], self._time[event]
        sent = self._code[cause] == self._send
        if not sent or self._code[event] not in (*self._message_codes, self._send):
            yield Step(start, end, AT_NODE, self._node[event])
            return
        copy = min(self._survivors.get((cause, self._node[event]), start), end)
        yield Step(copy, end, TRANSFER, self._node[cause])
        yield Step(start, copy, RETRANSMISSION, self._node[cause])


def _first_survivors(events: Events) -> dict[tuple[int, int], float]:
    """(send, receiver) -> time at which the first copy that is not lost enters the link, if the first copy is lost."""
    lost = _by_packet(events, events.where("drop"))
    repeated = _by_packet(events, events.where("retransmit"))
    survivors = {}
    for packet, times in repeated.items():
        copies = {int(events["value"][index]) for index in lost.get(packet, ())}
        first = next((copy for copy in range(1, len(times) + 2) if copy not in copies), len(times) + 1)
        if first > 1:
            survivors[packet] = float(events["time"][times[first - 2]])
    return survivors


def _by_packet(events: Events, indices: IntArray) -> dict[tuple[int, int], list[int]]:
    found: dict[tuple[int, int], list[int]] = {}
    for index, send, receiver in zip(
        indices.tolist(), events["cause"][indices].tolist(), events["peer"][indices].tolist(), strict=True
    ):
        found.setdefault((send, receiver), []).append(index)
    return found


AGENTS, AT_SERVER = "agents", "server"
PARTS = (AGENTS, AT_SERVER, TRANSFER, RETRANSMISSION)


@dataclass(frozen=True)
class Round:
    """One communication round.

    Attributes:
        start, end: simulated times.
        parts: time in each of :data:`PARTS`; they add up to the duration.
        waited_for: the agent with the most time on the chain; None if no agent has any.
        waited: the time of that agent on the chain.
        chain: indices of the events on the chain, the last event first.
    """

    number: int
    start: float
    end: float
    parts: tuple[float, ...]
    waited_for: int | None
    waited: float
    chain: tuple[int, ...]

    @property
    def duration(self) -> float:
        return self.end - self.start


@dataclass(frozen=True)
class Waits:
    """How many rounds waited for an agent, and its total time on their critical paths."""

    agent: int
    rounds: int
    time: float


def rounds(events: Events) -> list[Round]:
    """The rounds of a job with a positive duration, by number."""
    numbers = events["round"]
    messages = events.where("send", "deliver")
    of_messages = np.unique(numbers[messages][numbers[messages] >= 0])
    indices = np.flatnonzero(np.isin(numbers, of_messages))
    found, from_the_end = np.unique(numbers[indices][::-1], return_index=True)
    chains = Chains(events)
    last = indices[::-1][from_the_end]
    every_number, codes = numbers.tolist(), events["event"].tolist()
    ends = {events.code("trigger"), events.code("turn")}

    def path(number: int, event: int) -> list[int]:
        """The chain that starts at ``event``, the last event of round ``number``."""
        found = [event]
        for cause in chains.back(event):
            if every_number[cause] not in (NONE, number):
                break
            found.append(cause)
            if codes[cause] in ends:
                break
        return found

    every = (
        _round(number, path(number, event), events, chains)
        for number, event in zip(found.tolist(), last.tolist(), strict=True)
    )
    return [one for one in every if one.duration > 0]


def _round(number: int, path: list[int], events: Events, chains: Chains) -> Round:
    parts, at_agents = dict.fromkeys(PARTS, 0.0), defaultdict[int, float](float)
    for step in chains.along(path):
        parts[_part(step)] += step.end - step.start
        if _part(step) == AGENTS:
            at_agents[step.node] += step.end - step.start
    longest = max(at_agents, key=lambda agent: (at_agents[agent], -agent), default=None)
    return Round(
        number,
        float(events["time"][path[-1]]),
        float(events["time"][path[0]]),
        tuple(parts.values()),
        longest,
        0.0 if longest is None else at_agents[longest],
        tuple(path),
    )


def _part(step: Step) -> str:
    if step.what != AT_NODE:
        return step.what
    return AT_SERVER if step.node == SERVER else AGENTS


def waits(found: Sequence[Round]) -> list[Waits]:
    """The agents that rounds waited for, by decreasing time."""
    count = Counter(one.waited_for for one in found if one.waited_for is not None)
    time = defaultdict[int, float](float)
    for one in found:
        if one.waited_for is not None:
            time[one.waited_for] += one.waited
    return sorted((Waits(agent, count[agent], time[agent]) for agent in count), key=lambda w: (-w.time, w.agent))
