"""DELB: distributed elimination for linear bandits (Wang et al. 2020), all agents on the same fixed arms.
As printed: `tests/oracles/delb.py`. Next: `common/ends_together.py`, `messages/phases.py`, `server/linear/delb.py`.

Phase l = 1, 2, ...: for a G-optimal design pi of the arms that are left, m(x) = ceil(C 4^l d^2 pi(x) ln(N T)) pulls of
each arm are dealt out to the agents one after the other, as many to each. An agent sends the mean reward of each arm
that it was dealt; the server has theta = V^+ sum m(x) r(x) x with V = sum m(x) x x^T, and arms stay that are within
2^(1 - l) of the best by theta. It sends theta, and to each agent the arms and numbers of its pulls.

The first phase needs no message, since everybody knows the arms. The last arm gets up to N - 1 pulls more, so that the
agents' phases have one length. A last phase that is cut by the horizon sends nothing. The bounds are those of the
paper's abstract. Public numbers are of another program (Salgia and Zhao's): it divides theta by its norm, spreads equal
pulls over at most 2 d arms chosen greedily, and sends shared arms twice; its regret is higher (611k, not 518k).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np
from pydantic import Field

from coband.agents.common.ends_together import ARMS_LEFT, DEALT, IN_PHASES, PARTING, PhasedAgent
from coband.agents.common.parameters import known_turns
from coband.agents.messages.phases import DealtMeans, PhaseOrder
from coband.simulator.arrays import IndexArray
from coband.simulator.core.algorithm import Algorithm, ClosedForm, MessageSize
from coband.simulator.core.config import Config
from coband.simulator.core.nodes.node import SERVER, NodeContext
from coband.simulator.maths.exploration.g_optimal import Dealt, deal, eliminated
from coband.simulator.metrics import Metric


class DealtConfig(Config):
    """Parameters of algorithms that deal out the pulls of one design of common arms."""

    gap: float | None = Field(default=None, gt=0)
    """Designs are as near to the optimum: max ||x||^2_(V^+) <= d + gap; null: 2 d, as in the paper, on few arms."""

    def first(self, context: NodeContext) -> list[Dealt]:
        """The pulls of all agents in phase 1."""
        assert context.domain is not None
        active = np.arange(len(context.domain))
        return context.sharing.get("first phase", lambda: self.deal(context, active, 1))

    @abstractmethod
    def deal(self, context: NodeContext, active: IndexArray, phase: int) -> list[Dealt]:
        """The pulls of all agents in a phase."""

    def spread(self, context: NodeContext, active: IndexArray, pulls: float, agents: int) -> list[Dealt]:
        """So many pulls, dealt out to so many agents."""
        assert context.domain is not None
        return deal(context.domain.features, active, pulls, agents, context.dimension if self.gap is None else self.gap)


class DelbConfig(DealtConfig):
    """Parameters of DELB."""

    C: float = Field(default=600.0, gt=0)
    """Factor of the pulls of a phase. The paper's 600 makes the first phase longer than most runs; Salgia and Zhao 2022
    take 10."""
    horizon: int | None = Field(default=None, ge=1)
    """T, turns of each agent; null: those that the schedule gives every agent at least."""

    def deal(self, context: NodeContext, active: IndexArray, phase: int) -> list[Dealt]:
        """C 4^l d^2 ln(N T) pulls of all agents together."""
        turns = context.agents * known_turns(self.horizon, context)
        pulls = self.C * 4.0**phase * context.dimension**2 * math.log(max(turns, 2))
        return self.spread(context, active, pulls, context.agents)


class DealtAgent(PhasedAgent):
    """An agent with the same arms as all others.

    Attributes:
        active: arms that are left, ascending.
        phase: l.
    """

    name: ClassVar[str]

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        assert context.domain is not None  # as needs.fixed_arms says
        self.config: DealtConfig = context.config
        self.X, self.phase = context.domain.features, 1
        self.active: IndexArray = np.arange(len(self.X))
        self.start(*self.config.first(context)[context.index])

    def warnings(self) -> Iterator[str]:
        """A first phase that never ends."""
        return self.never_ending(self._ends[-1] if self.phase == 1 else 0)

    def report(self) -> dict[str, float | int]:
        return {"arms_left": len(self.active)}


class Delb(DealtAgent):
    """The client's side."""

    name = "delb"
    noted: ClassVar[Mapping[str, str]] = {"trigger": "arms of the agent in the phase", "eliminate": "arms left"}
    _means = 0

    async def end_phase(self) -> None:
        """Send means; the server's theta says which arms are left, and its order what to pull."""
        self.note("trigger", round=self.phase, value=len(self._arms))
        self._means += len(self._arms)
        means = DealtMeans(means=self._sums / self._counts, pulls=self._place, round=self.phase)
        order = await self.ask(SERVER, means, reply=PhaseOrder)
        if not isinstance(order, PhaseOrder):
            self.part()
            return
        self.active = eliminated(self.X, self.active, order.theta, self.phase)
        self.note("eliminate", round=self.phase, version=self.phase, value=len(self.active))
        self.phase += 1
        self.start(order.arms, order.counts)

    def report(self) -> dict[str, float | int]:
        return {**super().report(), "means_sent": self._means}


ALGORITHM = Algorithm(
    name="delb",
    agent=Delb,
    server="coband.server.linear.delb:DelbServer",
    config=DelbConfig,
    summary="Distributed elimination for linear bandits: phases of an optimal design, dealt out to the agents.",
    reference="Wang et al. 2020, DELB",
    needs=replace(IN_PHASES, horizon=True, steady_arms=False, fixed_arms=True),
    messages=(
        MessageSize(DealtMeans, "up", "n", "from each agent"),
        MessageSize(PhaseOrder, "down", "d + 2*n", "to each agent"),
        *PARTING,
    ),
    counts=(
        ClosedForm("uplink_scalars", "means_sent"),
        ClosedForm("downlink_scalars", "rounds*N*d + 2*arms_dealt"),
        ClosedForm("messages", "uploads + N*rounds"),
    ),
    metrics=(
        ARMS_LEFT,
        Metric("means_sent", "means", "arms whose means were sent, over agents and phases"),
        Metric("arms_dealt", "arms", "arms that the server has dealt out, over agents and phases"),
    ),
    rate="regret Õ(d √T) with O((N d + d log log d) log T) scalars (Wang et al. 2020, abstract)",
    cites=("wang2020distributed",),
    undefended=DEALT,
    search={"C": "0.001..600"},
)
