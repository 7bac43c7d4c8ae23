"""The time that each agent spends in each state.

At each moment of [0, simulated time of the job] an agent is in exactly one category, so the categories add up:

* down: the agent is not available while something is due at it or sent to it, or in the middle of its work (an absence
  that nobody meets is not in the trace);
* compute: it takes a turn, from the start to the choice (for a batch: to the last pull);
* handling: it processes a message, from the moment when it is free to the first event that the message causes
  (processing that causes no event is not visible and counts as another category);
* waiting: it is blocked by the protocol, from ``wait`` to ``resume``. This time is divided along the causal chain of
  the event that ends it: others (the chain is at another agent, which computes, handles a message, or has not acted
  yet), server, transfer (a message is in flight), and retransmission (the part of a transfer before the first copy
  that arrives is sent);
* stalled: it is blocked by the protocol and never released;
* idle: it is free before its last turn (or has no turn), and no turn is due;
* finished: it is free after its last turn, while other agents continue.

If several categories apply, the first in this list counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np

from coband.simulator.analysis.traces.chains import BEFORE, RETRANSMISSION, TRANSFER, Chains, Step, paired
from coband.simulator.analysis.traces.columns import SERVER, Events
from coband.simulator.arrays import FloatArray

DOWN, COMPUTE, HANDLING, OTHERS, AT_SERVER = "down", "compute", "handling", "others", "server"
STALLED, IDLE, FINISHED = "stalled", "idle", "finished"


@dataclass(frozen=True)
class Category:
    """The title and the meaning of a category, for readers."""

    key: str
    title: str
    meaning: str


MEANINGS = (
    Category(COMPUTE, "own turns", "taking its turns, from the start of each to its choice"),
    Category(
        HANDLING,
        "handling messages",
        "working on messages that arrived; work that leaves no event in the trace is not seen",
    ),
    Category(
        OTHERS,
        "waiting: other agents",
        "blocked by the protocol while what it waits for is at another agent, which computes, answers, or has not "
        "acted yet (stragglers)",
    ),
    Category(AT_SERVER, "waiting: server", "blocked while what it waits for is at the server"),
    Category(
        TRANSFER,
        "waiting: transfer",
        "blocked while the message that it waits for is on its way (links, queues, earlier messages)",
    ),
    Category(
        RETRANSMISSION,
        "waiting: retransmission",
        "the part of that until the first copy that was not lost had been put on the link",
    ),
    Category(STALLED, "stalled", "blocked by the protocol and never released"),
    Category(DOWN, "down", "out of service"),
    Category(IDLE, "no turn due", "free, but the schedule had no turn for it yet"),
    Category(FINISHED, "finished", "free after its last turn, while others went on"),
)
CATEGORIES = tuple(one.key for one in MEANINGS)
RANK = {name: rank for rank, name in enumerate((DOWN, *(one for one in CATEGORIES if one != DOWN)))}


class Span(NamedTuple):
    """An interval of one agent's time in one category."""

    start: float
    end: float
    category: str


def breakdown(events: Events, agents: int, end: float) -> FloatArray:
    """Time of each agent in each of :data:`CATEGORIES`, shape (agents, categories); every row adds up to ``end``.

    Args:
        events: all of one job.
        end: simulated time of the job.
    """
    spans = spans_of(events, end)
    return np.array([_time_by_category(spans.get(agent, []), end) for agent in range(agents)])


def spans_of(events: Events, end: float) -> dict[int, list[Span]]:
    """Agent -> its spans, which may overlap; the remaining time is idle or finished."""
    return _by_node(_working(events), _waiting(events, end), _down(events, end))


def acts_of(events: Events, end: float) -> dict[int, list[Span]]:
    """Node -> when it takes turns, handles messages and is down."""
    return _by_node(_working(events), _down(events, end))


def _by_node(*sources: Iterator[tuple[int, Span]]) -> dict[int, list[Span]]:
    spans: dict[int, list[Span]] = defaultdict(list)
    for node, span in chain(*sources):
        spans[node].append(span)
    return spans


def _working(events: Events) -> Iterator[tuple[int, Span]]:
    """Yield the spans of turns and of handling messages.

    The first event that a delivery causes at its node ends the handling of that message; the handling starts when the
    message has arrived and the node is free.
    """
    turn, deliver = events.code("turn"), events.code("deliver")
    caused = np.flatnonzero(events["cause"] >= 0)
    causes = events["cause"][caused]
    own = (events["node"][caused] == events["node"][causes]) & np.isin(events["event"][causes], [turn, deliver])
    own &= events["node"][caused] >= 0
    first_of_cause = np.unique(causes[own], return_index=True)[1]
    free_at: dict[int, float] = defaultdict(float)
    ends = np.sort(caused[own][first_of_cause])
    for node, start, now, code in zip(
        events["node"][ends].tolist(),
        events["time"][events["cause"][ends]].tolist(),
        events["time"][ends].tolist(),
        events["event"][events["cause"][ends]].tolist(),
        strict=True,
    ):
        if code == turn:
            yield node, Span(start, now, COMPUTE)
        elif now > max(start, free_at[node]):
            yield node, Span(max(start, free_at[node]), now, HANDLING)
        free_at[node] = now


def _waiting(events: Events, end: float) -> Iterator[tuple[int, Span]]:
    chains = Chains(events)
    for wait in paired(events):
        if wait.resume is None:
            yield wait.agent, Span(wait.start, end, STALLED)
        else:
            for step in chains.blocked(wait.resume, wait.start):
                yield wait.agent, Span(step.start, step.end, _blocked_by(step, wait.agent))


def _blocked_by(step: Step, agent: int) -> str:
    if step.what in (TRANSFER, RETRANSMISSION):
        return step.what
    if step.node == SERVER:
        return AT_SERVER
    if step.what == BEFORE:
        return OTHERS
    return HANDLING if step.node == agent else OTHERS


def _down(events: Events, end: float) -> Iterator[tuple[int, Span]]:
    since: dict[int, float] = {}
    up = events.code("up")
    for index in events.where("down", "up").tolist():
        agent, now = int(events["node"][index]), float(events["time"][index] - events["value"][index])
        if events["event"][index] != up:
            since.setdefault(agent, now)
        elif agent in since:
            yield agent, Span(since.pop(agent), now, DOWN)
    for agent, start in since.items():
        yield agent, Span(start, end, DOWN)


def _time_by_category(spans: list[Span], end: float) -> FloatArray:
    """Time in each category; where spans overlap, the category with the first rank counts."""
    last_turn = max((span.end for span in spans if span.category == COMPUTE), default=end)
    whole = [Span(0.0, min(last_turn, end), IDLE), Span(min(last_turn, end), end, FINISHED)]
    times = shares([*spans, *whole], 0.0, end)
    return np.array([times[category] for category in CATEGORIES])


def shares(spans: Iterable[Span], start: float, end: float) -> dict[str, float]:
    """Category -> its time from ``start`` to ``end``; where spans overlap, the category with the first rank counts."""
    changes: list[tuple[float, int, int]] = []
    for span in spans:
        low, high = max(span.start, start), min(span.end, end)
        if high > low:
            changes += [(low, 1, RANK[span.category]), (high, -1, RANK[span.category])]
    times, open_, before = [0.0] * len(RANK), [0] * len(RANK), start
    for now, change, rank in sorted(changes):
        if now > before:
            times[next(rank for rank, count in enumerate(open_) if count)] += now - before
            before = now
        open_[rank] += change
    return dict(zip(RANK, times, strict=True))
