"""Parameters of DUETS (Pavlovic et al. 2024, Algorithm 1, with the values of section 3, lemma A.3 and theorem 4.1)."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from coband.agents.parameters import AnyKernel, known_turns
from coband.simulator.arrays import IndexArray
from coband.simulator.core.config import REWARD, Config
from coband.simulator.core.nodes.node import NodeContext
from coband.simulator.maths.exploration.duets import Epochs, Regions, most_epochs, theoretical_rate, theoretical_width
from coband.simulator.maths.kernels.library import Gaussian


class DuetsConfig(Config):
    """Parameters of DUETS."""

    kernel: AnyKernel = Gaussian(length_scale=1.0)
    """The kernel k(x, y)."""
    T1: int = Field(default=2, ge=1)
    """Pulls of each agent in the first epoch."""
    p0: Annotated[float, Field(ge=0)] | Literal["theory"] = 10.0
    """Sampling: a point is induced with probability min(1, p0 * sigma_max^2); theory: p0 = 72 log(4NT/delta')."""
    beta: Annotated[float, Field(ge=0)] | Literal["theory"] = 1.0
    """Points are kept within 2 * beta * sigma_max of the best mean; theory: B + R sqrt(2/lam log(2/delta'))."""
    lam: float = Field(default=0.2, gt=0)
    """Ridge parameter lambda (not printed in the paper; 0.2 is that of its public code)."""
    delta: float = Field(default=0.1, gt=0, lt=1)
    """Probability of failure, for ``theory``: delta' = delta / (2 |U| (log log max(N, T) + 4))."""
    B: float = Field(default=1.0, ge=0)
    """Bound on the norm of f in the kernel's Hilbert space, for ``beta: theory``."""
    R: Annotated[float, REWARD] = Field(default=0.2, ge=0)
    """The noise is R-sub-Gaussian, for ``beta: theory``."""
    inducing: Literal["variance", "rate"] = "variance"
    """variance: as in the paper; rate: probability p0 log(n)/n for the n points of an epoch (public code)."""
    elimination: Literal["mean", "ucb"] = "mean"
    """mean: equation 9; ucb: keep x if mu + beta sigma >= max(mu - beta sigma) (public code)."""
    regions: Literal["together", "separate"] = "together"
    """together: T_j points of the whole active set; separate: T_j of each of its connected regions (footnote 3)."""
    horizon: int | None = Field(default=None, ge=1)
    """The paper's T, turns of each agent; null: those that the schedule gives every agent at least."""

    @model_validator(mode="after")
    def _theory_is_about_variances(self) -> Self:
        if self.p0 == "theory" and self.inducing == "rate":
            raise ValueError(
                "p0: theory is a factor of sigma_max^2 and has no meaning with inducing: rate, whose probability is "
                "p0 log(n)/n; write inducing: variance, or p0 as a number."
            )
        return self

    def turns(self, context: NodeContext) -> int:
        """T: what every agent is sure to get, or less if ``horizon`` says so.

        Raises:
            UnsupportedScenario: neither the schedule nor ``horizon`` says.
        """
        return known_turns(self.horizon, context)

    def epochs(self, context: NodeContext) -> Epochs:
        """The epochs of every agent."""
        return Epochs(self.turns(context), self.T1)

    def split(self, context: NodeContext, active: IndexArray) -> tuple[IndexArray, ...]:
        """The regions that are explored each by itself."""
        if self.regions == "together":
            return (active,)
        domain = context.domain
        assert domain is not None
        regions: Regions = context.sharing.get("regions", lambda: Regions(domain.features))
        return regions.of(active)

    def width(self, points: int, agents: int, horizon: int) -> float:
        """beta, a number or computed from the size of the domain, N and T."""
        if self.beta != "theory":
            return self.beta
        return theoretical_width(self.B, self.R, self.lam, self._failure(points, agents, horizon))

    def rate(self, points: int, agents: int, horizon: int) -> float:
        """p0, a number or computed from the size of the domain, N and T."""
        if self.p0 != "theory":
            return self.p0
        return theoretical_rate(agents, horizon, self._failure(points, agents, horizon))

    def _failure(self, points: int, agents: int, horizon: int) -> float:
        """delta' of equation 9, with the epochs of lemma 4.4."""
        return self.delta / (2.0 * points * most_epochs(horizon, agents))
