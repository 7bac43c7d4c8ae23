"""UCB1 (Auer et al. 2002) for agents that share counts: a plugin of coband.

After every ``period`` pulls an agent sends a count and a sum of rewards for each arm, of all its pulls; the server adds
up what the agents have sent last, and answers with the totals. Nothing here is random; an agent that draws does so from
``self.context.rng``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from coband import (
    SERVER,
    Address,
    Agent,
    ArmSet,
    ClosedForm,
    Message,
    MessageSize,
    Needs,
    Server,
    algorithm_of,
    on,
    payload,
)

FloatArray = NDArray[np.float64]


class Counts(Message):
    """Up: those of an agent's pulls. Down: the totals of everybody. Shapes (n,)."""

    counts: FloatArray = payload()
    sums: FloatArray = payload()


def arms_of(node: Agent | Server) -> int:
    """How many arms there are."""
    assert node.context.domain is not None  # since the algorithm needs fixed arms
    return len(node.context.domain)


class FedUcb1Server(Server):
    """Adds up what the agents have told it last."""

    def start(self) -> None:
        self.of_agents = np.zeros((self.context.agents, 2, arms_of(self)))

    @on(Counts)
    def add(self, message: Counts, agent: Address) -> Counts:
        """Take an agent's counts in and answer with the totals."""
        self.of_agents[agent] = message.counts, message.sums
        self.rounds += 1
        counts, sums = self.of_agents.sum(axis=0)
        return Counts(counts=counts, sums=sums, round=self.rounds)

    def discrepancies(self, uploads: Sequence[tuple[Address, Message]]) -> Iterator[str]:
        """The totals are the sum over the last message of each agent."""
        last = {agent: message for agent, message in uploads if isinstance(message, Counts)}
        sent = sum((np.stack([one.counts, one.sums]) for one in last.values()), np.zeros(self.of_agents.shape[1:]))
        if not np.allclose(self.of_agents.sum(axis=0), sent):
            yield f"the totals are not the sum over the last counts of {len(last)} agents"


class FedUcb1(Agent):
    """UCB1 on the counts of all agents, which share them every so many pulls."""

    server = FedUcb1Server
    period: Annotated[int, Field(ge=1, description="An agent shares its counts after so many pulls.")] = 10

    def start(self) -> None:
        self.own = np.zeros((2, arms_of(self)))  # counts and sums of its pulls
        self.others = np.zeros_like(self.own)
        self.sharing = False

    def choose(self, arms: ArmSet) -> int:
        """The arm with the largest mean + sqrt(2 ln t / n); an arm that nobody has pulled comes first."""
        counts, sums = self.others + self.own
        if not counts.all():
            return int(np.argmin(counts))
        return int(np.argmax(sums / counts + np.sqrt(2 * np.log(counts.sum()) / counts)))

    def observe(self, arms: ArmSet, arm: int, reward: float) -> None:
        """Count the pull; share when it is time and the last answer is here."""
        self.own[:, arm] += (1, reward)
        if self.unshared >= self.period and not self.sharing:
            self.begin(self.share())

    async def share(self) -> None:
        """Send the counts, and wait for the totals; without an answer go on, as the next message says it all again."""
        self.sharing = True
        told = self.own.copy()
        totals = await self.ask(SERVER, Counts(counts=told[0], sums=told[1], pulls=self.unshared), reply=Counts)
        if isinstance(totals, Counts):
            self.others = np.stack([totals.counts, totals.sums]) - told
        self.sharing = False


ALGORITHM = algorithm_of(
    FedUcb1,
    name="fed_ucb1",
    reference="Auer et al. 2002, for many agents",
    needs=Needs(ordered=True, fixed_arms=True),
    knows=(),
    messages=(
        MessageSize(Counts, "up", "2*arms"),
        MessageSize(Counts, "down", "2*arms", "to the agent that sent"),
    ),
    counts=(
        ClosedForm("uplink_scalars", "N*floor(T / N / period)*2*arms", "schedule == 'rounds'"),
        ClosedForm("downlink_scalars", "N*floor(T / N / period)*2*arms", "schedule == 'rounds'"),
    ),
)
