"""UCB with on-demand communication: agents tell a neighbour their pulls again only after that one has answered.
As printed: `tests/oracles/k_armed/ucb_odc.py`. Next: `agent.py`, `messages/k_armed.py`.

Ours, after "On-Demand Communication for Asynchronous Multi-Agent Bandits" (Chen et al. 2023), whose algorithm is
another one. Agent v has a flag for each neighbour u, open at first.

1. The arm with the largest s/n + 2 sd sqrt(alpha ln(t) / n); n and s have the agent's own pulls and those that it
   was told, t is the sum of n over arms; an arm that nobody is known to have pulled comes first.
2. After its pull: to each u whose flag is open, once threshold * growth^(messages sent to u) own pulls are new to u, it
   sends the numbers and sums of all its own pulls (2 K scalars), and closes the flag.
3. A message from u takes the place of the last one from u in n and s, and opens the flag for u.

So messages alternate within a pair: without loss and ``redemand``, the numbers of messages from v to u and from u to v
differ by one at most, and the slower of the two sets the pace. When what is on the way within a pair is lost, which is
one message, or two where the first ones have crossed, both flags stay closed for the rest of the run; with ``redemand``
a flag opens by itself so long after a message. A message that the transport has given up counts as not sent, if it is
the last one. Messages have all pulls and not only the new ones, so that what is lost or doubled spoils no count.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from coband.agents.k_armed.agent import KArmedUcb
from coband.agents.messages.k_armed import Totals
from coband.simulator.arms import ArmSet
from coband.simulator.core.algorithm import Algorithm, ClosedForm, MessageSize, Needs
from coband.simulator.core.config import TIME, Config
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import Address, Later, NodeContext, Outbox, Timer


class UcbOdcConfig(Config):
    """Parameters of UCB with on-demand communication."""

    alpha: float = Field(default=2.0, ge=0)
    """Exploration, as in UCB1; of alpha and sd only alpha sd^2 matters."""
    sd: float = Field(default=0.5, ge=0)
    """Scale of the rewards: 1/2 for rewards from 0 to 1, else their sub-Gaussian standard deviation."""
    threshold: float = Field(default=1.0, gt=0)
    """Own pulls that a first message to a neighbour is sent for."""
    growth: float = Field(default=1.0, ge=1)
    """Each further message to a neighbour takes so many times more of them."""
    redemand: Annotated[float | None, TIME] = Field(default=None, gt=0)
    """A flag opens by itself so long after the message that closed it; null: never."""


class Redemand(Timer):
    """Opens the flag of an agent, unless another message was sent to it after own turn ``turn``."""

    kind: ClassVar[str] = "redemand"
    about: int
    turn: int


class UcbOdc(KArmedUcb):
    """UCB on its own pulls and on those that neighbours have told it."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.own = np.zeros((2, len(self.counts)))
        self.told = {u: np.zeros((2, len(self.counts))) for u in self.neighbours}
        self.open = dict.fromkeys(self.neighbours, True)
        self.sent = dict.fromkeys(self.neighbours, 0)
        self.sent_at = dict.fromkeys(self.neighbours, 0)  # own pulls at the last message

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        """Step 2."""
        super().observe(arms, arm, reward)
        self.own[:, arm] += 1.0, reward
        outbox: Outbox = []
        for u in [u for u, is_open in self.open.items() if is_open]:
            if self.turns - self.sent_at[u] >= self.config.threshold * self.config.growth ** self.sent[u]:
                outbox += self._tell(u)
        return outbox

    def _tell(self, u: Address) -> Outbox:
        counts, sums = self.own.copy()
        pulls = self.turns - self.sent_at[u]
        told: Outbox = [(u, Totals(counts=counts, sums=sums, round=self.turns, pulls=pulls))]
        self.open[u] = False
        self.sent[u] += 1
        self.sent_at[u] = self.turns
        if self.config.redemand is not None:
            told.append((Later(self.config.redemand), Redemand(about=u, turn=self.turns)))
        return told

    def undelivered(self, message: Message, recipient: Address) -> Outbox:
        """As if it had not been sent."""
        if self.sent_at[recipient] == message.round:
            self.open[recipient] = True
            self.sent[recipient] -= 1
            self.sent_at[recipient] -= message.pulls
        return []

    def on_timer(self, timer: Message) -> Outbox | None:
        """Open a flag for which nothing has come."""
        if not isinstance(timer, Redemand) or self.open[timer.about] or self.sent_at[timer.about] != timer.turn:
            return None
        self.open[timer.about] = True
        return []

    def receive(self, message: Message, source: Address) -> Outbox:
        """Step 3; a message that is older than the last one from there only opens the flag."""
        assert isinstance(message, Totals)
        self.open[source] = True
        totals = np.array([message.counts, message.sums])
        if totals[0].sum() > self.told[source][0].sum():
            self.counts += totals[0] - self.told[source][0]
            self.sums += totals[1] - self.told[source][1]
            self.told[source] = totals
            self.known = int(self.counts.sum())
        return []


ALGORITHM = Algorithm(
    name="ucb_odc",
    agent=UcbOdc,
    server=None,
    config=UcbOdcConfig,
    summary="K arms on a graph: neighbours tell each other their pulls alternately, on demand.",
    reference="ours, after Chen et al. 2023",
    needs=Needs(topologies=("graph",), reliable=False, fixed_arms=True),
    messages=(MessageSize(Totals, "peer", "2 * k", "to a neighbour that has answered"),),
    counts=(ClosedForm("peer_scalars", "2 * arms * transmissions"),),
    cites=("chen2023demand",),
    search={"threshold": "1..1000", "growth": "1..3"},
)
