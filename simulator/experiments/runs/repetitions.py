"""How often messages to nodes that are away are sent again, as far as that is known before a run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import islice

from coband.simulator.core.clock.schedule import AnySchedule, OneAtATime, Renewal, Rounds
from coband.simulator.core.network.network import Retransmission
from coband.simulator.core.nodes.node import SERVER
from coband.simulator.core.nodes.recovery import MOST_BACKOFFS
from coband.simulator.core.plan import settled
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.experiments.runs.job import plan
from coband.simulator.experiments.scenario.scenario import Scenario

MOST_AGENTS, MOST_ABSENCES = 100, 500
"""So many are looked at."""
LONG = 1e9
"""Simulated time of a run of which nobody knows how long it is."""


def repetitions(scenario: Scenario) -> float:
    """How often a message is sent again in the mean, were each sent at any time, whether its receiver is away or not.

    It counts absences by a population, by ``agents.availability`` and by outages; not flat batteries, partitions and
    loss.
    """
    network, agents = scenario.network, scenario.agents
    if network.transport != "reliable" or not (agents.intermittent or network.outages):
        return 0.0
    streams, count = Streams(scenario.seed), min(agents.count, MOST_AGENTS)
    few = agents.model_copy(update={"count": count, "joins": None, "leaves": None})  # nothing is repeated to who left
    found = settled(replace(plan(scenario, "random"), agents=few), streams)
    policy, first, lasts = network.retransmission, found.network.first_timeout, _lasts(scenario.schedule)
    availability, stream = found.agents.availability, streams("faults", 0, "forecast")
    often = sum(_mean(policy, first, availability.windows(agent, stream), lasts) for agent in range(count)) / count
    for outage in network.outages:
        for node, times in outage.windows(agents.count, stream).items():
            often += _mean(policy, first, times, lasts) / (1 if node == SERVER else agents.count)
    return often


def _lasts(schedule: AnySchedule) -> float:
    """Simulated time of a run in which nobody is late."""
    if schedule.duration is not None:
        return schedule.duration
    if isinstance(schedule, Rounds | OneAtATime):
        return schedule.turns * schedule.interval
    return min((schedule.turns or 1) * schedule.think.mean or 1.0, LONG) if isinstance(schedule, Renewal) else LONG


def _mean(policy: Retransmission, first: float, windows: Iterable[tuple[float, float]], lasts: float) -> float:
    """Repetitions of a message to a node with such times down; one that is sent in such a time is so in its middle."""
    found = list(islice(windows, MOST_ABSENCES))
    whole = lasts if len(found) < MOST_ABSENCES else min(lasts, found[-1][1])
    inside = ((start, min(end, whole), end) for start, end in found if start < whole)
    return sum((last - start) * _count(policy, first, end - (start + last) / 2) for start, last, end in inside) / whole


def _count(policy: Retransmission, first: float, away: float) -> float:
    """How often a message is sent again in a time without an answer."""
    waited = 0.0
    for attempts in range(1, MOST_BACKOFFS + 1):
        waited += policy.wait(first, attempts)
        if waited > away:
            return min(attempts - 1, policy.max_attempts - 1)
    rest = (away - waited) / policy.wait(first, MOST_BACKOFFS + 1)
    return min(MOST_BACKOFFS + rest, policy.max_attempts - 1)
