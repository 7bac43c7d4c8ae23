"""Causal chains in the events of one job, as intervals of time: who or what took how long."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from coband.simulator.analysis.traces.columns import SERVER, Events
from coband.simulator.arrays import IntArray
from coband.simulator.experiments.store.files import StoreError

AT_NODE, TRANSFER, RETRANSMISSION = "at node", "transfer", "retransmission"
BEFORE = "before"


class Step(NamedTuple):
    """An interval of time on a causal chain.

    Attributes:
        start, end: simulated times.
        what: :data:`AT_NODE`, :data:`TRANSFER`, :data:`RETRANSMISSION`, or :data:`BEFORE`: the node had not acted yet.
        node: the node; for a message in flight, its sender.
        receiver: of a message in flight.
    """

    start: float
    end: float
    what: str
    node: int
    receiver: int | None = None


class Chains:
    """The causal chains in the events of one job.

    A message is in flight from its send to its delivery; this includes links, queues, and waiting for earlier messages
    on ordered links. The part of this time before the first copy that is not lost enters the link is retransmission.
    """

    def __init__(self, events: Events) -> None:
        self._events = events
        columns = (events[name].tolist() for name in ("time", "cause", "event", "node", "peer"))
        self._time, self._cause, self._code, self._node, self._peer = columns
        self._message_codes = {events.code(word) for word in ("deliver", "duplicate")}
        self._send, self._expire, self._timer = (events.code(word) for word in ("send", "expire", "timer"))
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

    def blocked(self, resumption: int, since: float) -> Iterator[Step]:
        """Yield what a node waited for from ``since`` until an event, the latest first, without gaps.

        Where the chain began later, the node that began it had not done so yet.
        """
        reached, node = self._time[resumption], self._node[resumption]
        for step in self.steps(resumption, since):
            yield step
            reached = min(reached, step.start)
        for cause in self.back(resumption):
            node = self._node[cause]
            if self._time[cause] <= since:
                break
        if reached > since:
            yield Step(since, reached, BEFORE, node)

    def along(self, path: Sequence[int]) -> Iterator[Step]:
        """Yield the steps between the events of a path, in which each event is caused by the next one."""
        for event, cause in pairwise(path):
            yield from (step for step in self._between(cause, event) if step.end > step.start)

    def _between(self, cause: int, event: int) -> Iterator[Step]:
        start, end = self._time[cause], self._time[event]
        sent = self._code[cause] == self._send
        if self._code[event] == self._timer:  # what runs out is the time in which the peer was to act
            peer = self._peer[event]
            yield Step(start, end, BEFORE, peer if peer >= SERVER else self._node[event])
            return
        if sent and self._code[event] == self._expire:
            yield Step(start, end, RETRANSMISSION, self._node[cause], self._peer[event])
            return
        if not sent or self._code[event] not in (*self._message_codes, self._send):
            yield Step(start, end, AT_NODE, self._node[event])
            return
        copy = min(self._survivors.get((cause, self._node[event]), start), end)
        yield Step(copy, end, TRANSFER, self._node[cause], self._node[event])
        yield Step(start, copy, RETRANSMISSION, self._node[cause], self._node[event])


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


class Wait(NamedTuple):
    """An interval in which the protocol blocks an agent.

    Attributes:
        start: when it begins.
        wait: number of the event that begins it.
        resume: number of the event that ends it; None if nothing does.
    """

    agent: int
    start: float
    wait: int
    resume: int | None


def paired(events: Events) -> Iterator[Wait]:
    """Yield the waits of a job, as they end; those that do not end come last."""
    begun: dict[int, int] = {}
    resume, times = events.code("resume"), events["time"]
    for index in events.where("wait", "resume").tolist():
        agent = int(events["node"][index])
        if events["event"][index] != resume:
            begun.setdefault(agent, index)
        elif agent in begun:
            wait = begun.pop(agent)
            yield Wait(agent, float(times[wait]), wait, index)
    for agent, wait in begun.items():
        yield Wait(agent, float(times[wait]), wait, None)
