"""RCLB: robust collaborative linear bandit by phased elimination (Mitra et al. 2022), where some agents are Byzantine.
As printed: `tests/oracles/rclb.py`. Next: `delb.py`, `messages/phases.py`, `server/linear/rclb.py`.

All N agents have the same fixed arms. In phase l = 1, 2, ... every agent pulls each arm x of a G-optimal design pi of
the arms that are left ceil(pi(x) n_l) times, n_l = C sigma^2 4^l d ln(1/delta_l), and sends theta_i by least squares.
The server takes the median over the agents of each arm's payoff x^T theta_i, and arms stay whose median is within

    2 t_l sigma max_x ||x||_(V^+),   V = sum of x x^T over one agent's pulls,   delta_l = delta / (2 K l (l + 1))

of the best. It sends the numbers of these arms, from which all know the next design.

The text of the paper was not at hand but for its abstract, with the regret O~((alpha + 1/sqrt(N)) sqrt(d T)) of each
honest agent where a share alpha lies. So the constants are ours. With normal noise an honest x^T theta_i is normal
around the truth, with a deviation of sigma ||x||_(V^+). The median of N such numbers, of which floor(liars N) may be
anything, is too high by more than t_l deviations with probability delta_l at most (`median_width`), and as rarely too
low. Over all phases and K arms that adds up to delta; otherwise the best arm stays.
By Hoeffding's inequality

    Phi(t_l) <= 1/2 + (liars/2 + sqrt(ln(1/delta_l) / (2 N))) / (1 - liars),

so that the threshold grows with the share of Byzantine agents and shrinks with N, as the abstract's regret does.
A silent agent counts as one of the floor(liars N); the others go on without it (ours).
With C = 4 an agent alone would err by 2^(-l) at most, in each arm and phase with probability 1 - 2 delta_l.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from coband.agents.common.ends_together import ARMS_LEFT, IN_PHASES, PARTING
from coband.agents.linear.delb import DealtAgent, DealtConfig
from coband.agents.messages.phases import ActiveArms, PhaseEstimate
from coband.simulator.arrays import IndexArray
from coband.simulator.core.algorithm import Algorithm, ClosedForm, MessageSize
from coband.simulator.core.config import REWARD
from coband.simulator.core.nodes.node import SERVER, NodeContext
from coband.simulator.maths.exploration.g_optimal import WHOLE, Dealt, median_width
from coband.simulator.maths.linalg.caches import VersionCache
from coband.simulator.metrics import Metric


class RclbConfig(DealtConfig):
    """Parameters of RCLB."""

    C: float = Field(default=4.0, gt=0)
    """Factor of the pulls of a phase."""
    liars: float = Field(default=0.2, ge=0, lt=0.5)
    """Share of the agents that may lie or be silent."""
    width: Annotated[float, Field(ge=0)] | Literal["theory"] = "theory"
    """t, by how many deviations of an agent's estimate the median is believed to be off; theory: t_l."""
    delta: float = Field(default=0.1, gt=0, lt=1)
    """Probability of failure."""
    sub_gaussian: Annotated[float, REWARD] = Field(default=1.0, gt=0)
    """sigma: deviation of the noise, which is taken to be normal."""

    def confidence(self, context: NodeContext, phase: int) -> float:
        """delta_l."""
        assert context.domain is not None
        return self.delta / (2 * len(context.domain) * phase * (phase + 1))

    def spare(self, context: NodeContext) -> int:
        """floor(liars N)."""
        return math.floor(self.liars * context.agents + WHOLE)

    def threshold(self, context: NodeContext, phase: int, deviation: float, missing: int = 0) -> float:
        """Width of medians, where an agent's estimates have this deviation at most, without those that are missing."""
        t, heard = self.width, context.agents - missing
        if t == "theory":
            t = median_width(heard, (self.spare(context) - missing) / heard, self.confidence(context, phase))
        return 2.0 * t * deviation

    def deal(self, context: NodeContext, active: IndexArray, phase: int) -> list[Dealt]:
        """n_l pulls of each agent, the same for all."""
        logarithm = -math.log(self.confidence(context, phase))
        pulls = self.C * self.sub_gaussian**2 * 4.0**phase * context.dimension * logarithm
        designs: VersionCache[list[Dealt]] = context.sharing.get("designs", lambda: VersionCache(2))
        return designs.get(phase, lambda: self.spread(context, active, pulls, 1)) * context.agents


class Rclb(DealtAgent):
    """The client's side."""

    name = "rclb"
    ignores = (ActiveArms,)
    noted: ClassVar[Mapping[str, str]] = {"trigger": "arms left in the phase", "eliminate": "arms left"}
    config: RclbConfig

    async def end_phase(self) -> None:
        """Send the own estimate; the server says which arms are left."""
        self.note("trigger", round=self.phase, value=len(self.active))
        estimate = PhaseEstimate(theta=self.least_squares(self.X), pulls=self._place, round=self.phase)
        this = lambda message: message.round == self.phase  # noqa: E731
        left = await self.ask(SERVER, estimate, reply=ActiveArms, public=True, where=this)
        if not isinstance(left, ActiveArms):
            self.part()
            return
        self.active = left.arms
        self.note("eliminate", round=self.phase, version=self.phase, value=len(self.active))
        self.phase += 1
        self.start(*self.config.deal(self.context, self.active, self.phase)[self.context.index])


ALGORITHM = Algorithm(
    name="rclb",
    agent=Rclb,
    server="coband.server.linear.rclb:RclbServer",
    config=RclbConfig,
    summary="Robust phased elimination: medians of what agents estimate, so that some of them may lie.",
    reference="Mitra et al. 2022, RCLB",
    needs=replace(IN_PHASES, steady_arms=False, fixed_arms=True),
    knows=("horizon",),
    messages=(
        MessageSize(PhaseEstimate, "up", "d", "from each agent"),
        MessageSize(ActiveArms, "down", "a", "to all"),
        *PARTING,
    ),
    counts=(
        ClosedForm("uplink_scalars", "d*uploads"),
        ClosedForm("downlink_scalars", "N*arms_named"),
        ClosedForm("messages", "uploads + N*rounds"),
    ),
    metrics=(ARMS_LEFT, Metric("arms_named", "arms", "arms that the server has said are left, over phases")),
    rate="regret Õ((1 - f) √(N d T) (f + 1/√N)), where a share f of agents is Byzantine (Mitra et al. 2022, abstract)",
    cites=("mitra2022collaborative",),
    search={"C": "0.001..10", "liars": "0..0.45"},
    withstands="takes the median of the agents' estimates; `liars` says how many may lie or be silent",
)
