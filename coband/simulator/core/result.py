"""What a run gives when it has ended."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from coband.simulator.arrays import FloatArray
from coband.simulator.core.conversations import Talks
from coband.simulator.core.nodes.graphs import Graph
from coband.simulator.core.nodes.lazy_sequence import each, made
from coband.simulator.core.nodes.node import BatchAgent, Client, Node, NodeContext, Server
from coband.simulator.core.nodes.own_noise import OwnNoise
from coband.simulator.core.records.invariants import Audit
from coband.simulator.core.records.ledger import Ledger
from coband.simulator.core.records.progress import NO_AGES, Ages, Progress
from coband.simulator.core.run_context import RunContext
from coband.simulator.core.world import World, in_batches
from coband.simulator.metrics import Metric

if TYPE_CHECKING:
    from coband.simulator.core.wire.noising import Noising

MOST_STUCK = 3
"""Agents of which it is said where they wait when a run has ended."""
AgentMetrics = dict[str, int | float | str | None]
"""One agent: number, name if it has one, turns, regret, rounds, scalars, what it reports, and its score."""


@dataclass
class RunResult:
    """What one run gives.

    Attributes:
        totals: the counts of the ledger and the nodes' own numbers.
        times, regret, scalars: after each pull or batch, simulated time, cumulative pseudo-regret and scalars.
        turns_series: cumulative number of pulls after each pull or batch.
        reward_series: sum of the rewards of these pulls.
        energy_series: joules that turns and messages of all agents have taken by then; empty without batteries.
        by_agent: what is known of each agent alone, in order.
        fingerprint: of the trace.
        graph: how the agents' graph was made, and its size; None in a star.
        stalled: turns that the schedule has and no agent took: they waited for messages that did not come, or were down
            for good.
        never_taken: how many these are, and why, in a sentence; empty if all were taken.
        warnings: how the scenario's options make the run misleading, a sentence each.
        ages: of the information that decisions were made with.
        closest: how close the closest decision of each agent was (`core.nodes.decisions`). Like last bits of scores,
            which it is about, it may change with what saves work alone, and is not part of ``by_agent``.
    """

    turns: int
    regret: float
    reward: float
    totals: dict[str, int | float]
    rounds: int
    simulated_time: float
    fingerprint: str
    graph: str | None
    stalled: int
    times: FloatArray
    regret_series: FloatArray
    scalars_series: NDArray[np.int64]
    ledger: Ledger
    audit: Audit
    turns_series: NDArray[np.int64]
    by_agent: Sequence[AgentMetrics]
    agents: Sequence[Client]
    server: Server | None
    never_taken: str = ""
    warnings: tuple[str, ...] = ()
    closest: Sequence[float | None] = ()
    ages: Ages = NO_AGES
    energy_series: FloatArray = field(default_factory=partial(np.empty, 0))
    reward_series: FloatArray = field(default_factory=partial(np.empty, 0))

    @property
    def closest_decision(self) -> float | None:
        """How close the closest decision of all agents was; None without any."""
        return min((gap for gap in self.closest if gap is not None), default=None)


class ByAgent(Sequence[AgentMetrics]):
    """What is known of each agent alone; a row is put together when somebody asks for it, which saves memory.

    Args:
        agents: all of them.
        row: makes the row of an agent at a place.
    """

    def __init__(self, agents: Sequence[Client], row: Callable[[int, Client], AgentMetrics]) -> None:
        self._agents, self._row = agents, row

    def __len__(self) -> int:
        return len(self._agents)

    def __getitem__(self, place: Any) -> Any:
        places = range(len(self))[place]
        if isinstance(places, range):
            return [self[number] for number in places]
        return self._row(places, self._agents[places])

    def __iter__(self) -> Iterator[AgentMetrics]:
        return map(self._row, range(len(self)), each(self._agents))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Ended:
    """A run in which nothing is left to happen.

    Attributes:
        last_delivery: when a message last reached a node.
        stalled: turns that were never taken, by agent.
        declared: the metrics that the algorithm declares, by name.
        dishonest: the agents that do not send what their protocol says.
        noising: the noise of the wire; None: there is none.
        private: what finds the noise of the nodes' own; None: they have none.
        late_rewards: whether rewards come after their turns.
        names: what agents are called; empty: nobody says.
    """

    run: RunContext
    progress: Progress
    world: World
    graph: Graph | None
    agents: Sequence[Client]
    server: Server | None
    last_delivery: float
    stalled: Mapping[int, int]
    declared: Mapping[str, Metric]
    dishonest: frozenset[int] = frozenset()
    noising: Noising | None = None
    private: Callable[[NodeContext], OwnNoise] | None = None
    late_rewards: bool = False
    names: Sequence[str] = ()

    def result(self) -> RunResult:
        """The run summed up."""
        progress, energy = self.progress, self.run.energy
        if energy is not None:
            energy.at_end(len(self.agents), self._end)
        regret = np.cumsum(progress.regrets)
        last = float(regret[-1]) if regret.size else 0.0
        return RunResult(
            turns=sum(progress.pulls),
            regret=last,
            reward=progress.reward,
            totals={"regret_per_agent": last / len(self.agents), **self._totals()},
            rounds=max(node.rounds for node in self._nodes),
            simulated_time=self._end,
            fingerprint=self.run.trace.fingerprint(),
            graph=None if self.graph is None else self.graph.summary,
            stalled=sum(self.stalled.values()),
            times=np.asarray(progress.times),
            regret_series=regret,
            scalars_series=np.asarray(progress.scalars, dtype=np.int64),
            turns_series=np.cumsum(progress.pulls, dtype=np.int64),
            by_agent=self._by_agent(),
            closest=self._closest(),
            ages=Ages.of(progress.decisions, progress.times),
            energy_series=np.asarray(progress.energies),
            reward_series=np.asarray(progress.earned),
            ledger=self.run.ledger,
            audit=self.run.audit,
            agents=self.agents,
            server=self.server,
            never_taken=self._never_taken(),
            warnings=(*getattr(self.world, "warnings", ()), *self._warnings()),
        )

    @cached_property
    def _end(self) -> float:
        """When the last pull was made, reward learnt from or message delivered; what is never delivered goes on."""
        return max(max(self.progress.times, default=0.0), self.progress.last_reward, self.last_delivery)

    def _closest(self) -> list[float | None]:
        """How close the closest decision of each agent was; None of one who has not decided."""
        noted = self.agents[0].context.closest
        return [None] * len(self.agents) if noted is None else noted.of_agents()

    @property
    def _nodes(self) -> Iterable[Client | Server]:
        return chain(each(self.agents), [] if self.server is None else [self.server])

    def _totals(self) -> dict[str, int | float]:
        """The ledger's counts, what was lost, the nodes' own numbers, and how right the answers are."""
        audit, world = self.run.audit, self.world
        totals = self.run.ledger.totals() | {"dropped": audit.dropped_copies, "expired": audit.given_up}
        totals |= {"outstanding": self.progress.outstanding} if self.late_rewards else {}
        totals |= {} if self.run.energy is None else self.run.energy.totals(len(self.agents))
        totals |= self._of_honest() | self._spent() | self._reported() | dict(getattr(world, "measures", {}))
        if in_batches(world):
            batch_agents = [agent for agent in self.agents if isinstance(agent, BatchAgent)]
            totals.update(world.score([agent.answer for agent in batch_agents]))
            if batch_agents and (means_of := getattr(world, "means", None)) is not None:
                means = np.stack([means_of(agent, 1) for agent in range(len(batch_agents))])
                for agent in batch_agents:
                    totals.update(agent.report_in_hindsight(means))
        return totals

    def _of_honest(self) -> dict[str, int | float]:
        """The regret of honest agents, where not all are."""
        if not self.dishonest:
            return {}
        pairs = zip(self.progress.agents, self.progress.regrets, strict=True)
        regret = float(np.sum([regret for agent, regret in pairs if agent not in self.dishonest]))
        honest = len(self.agents) - len(self.dishonest)
        return {"dishonest": len(self.dishonest), "honest_regret": regret} | (
            {"honest_regret_per_agent": regret / honest} if honest else {}
        )

    def _spent(self) -> dict[str, int | float]:
        """What noise has left of privacy."""
        if self.noising is None:
            own = [found["epsilon"] for found in map(self._spent_by, range(len(self.agents))) if found]
            return {"epsilon": max(own)} if own else {}
        most = max(map(self.noising.spent, range(len(self.agents))))
        found: dict[str, int | float] = {"clipped": sum(self.noising.clipped)}
        return {"epsilon": most, **found} if math.isfinite(most) else found

    def _spent_by(self, agent: int) -> dict[str, float]:
        """What an agent has spent by noise on the wire, or else by that of the nodes' own, where that can be known."""
        if self.noising is not None:
            return self.noising.by_quarter(agent, self._end)
        if self.private is None:
            return {}
        from coband.simulator.core.wire import accounting  # few runs need it

        if not accounting.installed():
            return {}
        noise, node = self.private(self.agents[0].context), self.agents[agent]
        releases = node.releases if noise.adversary == "server" or self.server is None else self.server.releases
        epsilon = accounting.own_epsilon(noise.spent(releases), noise.delta)
        return {"epsilon": epsilon} if math.isfinite(epsilon) else {}

    def _warnings(self) -> Iterator[str]:
        """What nodes warn of, noise that is too much, and questions of a kind of which none was answered."""
        if sentence := self._never_taken():
            yield sentence
        yield from warnings_of(self._nodes)
        if self.noising is not None and (sentence := self.noising.too_much):
            yield sentence
        if self.private is not None and self.noising is None:
            spent, promised = self._spent().get("epsilon", 0.0), self.private(self.agents[0].context).epsilon
            if spent > promised * (1.0 + 1e-6):
                yield (
                    f"an epsilon of {spent:.4g} is spent, more than the {promised:g} that is promised: agents sent "
                    "more often than their noise is made for; give a larger horizon"
                )
        nodes = [*made(self.agents), *([] if self.server is None else [self.server])]
        if unsent := sum(node.unsent for node in nodes if isinstance(node, Talks)):
            how = "outside a conversation return self.sent() after self.tell"
            yield f"{unsent:,} messages that were told were never sent: {how}"
        declined = sum((Counter(node.declined) for node in nodes if node.declined), Counter[str]())
        for kind, count in declined.items():
            sent = sum(entry.messages for (name, _), entry in self.run.ledger.by_kind.items() if name == kind)
            if sent == count:
                handler = "the method that handles them returns none"
                yield f"{count:,} of {sent:,} questions {kind!r} arrived and got no answer: {handler}"
        yield from islice(self._stuck(), MOST_STUCK)

    def _never_taken(self) -> str:
        """How many turns were never taken, and why."""
        for_good, waited = "were down for good", "waited for messages that did not come"
        turns, gone = sum(self.stalled.values()), self.run.down.gone
        waiting = {agent.context.index for agent in made(self.agents) if agent.waiting} - gone if turns else ()
        why = {waited if agent in waiting else for_good for agent, left in self.stalled.items() if left}
        return f"{turns:,} turns were never taken: agents {' or '.join(sorted(why))}" if turns else ""

    def _stuck(self) -> Iterator[str]:
        """Where agents that wait forever stand in their conversations."""
        for agent in made(self.agents) if any(self.stalled.values()) else ():
            if isinstance(agent, Talks) and agent.waiting:
                for sentence in agent.blocked_on:
                    yield f"agent {agent.context.index} still waits at the end of a run: {sentence}"

    def _reported(self) -> dict[str, int | float]:
        """The numbers that nodes report, each combined as its metric says; the sum where nobody declares it."""
        declared = self.declared
        per_agent = [name for name, metric in declared.items() if metric.aggregate is not None]
        values: dict[str, list[int | float]] = {}
        for node in self._nodes:
            for key, value in node.report().items():
                values.setdefault(key, []).append(value)
        for agent in each(self.agents) if per_agent else ():
            for key, own in agent.report_own().items():
                if key in per_agent and isinstance(own, (int, float)):
                    values.setdefault(key, []).append(own)
        return {key: declared[key].combined(found) if key in declared else sum(found) for key, found in values.items()}

    def _by_agent(self) -> ByAgent:
        """The numbers of all agents, in order."""
        progress, count = self.progress, len(self.agents)
        turns = np.bincount(progress.agents, progress.pulls, count).astype(np.int64)
        regret = np.bincount(progress.agents, progress.regrets, count)
        return ByAgent(self.agents, lambda at, agent: self._row(at, agent, turns.item(at), regret.item(at)))

    def _row(self, index: int, agent: Client, turns: int, regret: float) -> AgentMetrics:
        ledger = self.run.ledger
        return {
            "agent": index,
            **({"name": self.names[index]} if self.names else {}),
            "turns": turns,
            "regret": regret,
            "rounds": agent.rounds,
            "uplink_scalars": ledger.uplink_by_agent[index],
            "downlink_scalars": ledger.downlink_by_agent[index],
            "peer_scalars": ledger.peer_by_agent[index],
            **agent.report_own(),
            **self._score_of(index, agent),
            **({"dishonest": int(index in self.dishonest)} if self.dishonest else {}),
            **self._spent_by(index),
            **({} if self.run.energy is None else self.run.energy.by_agent(index)),
        }

    def _score_of(self, index: int, agent: Client) -> AgentMetrics:
        if isinstance(agent, BatchAgent) and in_batches(self.world):
            return dict(self.world.score_of(index, agent.answer))
        return {}


def warnings_of(nodes: Iterable[Node]) -> tuple[str, ...]:
    """What nodes warn of, each sentence once."""
    return tuple(dict.fromkeys(sentence for node in nodes for sentence in node.warnings()))
