"""What the papers' theorems bound: regret and communication, with what each theorem assumes.

Formulas are those of `coband.simulator.core.algorithm.Bound`, in the quantities of a run and the parameters of the
algorithm; `gain` is the information gain that a run measures.
"""

from __future__ import annotations

from coband.simulator.core.algorithm import NO_DELAYS, NO_LOSSES, Assumption, Bound

_ASYNC = (
    NO_DELAYS,
    NO_LOSSES,
    Assumption("lambda <= k(x, x) (lemma 4.1)", "lam <= kmin"),
    Assumption("q as in lemma 4.1", "q == 'theory'"),
    Assumption("every point stands in the dictionary as often as it is sampled", "repeats == 'keep'"),
)
_ASYNC_WHERE = {
    "D": "1/N^2 if threshold == 'theory' else threshold",
    "beta": "(1 + epsilon)/(1 - epsilon)",
}
ASYNC_KERNEL_UCB = (
    Bound(
        "regret",
        "4*N*gain*sqrt(kmax)*B + 4*sqrt(2)*width*sqrt(T*beta*(1 + N*beta*(kmax/lam + D))*gain)",
        "Li et al. 2023, theorem 4.5",
        order=False,
        scale="D*beta*lam",
        assumes=(*_ASYNC, Assumption("alpha as in lemma 4.4", "alpha == 'theory'")),
        where={
            **_ASYNC_WHERE,
            "width": "(1/sqrt(1 - epsilon) + 1)*sqrt(lam)*B"
            " + 2*R*(sqrt(1 + N*D*beta) + N*sqrt(2*D*beta))*sqrt(log(1/delta) + gain)",
        },
    ),
    Bound(
        "scalars",
        "2*gain*(N + 4*beta/D)*(3*(size^2 + size) + d*size)",
        "Li et al. 2023, theorem 4.5",
        order=False,
        scale="D*beta*lam",
        assumes=(*_ASYNC, Assumption("whole dictionaries and statistics are sent", "transfer == 'full'")),
        where={
            **_ASYNC_WHERE,
            "rate": "4*log(2*sqrt(2)*horizon/delta)*beta*(1 + epsilon/3)/epsilon^2 if q == 'theory' else q",
            "size": "12*beta*(1 + beta*D)*rate*gain",
        },
    ),
)

_LINEAR = (NO_DELAYS, NO_LOSSES, Assumption("rewards are linear, and arms not longer than 1"))
ASYNC_LIN_UCB = (
    Bound(
        "regret",
        "d*sqrt(T*min(N, gamma_d*(1 + (N - 1)*(gamma_u - 1))))",
        "Li and Wang 2022, theorem for homogeneous clients",
        assumes=(
            *_LINEAR,
            Assumption("alpha as in the paper", "alpha == 'theory'"),
            Assumption("downloads count at once", "refresh == 'at_once'"),
        ),
    ),
    Bound(
        "scalars",
        "N*d^3/log(min(gamma_u, gamma_d))",
        "Li and Wang 2022, theorem for homogeneous clients",
        assumes=(*_LINEAR, Assumption("both thresholds are more than 1", "min(gamma_u, gamma_d) > 1")),
    ),
)

_FED_PE = (
    NO_DELAYS,
    NO_LOSSES,
    Assumption("alpha as in the paper", "alpha == 'theory'"),
    Assumption("rewards are linear; lengths of arms lie between l and L, of which ratio the bound is a multiple"),
    Assumption("each phase by itself", "variant == 'fed_pe'"),
)
FED_PE = (
    Bound(
        "regret",
        "sqrt(d*(1 if parameters == 'shared' else K)*T*log(N*K*horizon/delta))",
        "Huang et al. 2021, theorems for shared and for disjoint parameters",
        assumes=_FED_PE,
        constants={"K": "arms of an agent, taken as constant"},
    ),
    Bound("rounds", "log(T/N)/log(growth)", "Huang et al. 2021, phases that grow geometrically", assumes=_FED_PE[:2]),
)

_DELB = (*_LINEAR, Assumption("C is large enough; 600 in the paper", "C >= 600"))
DELB = (
    Bound("regret", "d*sqrt(T*log(horizon))", "Wang et al. 2020, theorem for DELB", assumes=_DELB),
    Bound("scalars", "(N*d + d*log(log(d + 2)))*log(horizon)", "Wang et al. 2020, theorem for DELB", assumes=_DELB),
)

_DUETS = (
    NO_DELAYS,
    NO_LOSSES,
    Assumption("p0 = 72 log(4N/delta), or as in lemma A.3", "p0 == 'theory'"),
    Assumption(
        "points are kept by equation 9 with the beta of the analysis", "beta == 'theory' and elimination == 'mean'"
    ),
    Assumption("points are induced by their variance", "inducing == 'variance'"),
    Assumption("T1 >= M/N for a constant M of kernel and domain, which the paper does not give"),
)

DUETS = (
    Bound("regret", "sqrt(T*gain)*log(T/(N*delta))", "Pavlovic et al. 2024, theorem 4.1", assumes=_DUETS),
    Bound("scalars", "N*gain", "Pavlovic et al. 2024, theorem 4.1", assumes=_DUETS),
)

_FN_UCB_CONSTANTS = {
    "dimension": "effective dimension of all contexts (section 2), taken as constant",
    "dimension_max": "largest effective dimension of the contexts of one agent, taken as constant",
}
_FN_UCB = (
    NO_DELAYS,
    NO_LOSSES,
    Assumption("lambda = 1 + 2/T", "0.999*(horizon + 2*N) <= lam*horizon <= 1.001*(horizon + 2*N)"),
    Assumption("D = O(T/(N d)) for the effective dimension d, so a threshold that grows with T"),
    Assumption("a network of width poly(T, K, N, L, 1/lambda0), and its learning rate and steps"),
    Assumption("alpha > 0 in the first iteration of each epoch alone"),
)

FN_UCB = (
    Bound(
        "regret",
        "dimension*sqrt(T) + dimension_max*sqrt(N*T)*(sqrt(N) if less_comm else 1)",
        "Dai et al. 2023, theorem 1 (less_comm: appendix C.7)",
        assumes=_FN_UCB,
        constants=_FN_UCB_CONSTANTS,
    ),
    Bound(
        "rounds",
        "dimension*sqrt(N)",
        "Dai et al. 2023, theorem 2",
        assumes=_FN_UCB[:-1],
        constants=_FN_UCB_CONSTANTS,
    ),
)

_COOP = (
    NO_LOSSES,
    Assumption("arm sets are continua"),
    Assumption("widths of lemma 1", "width == 'lemma_1'"),
    Assumption("exact posteriors", "posterior.kind == 'exact'"),
)
_HETEROGENEITY = "rank of the matrix of the agents' contexts (definition 2)"
COOP_KERNEL_UCB = (
    Bound(
        "regret",
        "heterogeneity*2*gain*sqrt(cliques*T*log(N*lam/delta))",
        "Dubey and Pentland 2020, corollary 1",
        assumes=_COOP,
        constants={
            "heterogeneity": _HETEROGENEITY,
            "cliques": "number of cliques that cover the graph of agents within `hops` links",
        },
    ),
)
DIST_KERNEL_UCB = (
    Bound(
        "regret",
        "heterogeneity*2*gain*sqrt(independent*T*log(N*lam/delta))",
        "Dubey and Pentland 2020, theorem 2",
        assumes=_COOP,
        constants={
            "heterogeneity": _HETEROGENEITY,
            "independent": "size of the largest independent set of the graph of agents within `hops` links",
        },
    ),
)
