"""Agents on a graph that tell their pulls to all within reach, and learn from the pulls of those that they accept."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from coband.agents.graph.coop_config import hops_of
from coband.agents.graph.tasks_posterior import Learnt
from coband.agents.messages.sharing import Pull
from coband.simulator.arms import ArmSet
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import Address, Agent, Neighbours, NodeContext, Outbox

Groups = tuple[tuple[int, ...], ...]


class LocalAgent(Agent):
    """Tells all agents within gamma hops of its pulls, and learns from what reaches it of agents that it accepts."""

    accepts: frozenset[Address]
    kept = ("trial",)

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        assert context.graph is not None
        self.graph = context.graph
        self.hops = hops_of(context.config.hops, self.graph.distances)
        groups = context.sharing.get("groups", self._groups)
        self.members = groups[context.index]
        self.accepts = frozenset(self.members)
        self._most_tasks = max(map(len, groups))
        self.knowledge: Learnt = self._knowledge(groups)
        self.trial = 0
        self._late = False  # whether pulls wait one trial longer
        self._arrived: list[Pull] = []  # not yet in use
        self._new: list[Pull] = []  # learnt at the next turn

    def _groups(self) -> Groups:
        """For each agent, the agents whose observations it accepts: all within reach."""
        return tuple(self.graph.ball(agent, self.hops) for agent in range(self.graph.nodes))

    @property
    def pulls_in_model(self) -> int | None:
        """Those that it has learnt from."""
        return self.knowledge.observations

    @abstractmethod
    def _knowledge(self, groups: Groups) -> Learnt:
        """What it knows at first, nothing."""

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        """Lines 9-18: keep the pull and send it to all within gamma hops."""
        if self._late:
            self._take_in()
        pull = self._pull(arms, arm, reward)
        self._new.append(pull)
        self.unshared += 1
        return [(Neighbours(self.hops), pull)]

    def _pull(self, arms: ArmSet, arm: int, reward: float) -> Pull:
        own, point = self.context.index, arms.features[arm]
        return Pull(trial=self.trial, agent=own, point=point, reward=reward, context=None)

    def receive(self, message: Message, source: Address) -> Outbox:
        """Lines 19-23: put it in the buffer, if it is accepted."""
        assert isinstance(message, Pull)
        if message.agent in self.accepts:
            self._arrived.append(message)
        return []

    def receive_all(self, messages: Sequence[tuple[Address, Message]]) -> Outbox:
        """The same for all messages of a trial."""
        sources, pulls = zip(*messages, strict=True) if messages else ((), ())
        if not self.accepts.issuperset(sources):
            pulls = tuple(pull for source, pull in messages if source in self.accepts)
        self._arrived += pulls
        return []

    def _take_in(self) -> None:
        """What has arrived comes into use: at the next turn, or after the next pull with ``delay: d``."""
        self._new += self._arrived
        self._arrived.clear()

    def _begin_turn(self) -> None:
        """With ``delay: d_minus_1`` a turn knows all that has arrived before it."""
        if not self._late:
            self._take_in()

    def _learn(self) -> None:
        """Lines 24-33."""
        if new := self._taken():
            self.knowledge.learn(new)

    def _taken(self) -> list[Pull]:
        """What is new at this turn, and new no longer after it."""
        self._begin_turn()
        new, self._new = self._new, []
        return new

    def report(self) -> dict[str, float | int]:
        """gamma, the reading of the delay, and whether a dictionary is large enough, reported by agent 0."""
        if self.context.index:
            return {}
        found: dict[str, float | int] = {"hops": self.hops, "extra_delay": int(self._late)}
        enough = self.knowledge.dictionary_suffices(self._most_tasks)
        return found if enough is None else {**found, "dictionary_suffices": int(enough)}
