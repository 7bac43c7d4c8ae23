"""Push gossip with kernel upper confidence bounds: agents on a graph send each pull to a few neighbours.
As printed: `tests/oracles/push_gossip_kernel_ucb.py`. Next: `messages/sharing.py`.

Ours, after "Epidemic Algorithms for Replicated Database Maintenance" (Demers et al. 1987) and "Gossip-based Distributed
Stochastic Bandit Algorithms" (Szorenyi et al. 2013). In each turn agent v
1. pulls the arm with the largest mu + alpha * sigma (kernel ridge regression on its own pulls and what it was sent);
2. draws min(fanout, deg(v)) neighbours by its own coin, without replacement, and sends this pull (x, y) to each.

A pull is not passed on, so the communication has an exact closed form: min(fanout, deg(v)) messages of d + 1 scalars
per turn of agent v. A neighbour that is not drawn never learns of the pull.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from coband.agents.common.parameters import KernelBandit, domain_of
from coband.agents.messages.sharing import Point
from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray
from coband.simulator.core.algorithm import Algorithm, ClosedForm, MessageSize, Needs
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import Address, Agent, NodeContext, Outbox
from coband.simulator.maths.posteriors.choose import exact
from coband.simulator.maths.posteriors.observations import Observations


class PushGossip(KernelBandit):
    """Parameters."""

    fanout: int = Field(default=1, ge=1)
    """k: neighbours that a pull is told to; all of them where there are not more."""


class PushGossipKernelUCB(Agent):
    """Kernel UCB on the agent's own pulls and on those that neighbours have told it."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.config: PushGossip = context.config
        assert context.graph is not None
        self.neighbours = context.graph.adjacency[context.index]
        self.posterior = exact(self.config.kernel, self.config.lam, domain_of(context))
        self._new: list[tuple[FloatArray, float]] = []  # learnt at the next turn, all at once
        self._told = 0  # pulls of others

    @property
    def pulls_in_model(self) -> int:
        """Its own, and those that it was told."""
        return self.unshared + self._told

    def choose(self, arms: ArmSet) -> int:
        """Step 1."""
        self.learn()
        mean, variance = self.posterior.predict(arms)
        return self.best(mean + self.config.alpha * np.sqrt(variance))

    def learn(self) -> None:
        if self._new:
            points, rewards = zip(*self._new, strict=True)
            self.posterior.update(Observations(np.array(points), np.array(rewards)))
            self._new.clear()

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        """Step 2."""
        self.unshared += 1
        point = arms.features[arm]
        self._new.append((point, reward))
        drawn = self.context.rng.choice(self.neighbours, min(self.config.fanout, len(self.neighbours)), replace=False)
        return [(neighbour, Point(point=point, reward=reward)) for neighbour in drawn.tolist()]

    def receive(self, message: Message, source: Address) -> Outbox:
        """A neighbour's pull."""
        assert isinstance(message, Point)
        self._new.append((message.point, message.reward))
        self._told += 1
        return []


ALGORITHM = Algorithm(
    name="push_gossip_kernel_ucb",
    agent=PushGossipKernelUCB,
    server=None,
    config=PushGossip,
    summary="Kernel UCB on a graph: agents tell each pull to a few neighbours, drawn by their own coins.",
    reference="push gossip: Demers et al. 1987; with bandits: Szorenyi et al. 2013",
    needs=Needs(topologies=("graph",), reliable=False, exact=("points",), exact_if="fixed_arms"),
    messages=(MessageSize(Point, "peer", "d + 1", "to each drawn neighbour", due=True),),
    counts=(
        ClosedForm("transmissions", "linked", "fanout == 1"),
        ClosedForm("deliveries", "transmissions"),
        ClosedForm("peer_scalars", "transmissions * (d + 1)"),
    ),
    cites=("demers1987epidemic", "szorenyi2013gossip"),
)
