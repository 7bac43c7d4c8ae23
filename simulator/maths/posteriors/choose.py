"""Exact posteriors by what is known of the arms: any arm set at each turn, or one fixed domain."""

from __future__ import annotations

from coband.simulator.maths.kernels.library import Kernel
from coband.simulator.maths.posteriors.domain import Domain
from coband.simulator.maths.posteriors.exact import ExactPosterior, SharedLog
from coband.simulator.maths.posteriors.finite_domain import DomainLog, DomainPosterior


def own_posterior(kernel: Kernel, lam: float, domain: Domain | None) -> ExactPosterior | DomainPosterior:
    """The exact posterior of one agent on its own data; ``domain`` is None when arm sets change."""
    return ExactPosterior(kernel, lam) if domain is None else DomainPosterior(domain, lam)


def shared_log(kernel: Kernel, lam: float, domain: Domain | None) -> SharedLog | DomainLog:
    """A log of which many agents know prefixes; ``domain`` is None when arm sets change."""
    return SharedLog(kernel, lam) if domain is None else DomainLog(domain, lam)
