"""The interfaces of agents and servers: state machines that the simulator calls.

A node never sleeps and never touches a clock, a file or a global random stream. The simulator calls it when its turn
has come or a message has arrived, and carries out what it answers: an outbox of (recipient, message).
Authors of algorithms find here all that these interfaces mention.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray, IntArray
from coband.simulator.core.nodes.context import NodeContext as NodeContext
from coband.simulator.core.nodes.context import Sharing as Sharing
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.outbox import ALL_AGENTS as ALL_AGENTS
from coband.simulator.core.nodes.outbox import NEIGHBOURS as NEIGHBOURS
from coband.simulator.core.nodes.outbox import SERVER as SERVER
from coband.simulator.core.nodes.outbox import Address as Address
from coband.simulator.core.nodes.outbox import Later as Later
from coband.simulator.core.nodes.outbox import Multicast as Multicast
from coband.simulator.core.nodes.outbox import Neighbours as Neighbours
from coband.simulator.core.nodes.outbox import Outbox as Outbox
from coband.simulator.core.nodes.outbox import Recipient as Recipient
from coband.simulator.core.nodes.outbox import Timer as Timer
from coband.simulator.core.nodes.outbox import refuse_outbox
from coband.simulator.scenario_errors import BrokenOff


@dataclass(slots=True)
class Note:
    """Something a node wants the trace to say: ``event`` is one of trigger, apply, model, eliminate, stop."""

    event: str
    round: int
    version: int
    value: float


class UnsupportedScenario(ValueError):
    """An algorithm cannot do what a scenario asks of it; the text says why, and what to change."""


class NoBestArm(BrokenOff):
    """A score of an agent's is not a number, so that no arm is the best one; the text says whose and which."""


class Node(ABC):
    """Base of agents and servers.

    Attributes:
        noted: what the value of a note means, by event; a class adds its own to those of its bases.
        releases: messages on which it has put noise of its own, for the account of privacy.
        declined: questions, by kind of message, to which whoever had them said that there is no answer.
    """

    noted: ClassVar[Mapping[str, str]] = {}
    releases: int = 0
    declined: Mapping[str, int] = MappingProxyType({})
    notes: Sequence[Note] = ()

    def __init__(self, context: NodeContext) -> None:
        self.context = context

    def note(self, event: str, *, round: int = -1, version: int = -1, value: float = 0.0) -> None:
        """Tell the trace that something happened inside this node."""
        self.notes = [*self.notes, Note(event, round, version, value)]

    @abstractmethod
    def receive(self, message: Message, source: Address) -> Outbox:
        """A message has arrived; learn from it and answer."""

    def handled_by(self, message: Message) -> str:
        """Name of the method that answers such messages, for texts about it."""
        return "receive"

    def undelivered(self, message: Message, recipient: Address) -> Outbox:
        """The transport has given up a message of this node's: ``recipient`` has not got it and never will."""
        return []

    def on_timer(self, timer: Message) -> Outbox | None:
        """A timer rings, which this node has set (:class:`Later`) or its host; None: it does not matter any more.

        A timer that does not matter leaves no trace.
        """
        return None

    def warnings(self) -> Iterator[str]:
        """One sentence for each way in which the scenario's options make a run misleading; printed once."""
        return iter(())

    def report(self) -> dict[str, float | int]:
        """Numbers about the end of a run, such as ``dictionary_size``; they become part of the result."""
        return {}

    def broken_invariants(self) -> Iterator[str]:
        """One sentence for each of the node's own invariants that does not hold now."""
        return iter(())


class Client(Node):
    """Base of agents, whichever way they pull.

    Attributes:
        waiting: True while the protocol forbids a new turn.
        done: True once the agent has stopped by its own rule.
        unshared: number of own pulls that no upload to a server has taken along yet.
        rounds: completed communication rounds, where agents talk without a server.
    """

    waiting: bool = False
    done: bool = False
    unshared: int = 0
    rounds: int = 0

    def best(self, scores: FloatArray, winner: int | None = None, gap: float | None = None) -> int:
        """The place of the highest of the scores (n,).

        Among several that are exactly equal it draws one uniformly, or takes the first of them, as the scenario's
        ``ties`` says. A choice without a tie draws nothing.

        Args:
            scores: of the arms.
            winner: the place, where it is known and no other score equals it; see `winners`.
            gap: by which it is the best, where that is known; see `gaps`.

        Raises:
            NoBestArm: a score is not a number.
        """
        context = self.context
        if context.closest is not None:
            if gap is None:
                context.closest.note(context.index, scores)
            else:
                context.closest.note_gap(context.index, gap)
        if winner is not None:
            return winner
        first = int(scores.argmax())  # of a score that is not a number, if there is one
        if math.isnan(scores[first]):
            raise NoBestArm(
                f"agent {context.index} cannot choose an arm: its score of arm {first} is not a number; parameters or "
                "rewards are too large to compute with."
            )
        if context.open_ties is None:
            return first
        equal = scores == scores[first]
        if np.count_nonzero(equal) < 2 or context.ties is None:
            return first
        tied = equal.nonzero()[0]
        return int(tied[context.ties.integers(len(tied))])

    @staticmethod
    def best_together(agents: Sequence[Client], scores: FloatArray, counts: Sequence[int]) -> list[int]:
        """What ``best`` is for each of several agents.

        Args:
            agents: whose scores.
            scores: one agent's after the other's.
            counts: how many of them are each agent's.
        """
        if len(set(counts)) > 1:
            parts = np.split(scores, np.cumsum(counts[:-1]))
            return [agent.best(part) for agent, part in zip(agents, parts, strict=True)]
        table = scores.reshape(len(agents), -1)
        if agents and agents[0].context.closest is not None:
            agents[0].context.closest.note_together([agent.context.index for agent in agents], table)
        winners = enumerate(Client.winners(table))
        return [agents[row].best(table[row]) if winner is None else winner for row, winner in winners]

    @staticmethod
    def winners(table: FloatArray) -> list[int | None]:
        """The place of the highest score of each row (N, n); None where several are equal, which ``best`` decides."""
        places: list[int | None] = table.argmax(axis=1).tolist()
        for row in ((table == table.max(axis=1, keepdims=True)).sum(axis=1) != 1).nonzero()[0].tolist():
            places[row] = None
        return places

    def report_own(self) -> dict[str, float | int | None]:
        """Numbers about this agent alone, such as its ``answer``; they stand beside the other agents' in the result."""
        return {}


class Agent(Client):
    """A client that acts turn by turn: chooses an arm, learns from its reward, talks.

    Attributes:
        accepts: origins of the LOCAL messages that it looks at; None for all. ``receive_all`` may be given these alone.
        kept: names of attributes that ``choose`` sets and ``observe`` reads. Where rewards come late, they are during
            ``observe`` what they were after that ``choose``.
    """

    accepts: frozenset[Address] | None = None
    kept: ClassVar[tuple[str, ...]] = ()

    @property
    def pulls_in_model(self) -> int | None:
        """Pulls, of all agents, whose statistics are in the model by which it chooses; None: nobody counts them.

        It is asked for between ``choose`` and ``observe``. The age of information follows from it
        (``core.records.progress``); nothing else may depend on it.
        """
        return None

    @abstractmethod
    def choose(self, arms: ArmSet) -> int:
        """Number of the arm to pull, in the arm set of this turn."""

    @classmethod
    def choose_together(cls, agents: Sequence[Self], arm_sets: Sequence[ArmSet]) -> list[int]:
        """The choices of several agents whose turns fall on one instant, each from its arm set; see ``cohort``.

        Each is what ``choose`` would be, with the same draws and notes; only work may be shared. The simulator asks
        for it only where it may be shared, and where no class below overrides ``choose``.
        """
        return [agent.choose(arms) for agent, arms in zip(agents, arm_sets, strict=True)]

    def receive_all(self, messages: Sequence[tuple[Address, Message]]) -> Outbox:
        """LOCAL messages that arrived at one moment, each with the agent that it is from."""
        outbox: Outbox = []
        for source, message in messages:
            answer = self.receive(message, source)
            try:
                outbox += answer
            except TypeError:
                refuse_outbox(answer, self, "receive")
                raise
        return outbox

    def look_ahead(self, arm_sets: Sequence[ArmSet]) -> None:
        """The arm sets of the agent's turns to come, the next one first: a chance to prepare several at once.

        ``choose`` and ``observe`` are given the same objects. Nothing but time may depend on whether this is called.
        """

    @abstractmethod
    def observe(self, arms: ArmSet, arm: int, reward: float) -> Any:
        """Learn from the pull of an arm of the turn's arm set; answer with the messages to send now, an `Outbox`."""


class BatchAgent(Client):
    """A client that acts phase by phase: asks for a batch of pulls, learns from their means, talks.

    Attributes:
        answer: the arm that it declares the best; None while it does not know.
    """

    answer: int | None = None

    @abstractmethod
    def request(self) -> IntArray:
        """How often to pull each of its arms in the phase that begins now, shape (n,)."""

    @abstractmethod
    def observe_batch(self, counts: IntArray, means: FloatArray) -> Outbox:
        """Learn from the mean reward of each arm, (n,), 0 where it was not pulled; answer with the messages to send."""

    def report_in_hindsight(self, means: FloatArray) -> dict[str, float | int]:
        """Numbers for the result that need the hidden means of all agents, (agents, n); asked for after the run."""
        return {}


class RobustSums(Protocol):
    """What a server takes in place of sums (`core.wire.defences.Defended`)."""

    def total(self, place: str, source: Address, news: FloatArray, symmetric: bool = False) -> FloatArray:
        """n times the robust mean, when the statistics of an agent have grown by these."""

    def robust(self, statistics: Sequence[FloatArray], symmetric: bool = False) -> FloatArray:
        """n times the robust mean of the statistics of n agents."""


class Server(Node):
    """The centre of a star.

    Attributes:
        rounds: completed communication rounds, as the protocol defines them.
        applied: number of pulls whose statistics the server has taken in.
        defence: what it takes in place of sums, of fields with ``adds="server"`` (`payload`); None: the sum.
    """

    rounds: int = 0
    applied: int = 0
    defence: RobustSums | None = None

    def discrepancies(self, uploads: Sequence[tuple[Address, Message]]) -> Iterator[str]:
        """One sentence for each way in which the statistics differ from the sum over ``uploads``.

        Args:
            uploads: every message of an agent that this server has handled, in that order, with its sender.
        """
        return iter(())
