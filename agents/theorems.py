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
_ASYNC_WHERE = {"D": "1/N^2 if threshold == 'theory' else threshold", "beta": "(1 + epsilon)/(1 - epsilon)"}
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

_LINEAR_THETA = (NO_DELAYS, NO_LOSSES, Assumption("rewards are linear in one parameter of all agents"))
_HE = (*_LINEAR_THETA, Assumption("C = 1/N^2", "0.999 <= threshold*N^2 <= 1.001"))
FED_LIN_UCB = (
    Bound("regret", "d*sqrt(T)", "He et al. 2022, abstract", assumes=_HE),
    Bound("rounds", "d*N^2", "He et al. 2022, abstract", assumes=_HE),
)
_WANG = (*_LINEAR_THETA, Assumption("the paper's D or C, which its abstract does not give"))
DIS_LIN_UCB = (
    Bound("regret", "d*sqrt(T)", "Wang et al. 2020, abstract", assumes=_WANG),
    Bound("scalars", "N^1.5*d^3", "Wang et al. 2020, abstract", assumes=_WANG),
)
_FIXED = Assumption("arms that stay, the same for all agents")
DELB = (
    Bound("regret", "d*sqrt(T)", "Wang et al. 2020, abstract", assumes=(*_WANG, _FIXED)),
    Bound("scalars", "(N*d + d*log(log(d + 2)))*log(T + 1)", "Wang et al. 2020, abstract", assumes=(*_WANG, _FIXED)),
)
_PLS = (*_LINEAR_THETA, Assumption("the paper's constants; ours are those of the authors' program"))
PLS = (
    Bound("regret", "d*sqrt(T)", "Salgia and Zhao 2022, abstract", assumes=_PLS),
    Bound("bits", "N*d*(log(T + 1) + log(N + 1))", "Salgia and Zhao 2022, main result", assumes=_PLS),
)
RCLB = (
    Bound(
        "regret",
        "(1 - liars)*sqrt(N*d*T)*(liars + 1/sqrt(N))",
        "Mitra et al. 2022, abstract",
        assumes=(
            *_LINEAR_THETA,
            _FIXED,
            Assumption("no more agents lie than `liars` says"),
            Assumption("the paper's thresholds and lengths of phases; the constants here are our own"),
        ),
    ),
)
_FED_PE = (NO_DELAYS, NO_LOSSES, Assumption("lengths of phases, and a radius, of the paper's theorem"))
FED_PE = (
    Bound(
        "regret",
        "size*sqrt(T)",
        "Huang et al. 2021, abstract",
        assumes=_FED_PE,
        constants={"size": "a number that grows with agents, arms and dimension"},
    ),
    Bound(
        "scalars",
        "phase*log(T + 1)",
        "Huang et al. 2021, abstract",
        assumes=_FED_PE,
        constants={"phase": "what is sent in a phase, which does not depend on T"},
    ),
)
BPE = (
    Bound(
        "regret",
        "sqrt(T*gain)",
        "Li and Scarlett 2022, abstract",
        assumes=(
            NO_DELAYS,
            NO_LOSSES,
            Assumption("the mean reward has a bounded norm in the space of the kernel"),
            Assumption("the paper's width, of a confidence bound that holds for points chosen without rewards"),
        ),
    ),
)

FED_UCB_DISPUTED = (
    "Zhou and Chowdhury 2024 find the regret bound of Dubey and Pentland 2020 incorrect, since it miscalculates the "
    "noise, and that on communication without ground; what they prove themselves is about other algorithms"
)
FTS_UNSTATED = (
    "Dai et al. 2020 guarantee convergence however agents differ; only the abstract was at hand, which gives no rate"
)
DP_FTS_UNSTATED = (
    "Dai et al. 2021 guarantee utility beside privacy; only the abstract was at hand, which gives no rate of regret"
)
ASYNC_LIN_UCB_AM_UNSTATED = (
    "Li and Wang 2022 bound regret and communication of heterogeneous clients; only the abstract was at hand, which "
    "does not say how"
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
        "rounds", "dimension*sqrt(N)", "Dai et al. 2023, theorem 2", assumes=_FN_UCB[:-1], constants=_FN_UCB_CONSTANTS
    ),
)

_COOP = (
    NO_LOSSES,
    Assumption("arm sets are continua"),
    Assumption("widths of lemma 1", "width == 'lemma_1'"),
    Assumption("lambda = 1 + eta (theorem 3)", "lam >= 1"),
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
