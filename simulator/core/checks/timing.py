"""When things happen: recomputed from the trace, from the plan and from fresh streams.

Turns take as long as the stream at their agent's address says, times its slowness; nobody acts while it is down; a
turn does not begin before its round; a synchronisation with a quorum ends with enough answers; and timers ring when
they were to.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from coband.simulator.core.audit import trace as tr
from coband.simulator.core.audit.invariants import InvariantViolation
from coband.simulator.core.clock.schedule import Phases, Rounds
from coband.simulator.core.hosts.availability import Always, Windows
from coband.simulator.core.hosts.speed import Stragglers
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import SERVER, Address
from coband.simulator.core.plan import Plan
from coband.simulator.core.randomness.distributions import is_zero
from coband.simulator.core.randomness.streams import Streams

ROUNDING = 1e-9
ACTS = frozenset((tr.TURN, tr.CHOOSE, tr.REWARD, tr.SEND, tr.DELIVER, tr.TIMER, tr.APPLY, tr.WAIT, tr.RESUME))
"""Events at a node that does something, or is told something."""


class Absences:
    """When a node is down, by its availability and its outages; to be asked in order of time.

    Args:
        windows: of each reason to be down.
        heals: from when on nobody goes down.
    """

    def __init__(self, windows: Sequence[Windows], heals: float) -> None:
        self._windows, self._heals = windows, heals
        self._now = [next(one, (math.inf, math.inf)) for one in windows]

    def includes(self, time: float) -> bool:
        """Whether the node is down at a time."""
        for place, windows in enumerate(self._windows):
            while self._now[place][1] <= time:
                self._now[place] = next(windows, (math.inf, math.inf))
        return any(start <= time and start < self._heals for start, _ in self._now)


class Timing:
    """Looks at the events of a run, in their order.

    Args:
        quorum: share of the agents without whose answers a synchronisation must not end; None where all are waited for.
        exact: whether turns must take what the streams say; what-if runs change that.
    """

    def __init__(self, plan: Plan, streams: Streams, quorum: float | None, exact: bool) -> None:
        self._plan, self._streams, self._quorum = plan, streams, quorum
        agents = plan.agents
        steady = agents.stragglers is None or agents.stragglers.steady
        self._prompt = exact and not plan.intermittent
        self._exact = self._prompt and steady
        self._slowness = self._factors() if self._exact else []
        self._compute: dict[Address, Iterator[float]] = {}
        self._late: dict[Address, Iterator[float]] = {}
        self._rewards: dict[int, float] = {}  # when rewards are due, by the event of the choice
        self._away: dict[Address, Absences] = {}
        self._turns: dict[int, tuple[float, Address]] = {}  # turns under way, by the event of their start
        self._answers: dict[int, set[Address]] = defaultdict(set)
        self._asked: dict[int, float] = {}  # when the server last asked in a round, or had its first answer
        self._heard = tr.NONE, tr.NONE  # what the server heard last, and the round that it was about
        self._timers: WeakKeyDictionary[Message, float] = WeakKeyDictionary()
        self._now, self._unheard = 0.0, set[Address]()  # from or for whom a message was given up
        self._wrong: tuple[str, int] | None = None
        self.last_delivery = 0.0

    def watching(self, sink: tr.Sink | None) -> tr.Sink:
        """A sink that looks at events before another one gets them."""

        def watch(rows: Sequence[tr.PlainRow], names: Sequence[str]) -> None:
            self.events(rows)
            if sink is not None:
                sink(rows, names)

        return watch

    def events(self, rows: Sequence[tr.PlainRow]) -> None:
        """Look at a batch of events; what is wrong is said at the end, since the trace must not be disturbed."""
        for row in map(tr.Row._make, rows):
            for sentence in self._wrong_with(row) if self._wrong is None else ():
                self._wrong = self._wrong or (sentence, row.seq)

    def _wrong_with(self, row: tr.Row) -> Iterator[str]:
        if row.time < self._now:
            yield f"event {row.seq} at time {row.time:g} stands after one at {self._now:g}"
        self._now = max(self._now, row.time)
        if row.event in ACTS and row.node >= SERVER and self._absences(row.node).includes(row.time):
            yield f"node {row.node} did something at {row.time:g} ({tr.EVENTS[row.event]}), when it is down"
        if row.event == tr.TURN:
            yield from self._begun(row)
        elif row.event == tr.CHOOSE:
            if row.cause in self._turns:
                yield from self._ended(row)
            if self._plan.late_rewards:
                self._rewards[row.seq] = row.time + next(self._delays(row.node))
        elif row.event == tr.REWARD:
            yield from self._rewarded(row)
        elif row.event == tr.DELIVER:
            self.last_delivery = row.time
            if row.node == SERVER:
                self._heard = row.seq, row.round
                self._answers[row.round].add(row.peer)
                self._asked.setdefault(row.round, row.time)
        elif row.event == tr.TIMER and row.node == SERVER:
            self._heard = row.seq, row.round
        elif row.event == tr.SEND and row.node == SERVER:
            if row.peer == tr.EVERYONE or row.round not in self._asked:  # what was given up goes to its receiver alone
                self._asked[row.round] = row.time
        elif row.event == tr.EXPIRE:
            self._unheard.add(row.peer if row.node == SERVER else row.node)
        elif row.event == tr.APPLY and row.node == SERVER:
            yield from self._concluded(row)

    # --- turns

    def _begun(self, row: tr.Row) -> Iterator[str]:
        schedule = self._plan.schedule
        if isinstance(schedule, Rounds) and row.time < row.value * schedule.interval * (1 - ROUNDING):
            yield f"agent {row.node} began turn {row.value:g} at {row.time:g}, before its round"
        if self._exact and not isinstance(schedule, Phases):
            self._turns[row.seq] = row.time, row.node

    def _ended(self, row: tr.Row) -> Iterator[str]:
        start, agent = self._turns.pop(row.cause)
        expected = next(self._times(agent)) * self._slowness[agent]
        if not math.isclose(row.time - start, expected, rel_tol=ROUNDING, abs_tol=ROUNDING * (1.0 + row.time)):
            took = row.time - start
            yield f"a turn of agent {agent} took {took:g}, by its stream and its slowness it takes {expected:g}"

    def _rewarded(self, row: tr.Row) -> Iterator[str]:
        """A reward comes when its delay is over, or after that when its agent is free."""
        due = self._rewards.pop(row.cause, -math.inf)
        self.last_delivery = row.time
        if row.time < due - ROUNDING * (1.0 + due):
            yield f"agent {row.node} had a reward at {row.time:g}, which by its stream comes at {due:g}"

    def _delays(self, agent: Address) -> Iterator[float]:
        if agent not in self._late:
            assert self._plan.agents.reward_delay is not None
            self._late[agent] = _drawn(self._plan.agents.reward_delay, self._streams, agent, "reward_delay")
        return self._late[agent]

    def _times(self, agent: Address) -> Iterator[float]:
        if agent not in self._compute:
            self._compute[agent] = _drawn(self._plan.agents.compute.of(agent), self._streams, agent, "compute")
        return self._compute[agent]

    def _factors(self) -> list[float]:
        """How slow each agent is: one over its speed, times the slowdown of stragglers."""
        agents, count = self._plan.agents, self._plan.agents.count
        speeds = [1.0] * count
        if agents.speed is not None:
            speeds = agents.speed.draw(self._streams("faults", 0, "speed"), count).tolist()
        factors = [1.0 / max(speed, 1e-300) for speed in speeds]
        if isinstance(agents.stragglers, Stragglers):
            groups = agents.stragglers.groups or count
            order = self._streams("faults", 0, "stragglers").permutation(groups).tolist()
            slow = set(order[: round(agents.stragglers.fraction * groups)])
            factors = [
                factor * (agents.stragglers.slowdown if agent * groups // count in slow else 1.0)
                for agent, factor in enumerate(factors)
            ]
        elif agents.stragglers is not None:
            slower = agents.stragglers.factors(count, self._streams)
            factors = [factor * other for factor, other in zip(factors, slower, strict=True)]
        return factors

    # --- absences and quorums

    def _absences(self, node: Address) -> Absences:
        if node not in self._away:
            availability, network = self._plan.agents.availability, self._plan.network
            count, streams = self._plan.agents.count, self._streams
            away = [
                outage.windows(count, streams("faults", number, "outage"))
                for number, outage in enumerate(network.outages)
            ]
            windows = [iter(by_node.get(node, ())) for by_node in away]
            if node != SERVER and not isinstance(availability, Always):
                windows.append(availability.windows(node, streams("faults", node, "availability")))
            self._away[node] = Absences(windows, math.inf if network.heals is None else network.heals)
        return self._away[node]

    def _concluded(self, row: tr.Row) -> Iterator[str]:
        """A synchronisation has ended; agents that could not be reached, or are no members, are not waited for."""
        heard, round = self._heard
        if heard != row.cause:  # rounds that are abandoned have numbers too, which versions of the model do not have
            round = row.round
        answers, members = self._answers[round], self._plan.members
        if self._quorum is None or round < 0:
            return
        asked = self._asked.get(round, row.time)
        there = [one for one in range(self._plan.agents.count) if members is None or members.there(one, asked)]
        if len(answers) >= self._quorum * len(there) * (1 - ROUNDING):
            return
        missing = (one for one in there if one not in answers and one not in self._unheard)
        if any(members is None or members.there(one, row.time) for one in missing):
            yield f"round {round} ended with {len(answers)} answers, which is no quorum of {self._quorum:g}"

    # --- timers

    def timer_set(self, timer: Message, now: float, delay: float) -> None:
        """A node has itself reminded."""
        self._timers[timer] = now + delay

    def timer_rang(self, node: Address, timer: Message, now: float, cause: int) -> None:
        """It is reminded; a node that is busy or down hears of it later."""
        due = self._timers.pop(timer, None)
        if due is None:  # from the host
            return
        agents, server = self._plan.agents, self._plan.server
        free = is_zero(server.handling if node == SERVER else agents.handling) and (
            node == SERVER or (is_zero(agents.compute) and not isinstance(self._plan.schedule, Phases))
        )
        late = free and self._prompt and now > due
        if now < due or late:
            text = f"a timer {timer.kind!r} of node {node} rang at {now:g}; it was set to {due:g}"
            raise InvariantViolation(text, cause)

    def at_end(self) -> None:
        """When no event is left.

        Raises:
            InvariantViolation: something happened at a wrong time.
        """
        if self._wrong is not None:
            raise InvariantViolation(*self._wrong)
        if self._timers and not self._plan.intermittent:
            raise InvariantViolation(f"{len(self._timers)} timers never rang")


def _drawn(distribution: Any, streams: Streams, agent: Address, purpose: str) -> Iterator[float]:
    stream = streams("compute", agent, purpose)
    while True:
        yield 0.0 if is_zero(distribution) else float(distribution.draw(stream, 1)[0])
