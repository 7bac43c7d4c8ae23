"""The fixed domain of a run, one object for all agents."""

from __future__ import annotations

from coband.simulator.core.nodes.node import NodeContext, UnsupportedScenario
from coband.simulator.maths.posteriors.domain import Domain


def domain_of(context: NodeContext) -> Domain | None:
    """The domain that all arms come from, with the algorithm's kernel; None when arm sets change."""
    arms = context.domain
    return None if arms is None else context.sharing.get("domain", lambda: Domain(context.config.kernel, arms))


def required_domain(name: str, context: NodeContext) -> Domain:
    """The same, for an algorithm that cannot do without.

    Raises:
        UnsupportedScenario: arm sets change.
    """
    if (domain := domain_of(context)) is None:
        raise UnsupportedScenario(f"{name} needs a fixed domain: problem.kind fixed_domain, clusters or arrays.")
    return domain
