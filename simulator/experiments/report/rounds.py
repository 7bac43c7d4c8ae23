"""The critical path of communication rounds: the chain of causes that determined when each round ended.

A round is what bears the number of one of its messages in the trace. It ends with its last event; the chain goes from
there back, from each arrival to what was sent and from each message to the arrival that made its sender send it (where
a server waits for all, that is the last one). It ends at the trigger that asked for the round, at the start of the turn
whose end began it, or where it comes to another round. The agent with the most time on the chain is the one that was
waited for.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coband.simulator.experiments.report.chain import AT_NODE, RETRANSMISSION, TRANSFER, Chains, Step
from coband.simulator.experiments.report.events import NONE, SERVER, Events

AGENTS, AT_SERVER = "agents", "server"
PARTS = (AGENTS, AT_SERVER, TRANSFER, RETRANSMISSION)
TITLES = {AGENTS: "agents", AT_SERVER: "server", TRANSFER: "transfer", RETRANSMISSION: "retransmission"}


@dataclass(frozen=True)
class Round:
    """One round.

    Attributes:
        number: as in the trace.
        start, end: simulated times.
        parts: time in each of :data:`PARTS`; they add up to the duration.
        waited_for: the agent with the most time on the chain, None when no agent has any.
        waited: its time.
        chain: indices of the events from the last one back.
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
        """End - start."""
        return self.end - self.start


@dataclass(frozen=True)
class Waits:
    """How often an agent was the one that rounds waited for, and how much of their time it took."""

    agent: int
    rounds: int
    time: float


def rounds(events: Events) -> list[Round]:
    """The rounds of a job that took time, by number."""
    numbers = events["round"]
    messages = events.where("send", "deliver")
    told = np.unique(numbers[messages][numbers[messages] >= 0])
    indices = np.flatnonzero(np.isin(numbers, told))
    found, from_the_end = np.unique(numbers[indices][::-1], return_index=True)
    chains = Chains(events)
    paths = _Paths(events, chains)
    last = indices[::-1][from_the_end]
    every = (
        _round(number, paths.of(number, event), events, chains)
        for number, event in zip(found.tolist(), last.tolist(), strict=True)
    )
    return [one for one in every if one.duration > 0]


class _Paths:
    """Finds the chain of a round."""

    def __init__(self, events: Events, chains: Chains) -> None:
        self._chains = chains
        self._numbers: list[int] = events["round"].tolist()
        self._codes: list[int] = events.event.tolist()
        self._ends = {events.code("trigger"), events.code("turn")}

    def of(self, number: int, event: int) -> list[int]:
        """The chain from ``event``, the last one of round ``number``, back."""
        path = [event]
        for cause in self._chains.back(event):
            if self._numbers[cause] not in (NONE, number):
                break
            path.append(cause)
            if self._codes[cause] in self._ends:
                break
        return path


def _round(number: int, path: list[int], events: Events, chains: Chains) -> Round:
    parts, at_agents = dict.fromkeys(PARTS, 0.0), defaultdict[int, float](float)
    for step in chains.along(path):
        parts[_part(step)] += step.end - step.start
        if _part(step) == AGENTS:
            at_agents[step.node] += step.end - step.start
    longest = max(at_agents, key=lambda agent: (at_agents[agent], -agent), default=None)
    return Round(
        number,
        float(events.time[path[-1]]),
        float(events.time[path[0]]),
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
    """Agents by how much time rounds spent waiting for them, the longest first."""
    count = Counter(one.waited_for for one in found if one.waited_for is not None)
    time = defaultdict[int, float](float)
    for one in found:
        if one.waited_for is not None:
            time[one.waited_for] += one.waited
    return sorted((Waits(agent, count[agent], time[agent]) for agent in count), key=lambda w: (-w.time, w.agent))
