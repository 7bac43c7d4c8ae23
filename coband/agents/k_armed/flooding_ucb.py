"""UCB whose pulls flood the graph, all of them or until they are absorbed.
As printed: `tests/oracles/k_armed/flooding_ucb.py`. Next: `agent.py`, `messages/k_armed.py`.

"Flooding with Absorption: An Efficient Protocol for Heterogeneous Bandits over Complex Networks" (Lee, Schmid and Yun
2023). Agents may be offered different arms of the problem `k_armed`.

1. An agent pulls each of its arms once, then the one with the largest s/n + sqrt(3 ln(t) / n), t its own pulls so far;
   n and s have all that it was told of the arm.
2. After the pull it sends (origin, time, arm, reward), 4 scalars, to all neighbours, for ``hops`` hops.
3. Who gets a message for the first time learns from it (what is not about its own arms does no harm), and passes it on
   to all neighbours but the sender, while hops are left. Without absorption the network does that after each trial
   (LOCAL); with ``absorption`` an agent does so at its next turn, and only if the arm is none of its own.

A copy that is lost takes all with it that it would have been passed on to.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from pydantic import Field

from coband.agents.k_armed.agent import KArmed
from coband.agents.messages.k_armed import FloodedPull
from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray, IndexArray
from coband.simulator.core.algorithm import Algorithm, ClosedForm, MessageSize, Needs
from coband.simulator.core.config import Config
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import Address, Neighbours, NodeContext, Outbox
from coband.simulator.metrics import Metric


class FloodingUcbConfig(Config):
    """Parameters of flooding."""

    hops: int = Field(default=4, ge=1)
    """How far a message gets."""
    absorption: bool = False
    """Whether an agent does not pass on what it can use itself."""
    alpha: float = Field(default=3.0, ge=0)
    """Exploration, 3 in the paper."""


class FloodingUcb(KArmed):
    """UCB on its own pulls and on those that come by."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.counts, self.sums = np.zeros((2, context.dimension))
        self.numbers: IndexArray = np.arange(0)  # of the arms that it is offered
        self._seen: dict[Address, bytearray] = {}  # by origin, whether the message of a turn has come
        self._passing: list[tuple[Address, FloodedPull]] = []

    def choose(self, arms: ArmSet) -> int:
        """Step 1."""
        if not self.turns:
            self.numbers = arms.features.argmax(axis=1)
        return self.turns if self.turns < len(arms) else self.best(self.scores())

    def scores(self) -> FloatArray:
        """Those of the arms that it is offered."""
        n = self.counts[self.numbers]
        scores: FloatArray = self.sums[self.numbers] / n + np.sqrt(self.config.alpha * math.log(self.turns) / n)
        return scores

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        """Step 2, and what is due of step 3."""
        number = int(self.numbers[arm])
        super().observe(arms, number, reward)
        own = self.context.index
        self._first(own, self.turns)
        left = self.config.hops - 1 if self.config.absorption else 0
        pull = FloodedPull(origin=own, turn=self.turns, arm=number, reward=reward, hops=left)
        if not self.config.absorption:
            return [(Neighbours(self.config.hops), pull)]
        outbox: Outbox = [(u, pull) for u in self.neighbours]
        for sender, message in self._passing:
            if message.arm not in self.numbers:
                outbox += [(u, message) for u in self.neighbours if u != sender]
        self._passing = []
        return outbox

    def _first(self, origin: Address, turn: int) -> bool:
        """Note a message; whether it is new."""
        seen = self._seen.setdefault(origin, bytearray())
        seen.extend(bytes(max(0, turn + 1 - len(seen))))
        new, seen[turn] = not seen[turn], True
        return new

    def receive(self, message: Message, source: Address) -> Outbox:
        """Step 3, but for passing it on; what is known of arms of others does no harm."""
        assert isinstance(message, FloodedPull)
        if self._first(message.origin, message.turn):
            self.learn(message.arm, message.reward)
            if message.hops:
                self._passing.append((source, replace(message, hops=message.hops - 1)))
        return []

    @property
    def pulls_in_model(self) -> int | None:
        """Those of arms that it is offered."""
        return int(self.counts[self.numbers].sum())

    def report(self) -> dict[str, float | int]:
        return {} if self.context.index else {"hops": self.config.hops}


ALGORITHM = Algorithm(
    name="flooding_ucb",
    agent=FloodingUcb,
    server=None,
    config=FloodingUcbConfig,
    summary="K arms on a graph, not all offered to everybody: pulls flood the graph, until they are absorbed or not.",
    reference="Lee, Schmid and Yun 2023",
    needs=Needs(topologies=("graph",), reliable=False, steady_arms=True, prompt_rewards=True, problems=("k_armed",)),
    messages=(MessageSize(FloodedPull, "peer", "4", "to all neighbours but the sender", due=True),),
    counts=(
        ClosedForm("peer_scalars", "4 * transmissions"),
        ClosedForm("transmissions", "copies", "absorption == 0 or hops == 1"),
    ),
    metrics=(Metric("hops", "links", "gamma: how many links far a message goes", locked=True),),
    cites=("lee2023flooding",),
    search={"hops": "1..8"},
)
