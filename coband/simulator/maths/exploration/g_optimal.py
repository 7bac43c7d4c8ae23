"""G-optimal designs for one client or several: how to spread pulls so that every arm's mean is estimated well.

Client i has arms with features e_a and spreads weights pi_i on the simplex over them; each arm informs about one
parameter b (a block; all arms about the same one, or each about its own), V_b = sum pi_a e_a e_a^T over all clients.
The multi-client G-optimal design (Huang et al. 2021) minimises

    G(pi) = sum_i max_a e_a^T V_b(a)^+ e_a

For one client and one block that is the G-optimal design of Kiefer and Wolfowitz 1960. Since sum_a pi_a e_a^T V^+ e_a
over all clients is the sum of the ranks of all V_b, G is never less; that certifies a design, and equality holds for
the weights that maximise sum_b log det V_b. They are found by vertex exchange (Boehning 1986): each client in turn
moves weight from its least to its most informative arm, as far as the determinants grow. Few arms keep weight.

`deal` spreads the pulls of one design over agents: DELB (Wang et al. 2020), RCLB (Mitra et al. 2022).
"""

from __future__ import annotations

import math

import numpy as np

from coband.simulator.arrays import FloatArray, IndexArray, IntArray
from coband.simulator.maths.exploration.design import Design, DesignError, check_countable

_SWEEPS = 20_000
_RANK = 1e-9  # of the largest eigenvalue
_TIE = 1e-9  # of values that are equal but for rounding the first is taken, so that all machines find one design


def g_optimal(
    clients: IntArray, blocks: IntArray, features: FloatArray, gap: float, start: FloatArray | None = None
) -> Design:
    """Minimise G(pi) to a gap.

    Args:
        clients: whose each arm is, (m,), ascending.
        blocks: about which parameter it informs, (m,).
        features: e, (m, d).
        gap: the design is good enough when G(pi) <= sum of ranks + gap.
        start: weights to start from, whose arms span those of all; None: uniform ones of each client.

    Returns:
        Weights (m,), exactly 0 where no pulls go; ``value`` is G(pi), ``bound`` the sum of ranks.

    Raises:
        DesignError: the gap was not reached.
    """
    starts = np.flatnonzero(np.diff(clients, prepend=-1))
    ends = np.append(starts[1:], len(clients))
    names, block = np.unique(blocks, return_inverse=True)
    weights = np.repeat(1.0 / (ends - starts), ends - starts) if start is None else start.copy()
    bound = 0
    for _ in range(_SWEEPS):
        V = np.zeros((len(names), features.shape[1], features.shape[1]))
        held = weights.nonzero()[0]
        rows = features[held]
        np.add.at(V, block[held], weights[held, None, None] * rows[:, :, None] * rows[:, None, :])
        inverse = np.asarray(np.linalg.pinv(V, rcond=_RANK, hermitian=True), dtype=np.float64)
        bound = bound or int(np.linalg.matrix_rank(V, hermitian=True, rtol=_RANK).sum())
        g = np.einsum("ij,ijk,ik->i", features, inverse[block], features)
        value = float(np.maximum.reduceat(g, starts).sum())
        if value <= bound + gap:
            return Design(weights, value, float(min(bound, value)))
        for first, end in zip(starts.tolist(), ends.tolist(), strict=True):
            _exchange(weights[first:end], features[first:end], block[first:end], inverse)
    raise DesignError(
        f"the design's G is {value:.6g} after {_SWEEPS} sweeps, above its bound {bound} + {gap:g}; give a larger gap"
    )


def core(features: FloatArray, gap: float) -> Design:
    """A G-optimal design of one client for one parameter, on few arms.

    It starts from equal weights on arms that span all others: again and again the one farthest from the span of those
    before (Kumar and Yildirim 2005). With ``gap`` = d, G <= 2 d, few more are needed.

    Args:
        features: (m, d).
        gap: see `g_optimal`.
    """
    rest, spanning = features.copy(), list[int]()
    lengths = first = np.vecdot(rest, rest)
    while lengths.max() > _RANK**2 * first.max() and len(spanning) < features.shape[1]:
        spanning.append(int((lengths >= lengths.max() * (1.0 - _TIE)).argmax()))
        q = rest[spanning[-1]] / np.sqrt(lengths[spanning[-1]])
        rest -= np.outer(rest @ q, q)
        lengths = np.vecdot(rest, rest)
    start = np.zeros(len(features))
    start[spanning or [0]] = 1.0 / max(1, len(spanning))
    one = np.zeros(len(features), dtype=np.int64)
    return g_optimal(one, one, features, gap, start)


def _exchange(weights: FloatArray, features: FloatArray, block: IntArray, inverse: FloatArray) -> None:
    """Move weight from one arm of a client to another, and bring V_b^+ up to date.

    With s moved, the determinants grow by the factor (1 + s g_up)(1 - s g_down) + s^2 g_between^2.
    """
    if len(weights) < 2:
        return
    g = np.einsum("ij,ijk,ik->i", features, inverse[block], features)
    held = np.where(weights > 0, g, np.inf)
    up, down = int((g >= g.max() * (1.0 - _TIE)).argmax()), int((held <= held.min() * (1.0 + _TIE)).argmax())
    if up == down:
        return
    first, second = inverse[block[up]] @ features[up], features[down]
    between = float(first @ second) if block[up] == block[down] else 0.0
    bend, rise, most = g[up] * g[down] - between**2, g[up] - g[down], float(weights[down])
    move = most if 2.0 * most * bend <= rise else float(rise / (2.0 * bend))
    weights[up] += move
    weights[down] = 0.0 if move == most else most - move
    for place, step in ((up, move), (down, -move)):
        row = inverse[block[place]] @ features[place]
        inverse[block[place]] -= np.outer(row, row) * (step / (1.0 + step * float(row @ features[place])))


WHOLE = 1e-9
"""A number of pulls that exceeds a whole one by less is that one."""
Dealt = tuple[IntArray, IntArray]
"""Arms and how often to pull each, in this order."""


def deal(X: FloatArray, active: IndexArray, pulls: float, agents: int, gap: float) -> list[Dealt]:
    """What each agent pulls, equally often: ceil(pulls pi_a) of each arm a of a G-optimal design pi, in order.

    The last arm gets up to ``agents`` - 1 pulls more, so that everybody has as many.

    Args:
        X: all arms, (n, d).
        active: the numbers of those that are left, ascending.
        pulls: of all agents together.
        agents: their number.
        gap: see `core`.

    Raises:
        DesignError: there are too many to count, or no design is as near to the optimum.
    """
    check_countable(pulls)
    weights = core(X[active], gap).weights
    counts = np.ceil(max(pulls, 1.0) * weights - WHOLE).astype(np.int64)
    arms, counts = active[counts > 0], counts[counts > 0]
    counts[-1] += -counts.sum() % agents
    each, ends = int(counts.sum()) // agents, np.cumsum(counts)
    dealt = []
    for start in range(0, agents * each, each):
        own = np.clip(ends - start, 0, each) - np.clip(ends - counts - start, 0, each)
        dealt.append((arms[own > 0].astype(np.int64), own[own > 0]))
    return dealt


def eliminated(X: FloatArray, active: IndexArray, theta: FloatArray, phase: int) -> IndexArray:
    """The arms that are left after a phase l: those within 2^(1 - l) of the best by theta."""
    means = np.vecdot(X[active], theta)
    left: IndexArray = active[means.max() - means <= 2.0 ** (1 - phase)]
    return left


def median_width(agents: int, liars: float, delta: float) -> float:
    """t, such that the median of N estimates is more than t deviations above the truth with probability delta at most.

    F = floor(liars N) estimates may be anything, the H = N - F others are normal around the truth and independent. The
    median is above only if N/2 or more are, so that k = ceil(N/2) - F honest ones are, each with the probability
    p = P(Z > t); t is where P(Binomial(H, p) >= k) = I_p(k, H - k + 1) = delta.

    Args:
        agents: N.
        liars: their largest share, below 1/2.
        delta: the probability, in (0, 1).
    """
    from scipy.special import betaincinv, ndtri  # slow to import

    lying = math.floor(liars * agents + WHOLE)
    needed = math.ceil(agents / 2) - lying
    return -float(ndtri(betaincinv(needed, agents - lying - needed + 1, delta)))
