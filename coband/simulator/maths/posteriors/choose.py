"""Which posterior when, at what cost.

n: observations; K: arms of a turn; M: points of a domain; m: points of a dictionary; q: own observations since the
newest version; p: features; N: tasks; a: features of an arm (d, or d + 1 with a bias). Time is that of one update and
one prediction, in multiplications; memory is in numbers. "Shared" is spent once for all agents that know the same; each
then adds what it knows besides.

================================  ======================  ==============================  =====================
setting                           posterior               time per turn                   memory
================================  ======================  ==============================  =====================
one task, arms change             ExactPosterior          n^2 K                           n^2 / 2
one task, fixed domain            DomainPosterior         n M while n <= M / 4, then M^2  n M, then M^2
log of many agents, arms change   LogPosterior            n^2 K                           n^2 / 2, shared
log of many agents, fixed domain  DomainLogPosterior      n M while n <= M / 4, then M^2  n M and M^2, shared
version of a model, arms change   NystromPosterior        m^2 K + m q K                   m^2 shared, m q
version of a model, fixed domain  NystromPosterior        m M + m^2                       m M shared, M
explicit features                 RidgeRegression         p^2 K                           p^2
explicit features, diagonal V     DiagonalRidge           p K                             p
explicit features, synchronised   LocalRidge              p^2 K                           p^2 shared, p^2
many tasks, linear, p <= 256      PrimalPosterior         p^2 (K + news), news shared     p^2, shared
many tasks, linear, p > 256       TaskwisePosterior       (N a)^3, shared                 N a^2, (N a)^2 shared
many tasks, {kind: nystrom}       GrowingNystrom          m^2 (K + news) + m^3 / 3        m^2, n a
many tasks, M^3 <= turns^2        RepeatsPosterior        (N M)^3, shared                 (N M)^2
many tasks, otherwise             CanonicalPosterior      n^2 (K + news), shared          n^2 / 2, shared
================================  ======================  ==============================  =====================

The 256 is `choose_multitask.PRIMAL_FEATURES`; M / 4 is M above `finite_domain.WHOLE_COVARIANCE` points. Agents that
know the same of a log have their arms solved for together. Above 512 observations (`look_ahead.FEWEST_ROWS`),
``scores`` of ExactPosterior and LogPosterior solves only for arms that may be the best, and for coming turns together.

GrowingNystrom and the versions of a model are approximate, all others exact. The two linear forms of many tasks need a
kernel that is linear in the arm whatever its place; TaskwisePosterior also the product K_z K_x. GrowingNystrom,
RepeatsPosterior and CanonicalPosterior stand behind an AugmentedPosterior, which makes points of tasks and arms.
Whenever n has doubled, GrowingNystrom spends m^2 n + 2 m^3 multiplications on a new dictionary as well.
"""

from __future__ import annotations

from coband.simulator.maths.kernels.library import Kernel
from coband.simulator.maths.posteriors.finite_domain import Domain, DomainLog, DomainPosterior
from coband.simulator.maths.posteriors.ridge import DiagonalRidge, RidgeRegression
from coband.simulator.maths.posteriors.shared_log import ExactPosterior, SharedLog


def exact(kernel: Kernel, lam: float, domain: Domain | None) -> ExactPosterior | DomainPosterior:
    """Of one agent on its own data; ``domain`` is None when arm sets change."""
    return ExactPosterior(kernel, lam) if domain is None else DomainPosterior(domain, lam)


def shared_log(kernel: Kernel, lam: float, domain: Domain | None) -> SharedLog | DomainLog:
    """A log of which many agents know prefixes; its ``posterior()`` is one agent's."""
    return SharedLog(kernel, lam) if domain is None else DomainLog(domain, lam)


def ridge(features: int, lam: float, diagonal: bool) -> RidgeRegression | DiagonalRidge:
    """On explicit features, with a full or a diagonal V."""
    return DiagonalRidge(features, lam) if diagonal else RidgeRegression(features, lam)
