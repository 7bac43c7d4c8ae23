"""Dist-KernelUCB: "Kernel Methods for Cooperative Multi-Agent Contextual Bandits" (Dubey and Pentland 2020),
Algorithm 3.
As printed: `tests/oracles/coop_kernel_ucb.py`. Next: `coop_kernel_ucb.py`, `messages/sharing.py`.

For one arm set at all turns. Central agents learn from all that reaches them; every other one pulls the arm that its
centre pulled d trials earlier, d links away (d + 1 trials with ``delay: d``). Until it has heard of its centre it runs
its own UCB, line 8: Algorithm 1 on its own pulls. A peripheral agent's pulls after that are not data of its own, since
it never uses them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from coband.agents.graph.coop_config import WithTasks
from coband.agents.graph.coop_kernel_ucb import ALGORITHM as COOP
from coband.agents.graph.coop_kernel_ucb import REACH, EagerKernelUCB
from coband.agents.graph.local_agent import Groups
from coband.agents.messages.sharing import Pull
from coband.simulator.arms import ArmSet
from coband.simulator.core.algorithm import Needs
from coband.simulator.core.nodes.node import NodeContext, Outbox
from coband.simulator.maths.graphs.covers import Centres, centres, power_graph
from coband.simulator.metrics import Metric


class DistKernelUCB(EagerKernelUCB):
    """Algorithm 3, central and peripheral agents."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.centre = self._centres().centre_of[context.index]
        self.central = self.centre == context.index
        self._stored: Pull | None = None
        if not self.central:
            self.accepts = frozenset((self.centre,))

    def _centres(self) -> Centres:
        return self.context.sharing.get("centres", lambda: centres(power_graph(self.graph.distances, self.hops)))

    def _groups(self) -> Groups:
        """A central agent accepts all observations within reach, any other its own alone."""
        found = self._centres().centre_of
        return tuple(
            self.graph.ball(agent, self.hops) if centre == agent else (agent,) for agent, centre in enumerate(found)
        )

    def choose(self, arms: ArmSet) -> int:
        """Lines 4-12."""
        self._begin_turn()
        if self._stored is None:
            return super().choose(arms)
        self.trial += 1
        return int(np.flatnonzero((arms.features == self._stored.point).all(axis=1))[0])

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        """Lines 13-14."""
        outbox = super().observe(arms, arm, reward)
        if self._stored is not None:
            self._new.clear()
        return outbox

    @property
    def pulls_in_model(self) -> int | None:
        """Not counted: agents that are not central have no model."""
        return None

    def _take_in(self) -> None:
        """Lines 15-22: learn from what has arrived, or store the centre's newest arm."""
        if self.central:
            super()._take_in()
        elif self._arrived:
            known = self._arrived if self._stored is None else [self._stored, *self._arrived]
            self._stored = max(known, key=lambda pull: pull.trial)
            self._arrived.clear()

    def report(self) -> dict[str, float | int]:
        """gamma and what is known of the independent set, reported by agent 0."""
        if self.context.index:
            return {}
        found = self._centres().central
        return {**super().report(), "central_agents": len(found.nodes), "independent_set_exact": int(found.exact)}


ALGORITHM = replace(
    COOP,
    name="dist_kernel_ucb",
    agent=DistKernelUCB,
    config=WithTasks,
    summary="Kernel UCB on a graph: central agents learn, the others repeat what their centre has pulled.",
    reference="Dubey and Pentland 2020 (Kernel Methods for Cooperative Multi-Agent Contextual Bandits), Algorithm 3",
    needs=Needs(topologies=("graph",), reliable=False, fixed_arms=True, exact=("points",)),
    metrics=(
        *REACH,
        Metric("central_agents", "agents", "agents that learn; the others repeat what they pulled"),
        Metric("independent_set_exact", "0 or 1", "whether the independent set is a heaviest one for certain"),
    ),
    rate=(
        "regret Õ(Υ_z γ_T √(α T)), where Υ_z is the rank of the agents' contexts and α the independence number "
        "of the graph of agents within `hops` links (Dubey and Pentland 2020, theorem 2)"
    ),
)
