"""Parameters, metrics and the fixed domain that several algorithms have in common."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from coband.simulator.core.config import TIME, Config
from coband.simulator.core.nodes.node import NodeContext, UnsupportedScenario
from coband.simulator.maths.kernels.library import Gaussian
from coband.simulator.maths.kernels.registry import AnyKernel as AnyKernel
from coband.simulator.maths.posteriors.finite_domain import Domain
from coband.simulator.metrics import Metric

Repeats = Literal["keep", "drop"]
"""Whether a sampled dictionary keeps equal points."""


def known_turns(given: int | None, context: NodeContext) -> int:
    """T: the turns that every agent is sure to get, or less if a parameter ``horizon`` says so; 1 where none is sure.

    Raises:
        UnsupportedScenario: neither the schedule nor the parameter says.
    """
    known = [turns for turns in (given, context.horizon) if turns is not None]
    if not known:
        raise UnsupportedScenario("must know the number of turns; give horizon, or a schedule without duration")
    return max(min(known), 1)


class KernelBandit(Config):
    """Parameters of every upper-confidence-bound algorithm with a kernel."""

    kernel: AnyKernel = Gaussian(gamma=1.0)
    """The kernel k(x, y)."""
    alpha: float = Field(default=1.0, ge=0)
    """Exploration: arms are chosen by mu + alpha * sigma."""
    lam: float = Field(default=1.0, gt=0)
    """Ridge parameter lambda."""


class Quorum(Config):
    """How long a synchronous server waits (ours; in the papers for everyone)."""

    quorum: float = Field(gt=0, le=1)
    """Share of the agents that must have answered before it goes on without the others; agents that have not joined or
    are down for good do not count."""
    timeout: Annotated[float, TIME] = Field(gt=0)
    """How long it waits for everyone before that, in each phase of a synchronisation."""


class Synchronous(Config):
    """Parameters of algorithms whose agents are all synchronised at once."""

    wait: Literal["all"] | Quorum = "all"
    """Whose answers a synchronisation waits for; what comes later is taken in by the next one."""


SKIPPED_POINTS = Metric("skipped_points", "points", "points of dictionaries that add nothing to their span")


def domain_of(context: NodeContext) -> Domain | None:
    """The domain that all arms come from, with the algorithm's kernel; None when arm sets change."""
    arms = context.domain
    return None if arms is None else context.sharing.get("domain", lambda: Domain(context.config.kernel, arms))


def needed_domain(context: NodeContext) -> Domain:
    """The same, of an algorithm whose needs have ``fixed_arms``."""
    domain = domain_of(context)
    assert domain is not None
    return domain
