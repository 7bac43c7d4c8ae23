"""UCB1 (Auer et al. 2002) for agents that share counts: a plugin of coband.

After every ``period`` pulls an agent sends what is new, one count and one sum of rewards per arm; the server adds it up
and answers with the totals of everybody.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from coband import (
    SERVER,
    Address,
    Agent,
    Algorithm,
    ArmSet,
    ClosedForm,
    Config,
    Message,
    MessageSize,
    Needs,
    NodeContext,
    Outbox,
    Server,
    payload,
)

FloatArray = NDArray[np.float64]


class FedUcb1Config(Config):
    """Parameters of fed_ucb1."""

    period: int = Field(default=10, ge=1)
    """An agent shares its counts after so many pulls."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Counts(Message):
    """Up: what is new at an agent. Down: the totals of everybody. Shapes (n,)."""

    kind: ClassVar[str] = "counts"
    counts: FloatArray = payload()
    sums: FloatArray = payload()


class FedUcb1(Agent):
    """Chooses by the server's totals and its own pulls since then."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        assert context.domain is not None  # since the algorithm needs fixed arms
        self.known = np.zeros((2, len(context.domain)))  # counts and sums that the server has told
        self.new = np.zeros_like(self.known)  # own pulls that it does not have
        self.on_the_way: FloatArray | None = None  # own pulls that it is being told

    def choose(self, arms: ArmSet) -> int:
        """The arm with the largest mean + sqrt(2 ln t / n); an arm that nobody has pulled comes first."""
        counts, sums = self.known + self.new + (0 if self.on_the_way is None else self.on_the_way)
        if not counts.all():
            return int(np.argmin(counts))
        return int(np.argmax(sums / counts + np.sqrt(2 * np.log(counts.sum()) / counts)))

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        """Count the pull; send what is new when it is time and nothing is on the way."""
        self.new[:, arm] += (1, reward)
        self.unshared += 1
        if self.unshared < self.context.config.period or self.on_the_way is not None:
            return []
        self.on_the_way, self.new = self.new, np.zeros_like(self.new)
        pulls, self.unshared = self.unshared, 0
        return [(SERVER, Counts(counts=self.on_the_way[0], sums=self.on_the_way[1], pulls=pulls))]

    def receive(self, message: Message, source: Address) -> Outbox:
        """The totals have come, with what was on the way among them."""
        assert isinstance(message, Counts)
        self.known = np.stack([message.counts, message.sums])
        self.on_the_way = None
        return []


class FedUcb1Server(Server):
    """Adds up."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        assert context.domain is not None
        self.totals = np.zeros((2, len(context.domain)))

    def receive(self, message: Message, source: Address) -> Outbox:
        """Take an agent's counts in and answer with the totals."""
        assert isinstance(message, Counts)
        self.totals = self.totals + np.stack([message.counts, message.sums])
        self.applied += message.pulls
        self.rounds += 1
        return [(source, Counts(counts=self.totals[0], sums=self.totals[1], round=self.rounds))]


ALGORITHM = Algorithm(
    name="fed_ucb1",
    agent=FedUcb1,
    server="fed_ucb1:FedUcb1Server",
    config=FedUcb1Config,
    summary="UCB1 on the counts of all agents, which share them every so many pulls.",
    reference="Auer et al. 2002, for many agents",
    needs=Needs(ordered=True, fixed_arms=True),
    messages=(
        MessageSize(Counts, "up", "2*arms"),
        MessageSize(Counts, "down", "2*arms", "to the agent that sent"),
    ),
    counts=(
        ClosedForm("uplink_scalars", "N*floor(T / N / period)*2*arms", "schedule == 'rounds'"),
        ClosedForm("downlink_scalars", "N*floor(T / N / period)*2*arms", "schedule == 'rounds'"),
    ),
)
