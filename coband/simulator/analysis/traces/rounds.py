"""The critical path of communication rounds: the causal chain that determines when each round ends.

A round consists of the events with its round number. It ends with its last event. The chain leads back from there: from
each delivery to its send, and from each send to the delivery that caused it (if the server waits for all agents, the
last of their deliveries). It stops at the trigger that requested the round, at the start of the turn that began it, or
at an event of another round. The round has waited for the agent with the most time on the chain.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coband.simulator.analysis.traces.chains import RETRANSMISSION, TRANSFER, Chains, Step
from coband.simulator.analysis.traces.columns import NONE, SERVER, Events

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
    if step.what in (TRANSFER, RETRANSMISSION):
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
