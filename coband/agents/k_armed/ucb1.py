"""UCB1 (Auer et al. 2002), by each agent alone or with every pull told to all neighbours at once.
As printed: `tests/oracles/k_armed/ucb1.py`. Next: `agent.py`.

Each arm once, then the arm with the largest s/n + 2 sd sqrt(alpha ln(t) / n), where n and s are the number and the sum
of the rewards of an arm, and t is the sum of n over arms.

With ``sharing: all``, the immediate broadcast that many papers compare with, an agent sends (arm, reward) of each pull
to all neighbours, 2 scalars; n and s have what it has heard. Nothing is passed on.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from coband.agents.k_armed.agent import KArmedUcb
from coband.agents.messages.k_armed import ArmReward
from coband.simulator.arms import ArmSet
from coband.simulator.core.algorithm import Algorithm, ClosedForm, MessageSize, Needs
from coband.simulator.core.config import Config
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import NEIGHBOURS, Address, NodeContext, Outbox, UnsupportedScenario


class Ucb1Config(Config):
    """Parameters of UCB1."""

    alpha: float = Field(default=2.0, ge=0)
    """Exploration, 2 in the paper; of alpha and sd only alpha sd^2 matters."""
    sd: float = Field(default=0.5, ge=0)
    """Scale of the rewards: 1/2 for rewards from 0 to 1, else their sub-Gaussian standard deviation."""
    sharing: Literal["none", "all"] = "none"
    """all: each pull goes to all neighbours at once, on a graph."""


class Ucb1(KArmedUcb):
    """UCB1 on its own pulls, and on those that neighbours tell it."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.shares = self.config.sharing == "all"
        if self.shares and (context.graph is None or context.domain is None):
            raise UnsupportedScenario(
                "ucb1 with sharing: all needs a graph of agents (network.topology) and the same arms for all of them; "
                "leave sharing out, or give such a topology and such a problem, such as k_armed"
            )

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        super().observe(arms, arm, reward)
        return [(NEIGHBOURS, ArmReward(arm=arm, reward=reward))] if self.shares else []

    def receive(self, message: Message, source: Address) -> Outbox:
        """A neighbour's pull."""
        assert isinstance(message, ArmReward)
        self.learn(message.arm, message.reward)
        return []


ALGORITHM = Algorithm(
    name="ucb1",
    agent=Ucb1,
    server=None,
    config=Ucb1Config,
    summary="UCB1: K arms, every agent alone, or with each pull told to all neighbours.",
    reference="Auer et al. 2002",
    needs=Needs(topologies=("star", "graph"), reliable=False, steady_arms=True),
    messages=(MessageSize(ArmReward, "peer", "2", "to all neighbours", due=True),),
    counts=(
        ClosedForm("scalars", "0", "sharing == 'none'"),
        ClosedForm("peer_scalars", "2 * transmissions", "sharing == 'all'"),
    ),
    rate="alone: regret O(K log T / gap) per agent (Auer et al. 2002, Theorem 1)",
    cites=("auer2002finite",),
    search={"alpha": "0.05..4"},
)
