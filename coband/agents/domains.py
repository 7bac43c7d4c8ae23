"""The fixed domain of a run, one object for all agents."""

from __future__ import annotations

from coband.simulator.core.nodes.node import NodeContext
from coband.simulator.maths.posteriors.domain import Domain


def domain_of(context: NodeContext) -> Domain | None:
    """The domain that all arms come from, with the algorithm's kernel; None when arm sets change."""
    arms = context.domain
    return None if arms is None else context.sharing.get("domain", lambda: Domain(context.config.kernel, arms))


def needed_domain(context: NodeContext) -> Domain:
    """The same, of an algorithm whose needs have ``fixed_arms``."""
    domain = domain_of(context)
    assert domain is not None
    return domain
