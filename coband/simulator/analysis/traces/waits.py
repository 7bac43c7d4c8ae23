"""The longest waits of agents: for whom each of them waited, and what that one did meanwhile."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest

from coband.simulator.analysis.traces import times
from coband.simulator.analysis.traces.chains import AT_NODE, TRANSFER, Chains, Step, Wait, paired
from coband.simulator.analysis.traces.columns import SERVER, Events, read_events
from coband.simulator.analysis.traces.reading import address_name
from coband.simulator.experiments.store.store import StoredJob

DOING = OWN_TURNS, MESSAGES, AWAY, ELSE, ON_THE_WAY, REPEATED = (
    "own turns",
    "messages",
    "away",
    "else",
    "on the way",
    "repeated",
)
"""What the nodes on the causal chain did while an agent waited: took their own turns, handled messages, were away, did
nothing of this (waited themselves, or had no turn yet); or a message was on its way, or lost and sent again. While one
is sent again since its receiver is away, the receiver is away."""
ACTS = {times.COMPUTE: OWN_TURNS, times.HANDLING: MESSAGES, times.DOWN: AWAY, times.IDLE: ELSE}


@dataclass(frozen=True)
class LongWait:
    """A wait of an agent.

    Attributes:
        start, end: simulated times; a wait that nothing ends lasts until the agent leaves, or until the last event.
        waited_for: the node with the most time on the causal chain, of messages on the way their sender; None if
            nothing ended it.
        doing: the time of each of :data:`DOING`; empty if nothing ended it, as its causes are not known then.
        wait: number of the event that began it.
        resume: number of the event that ended it; None if nothing did.
    """

    label: str
    replication: int
    agent: str
    start: float
    end: float
    waited_for: str | None
    doing: Mapping[str, float]
    wait: int
    resume: int | None

    @property
    def time(self) -> float:
        return self.end - self.start


@dataclass(frozen=True)
class Waits:
    """The waits of some jobs.

    Attributes:
        longest: the longest ones, the longest first.
        count: how many there are in all.
        time: how long they are together.
        held: the times of the waits for a node, by label, replication and node.
    """

    longest: list[LongWait]
    count: int
    time: float
    held: Mapping[tuple[str, int, str], Sequence[float]]


def waits(jobs: Iterable[StoredJob], limit: int) -> Waits:
    """The longest waits of jobs that have a trace, at most ``limit``, and for whom all of them are."""
    longest, held = list[LongWait](), defaultdict[tuple[str, int, str], list[float]](list)
    count, total = 0, 0.0
    for job in jobs:
        events = read_events(job)
        end = float(events["time"][-1]) if len(events) else 0.0
        acts = times.acts_of(events, end)
        left = {node: spans[-1].start for node, spans in acts.items() if spans[-1][1:] == (end, times.DOWN)}
        until = {
            wait: left.get(wait.agent, end) if wait.resume is None else float(events["time"][wait.resume])
            for wait in paired(events)
        }
        count += len(until)
        total += sum(until.values()) - sum(wait.start for wait in until)
        described = _described(job, events, until, acts)
        for one in described:
            if one.waited_for is not None:
                held[job.label, job.replication, one.waited_for].append(one.time)
        longest = nlargest(limit, longest + described, key=lambda one: one.time)
    return Waits(longest, count, total, held)


def _described(
    job: StoredJob, events: Events, until: Mapping[Wait, float], acts: Mapping[int, Sequence[times.Span]]
) -> list[LongWait]:
    chains = Chains(events)
    found = []
    for wait, end in until.items():
        steps = [] if wait.resume is None else list(chains.blocked(wait.resume, wait.start))
        doing = {} if wait.resume is None else dict.fromkeys(DOING, 0.0)
        nodes = defaultdict[int, float](float)
        for step in steps:
            for node, what, time in _of_step(step, acts):
                doing[what] += time
                nodes[node] += time
        most = max(nodes, key=lambda node: nodes[node], default=None)
        whom = None if most is None else address_name(most)
        who = address_name(wait.agent) or ""
        found.append(LongWait(job.label, job.replication, who, wait.start, end, whom, doing, wait.wait, wait.resume))
    return found


def _of_step(step: Step, acts: Mapping[int, Sequence[times.Span]]) -> Iterator[tuple[int, str, float]]:
    """Which nodes did what in a step of a chain, and for how long."""
    whole = times.Span(step.start, step.end, times.IDLE)
    if step.what == TRANSFER:
        yield step.node, ON_THE_WAY, step.end - step.start
    elif step.receiver is not None:
        shares = times.shares([*acts.get(step.receiver, ()), whole], step.start, step.end)
        yield step.receiver, AWAY, shares[times.DOWN]
        yield step.node, REPEATED, step.end - step.start - shares[times.DOWN]
    else:
        if step.node == SERVER and step.what == AT_NODE:
            whole = whole._replace(category=times.HANDLING)
        shares = times.shares([*acts.get(step.node, ()), whole], step.start, step.end)
        yield from ((step.node, what, shares[act]) for act, what in ACTS.items())
