"""Runs of registered algorithms on small worlds, without files: what several test modules need."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

from pydantic import BaseModel, TypeAdapter

from coband import Address, Algorithm, Message, RunResult
from coband.extending import Engine, Packet, Plan, Registry, RequestError, Streams, trace
from coband.extending import trace as tr

PROBLEM = {
    "kind": "contextual",
    "arms": {"kind": "ball", "dimension": 3, "count": 5},
    "reward": {"kind": "cosine"},
    "noise": 0.1,
}
FIXED_PROBLEM = {
    "kind": "fixed_domain",
    "domain": {"kind": "ball", "dimension": 3, "points": 40},
    "reward": {"kind": "cosine"},
    "noise": 0.1,
}
STEADY_PROBLEM = {"kind": "own_arms", "arms": {"kind": "ball", "dimension": 2, "count": 3}, "noise": 0.3}
ARMS = {"kind": "k_armed", "means": [0.8, 0.6, 0.5, 0.3]}
TASKS = {
    "kind": "pure_exploration",
    "features": {"kind": "table", "tasks": "similar", "size": 3, "ones": 1},
    "gap": 0.8,
}

Section = Mapping[str, object]
"""A section of a scenario."""
Key = tuple[Address, Address, int]
"""A message: its source, its destination, and its number among the messages of this pair, from 1."""
Delays = Mapping[Key, float]
"""By how much single messages come later than their links say; inf: they are lost."""
NO_DELAYS: Delays = MappingProxyType({})


def registry() -> Registry:
    """The installed algorithms and problems."""
    return Registry.installed()


@lru_cache(maxsize=1)
def _adapter() -> TypeAdapter[Plan]:
    """What validates plans; making it takes longer than a small run."""
    return TypeAdapter(Plan)


def plan_of(given: Section) -> Plan:
    """The engine's plan from the parts of a scenario."""
    return _adapter().validate_python(given)


def algorithm(name: str) -> Algorithm:
    """A registered algorithm.

    Raises:
        RequestError: there is none of that name.
    """
    if name not in (known := registry().algorithms):
        raise RequestError(f"{name!r} is not an algorithm that is installed; give the coband.Algorithm itself")
    return known[name]


class Leaving(NamedTuple):
    """A message as it leaves a node for another one."""

    time: float
    source: Address
    destination: Address
    number: int
    kind: str
    scalars: int

    @property
    def key(self) -> Key:
        return self.source, self.destination, self.number


class Recorder(Engine):
    """An engine that keeps every message that is sent, in the order of the trace.

    Args:
        delays: of single messages; there must be links, and a transport that mends if some are lost.

    Attributes:
        config: the algorithm's parameters.
        sent: the messages.
        leaving: the same once for each receiver; where links are walked one by one, once for each link.
    """

    def __init__(
        self,
        plan: Plan,
        algorithm: Algorithm,
        config: BaseModel,
        *parts: Any,
        delays: Delays = NO_DELAYS,
        **further: Any,
    ) -> None:
        self.config, self._delays = config, delays
        self.sent: list[Message] = []
        self.leaving: list[Leaving] = []
        super().__init__(plan, algorithm, config, *parts, **further)
        self._in_words, self._count = self.transport.describe, self.audit.sent
        self.transport.describe = self._keep
        self.audit.sent = self._leave  # type: ignore[method-assign]
        self._arrive_at = self.transport._arrive_at
        if delays:
            self.transport._arrive_at = self._delay  # type: ignore[method-assign]

    def _keep(self, message: Message) -> str | None:
        self.sent.append(message)
        return None if self._in_words is None else self._in_words(message)

    def _leave(self, packet: Packet) -> None:
        if not packet.attempts:
            found = packet.source, packet.destination, packet.number, packet.message.kind, packet.scalars
            self.leaving.append(Leaving(self.clock.now, *found))
        self._count(packet)

    def _delay(self, packet: Packet, arrival: float) -> None:
        """A copy is on its link."""
        delay = self._delays.get((packet.source, packet.destination, packet.number), 0.0)
        if math.isinf(delay):
            self.transport._lost(packet, "fault")
        else:
            self._arrive_at(packet, arrival + delay)


@dataclass
class Run:
    """One run with its trace."""

    result: RunResult
    rows: list[trace.Row]
    names: list[str]
    engine: Recorder

    @property
    def sent(self) -> list[Message]:
        """Every message, in the order of the trace's sends."""
        return self.engine.sent

    @property
    def leaving(self) -> list[Leaving]:
        """The same as they leave nodes, one for each receiver."""
        return self.engine.leaving

    @property
    def pulls(self) -> list[tuple[int, int, int, float]]:
        """(agent, own turn number, arm, reward) in order of time."""
        turns: dict[int, int] = defaultdict(int)
        pulls = []
        for choose, reward in zip(self.events(tr.CHOOSE), self.events(tr.REWARD), strict=True):
            turns[choose.node] += 1
            pulls.append((choose.node, turns[choose.node], int(choose.value), reward.value))
        return pulls

    @property
    def messages(self) -> list[tuple[str, int | str, int | str, int]]:
        """(kind, source, destination, scalars), one per receiver, in the order of sending."""
        agents = len(self.engine.agents)
        listed = []
        for row in self.events(tr.SEND):
            if row.peer == tr.EVERYONE:
                skipped = () if row.value == agents else self._senders(row)
                receivers: list[int | str] = [agent for agent in range(agents) if agent not in skipped]
            else:
                receivers = [_in_words(row.peer)]
            listed += [(self.names[row.kind], _in_words(row.node), receiver, row.scalars) for receiver in receivers]
        return listed

    def _senders(self, row: trace.Row) -> tuple[int, ...]:
        """The agent left out of a multicast: the one whose message caused it."""
        cause = self.rows[row.cause]
        return (cause.peer if cause.event == tr.DELIVER else cause.node,)

    def events(self, *events: int) -> list[trace.Row]:
        """All rows of some kinds of events."""
        return [row for row in self.rows if row.event in events]


def _in_words(node: int) -> int | str:
    return "server" if node == -1 else node


def drawn_from(problem: Section, agents: int) -> Any:
    """What draws the worlds of a registered problem; an agent that is alone is offered all arms."""
    if agents == 1:
        problem = {key: value for key, value in problem.items() if key != "offered"}
    return registry().problems[str(problem["kind"])].config.model_validate(problem)


def world(problem: Section, seed: int, agents: int) -> Any:
    """A fresh world of a registered problem."""
    return drawn_from(problem, agents).build(Streams(seed), agents)


def batches(name: str) -> bool:
    """Whether an algorithm pulls in batches."""
    return "phases" in algorithm(name).needs.schedules


def problem_of(name: str) -> Section:
    """A small problem that the algorithm can run on."""
    needs = algorithm(name).needs
    if needs.unit_rewards or "k_armed" in needs.problems:
        return ARMS if needs.fixed_arms else {**ARMS, "offered": 3}
    small: tuple[Section, ...] = (FIXED_PROBLEM, TASKS) if needs.fixed_arms else (PROBLEM, FIXED_PROBLEM, TASKS)
    small = (STEADY_PROBLEM, *small[-2:]) if needs.steady_arms else small
    return next(problem for problem in small if not needs.problems or problem["kind"] in needs.problems)


def run(
    name: str,
    config: Section,
    *,
    agents: int = 3,
    schedule: Section | None = None,
    problem: Section | None = None,
    seed: int = 0,
    delays: Delays = NO_DELAYS,
    **plan: Any,
) -> Run:
    """Run a registered algorithm; ``plan`` holds further parts of the scenario, such as ``network``."""
    entry = algorithm(name)
    turns = {"kind": "phases"} if batches(name) else {"kind": "one_at_a_time", "turns": 60}
    full = {
        "agents": {"count": agents, **plan.pop("agent", {})},
        "schedule": schedule or turns,
        "network": {},
        "checks": "full",
        **plan,
    }
    rows: list[trace.Row] = []
    engine = Recorder(
        plan_of(full),
        entry,
        entry.config.model_validate(config),
        world(problem or problem_of(name), seed, agents),
        Streams(seed),
        sink=trace.keep(rows),
        delays=delays,
    )
    result = engine.run()
    return Run(result, rows, list(engine.trace.names), engine)
