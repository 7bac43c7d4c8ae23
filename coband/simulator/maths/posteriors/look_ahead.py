"""Upper confidence bounds over a long log of observations: arms that cannot win are left out, and solves for the arms
of coming turns are made many at once.

A triangular solve with the factor L of K + lam I over n rows reads n^2/2 numbers from memory, whether for one
right-hand side or for thirty. Three facts save most of the reading and of the arithmetic:

* The mean of all arms needs no solve: mu(x) = k(x)^T a with the weights a = (K + lam I)^(-1) y.
* sigma^2 = (k(x, x) - ||v||^2)/lam with v = L^(-1) k(x), so any entries of v give an upper bound of sigma^2. An arm
  whose score with this bound is below the exact score of another arm cannot be the best one; its v is not needed.
* v keeps its entries when the log grows. So the likely winners of coming turns are solved in one batch, and the few
  entries for the rows added since are computed when the turn has come.

Weights serve only to leave arms out, with a margin for rounding; the scores of the others come from v.
``prepared_solves`` keeps solves and weights.

`OwnPoints` are the points that an agent knows beside the prefix of a shared log: a small factor on top of the log's.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray, IndexArray
from coband.simulator.maths.kernels.library import Kernel
from coband.simulator.maths.linalg.cholesky import GrowingCholesky
from coband.simulator.maths.linalg.growing_rows import GrowingRows
from coband.simulator.maths.linalg.matrices import dtrtrs
from coband.simulator.maths.posteriors.prepared_solves import PreparedSolves, Rows, Solve
from coband.simulator.maths.posteriors.protocol import Posterior


class OwnPoints:
    """The factor of an agent's own points on top of the first ``known`` rows of a log.

    Args:
        prefix_whitened: z = L^(-1) y over the known rows, shape (known,).
    """

    def __init__(self, kernel: Kernel, lam: float, prefix_whitened: FloatArray, dimension: int) -> None:
        self._kernel, self._prefix_whitened = kernel, prefix_whitened
        self._factor = GrowingCholesky(lam)
        self._bound = kernel.against(np.empty((0, dimension)))
        self._W_T = GrowingRows(len(prefix_whitened))
        self._points = GrowingRows(dimension)
        self._rewards = GrowingRows(1)
        self._whitened = GrowingRows(1)

    @property
    def size(self) -> int:
        return self._factor.size

    @property
    def log_det(self) -> float:
        return self._factor.log_det()

    @property
    def points(self) -> FloatArray:
        return self._points.leading(self.size)

    @property
    def rewards(self) -> FloatArray:
        return self._rewards.leading(self.size)[:, 0]

    @property
    def whitened(self) -> FloatArray:
        return self._whitened.leading(self.size)[:, 0]

    def solve(self, X: FloatArray, V: FloatArray) -> FloatArray:
        """The rows (size, n) that the own points add to the prefix solve V (known, n) of X (n, d)."""
        return self.solve_cross(self._bound.evaluate(X).T - self._W_T.leading(self.size) @ V)

    def solve_cross(self, cross: FloatArray) -> FloatArray:
        """The same rows from the covariances (size, n) of X with the own points, given the prefix."""
        return self._factor.solve(cross)

    def append(self, X: FloatArray, y: FloatArray, V: FloatArray) -> None:
        """Add own points X (p, d) with rewards y (p,) and prefix solve V (known, p)."""
        U = self.solve(X, V)
        residual = y - V.T @ self._prefix_whitened - U.T @ self.whitened
        C = self._factor.append_solved(U, self._kernel(X, X) - V.T @ V)
        self._whitened.append(solve_lower(C, residual)[:, None])
        self._bound = self._bound.appended(X)
        self._W_T.append(V.T)
        self._points.append(X)
        self._rewards.append(y[:, None])


def solve_lower(C: FloatArray, b: FloatArray) -> FloatArray:
    """x with C x = b, for lower triangular C (n, n) and b (n,)."""
    x: FloatArray
    x, _ = dtrtrs(C, b, lower=1)
    return x


FEWEST_ROWS = 512
"""With fewer rows than these all arms are solved for at once: it takes no longer."""
MOST_PENDING = 256
"""Rows on top of the base, at most, before it is moved."""
MOST_IDLE = 256
"""Solves of pulled arms that are kept for the time when they become rows of the log."""
AHEAD = 2
"""Turns of an agent that are prepared in advance: of those further ahead more would not be used."""
STAGES = (0.25, 0.375, 0.5, 0.625, 0.8, 1.0)
"""Parts of the rows after which an arm that was not prepared is given up if it cannot be the best."""
SETS_AT_ONCE = 8
"""Arm sets whose kernel rows are in memory together."""


class _Reach:
    """How far below the leader an arm may be to be prepared: wider after a miss, narrower after each hit.

    About one turn in thirty then misses, where a solve of its own costs as much as thirty prepared ones.
    """

    def __init__(self) -> None:
        self.width = 0.0

    def begin(self, width: float) -> None:
        """The first width; later ones are learnt."""
        self.width = self.width or width

    def learn(self, missed: bool) -> None:
        """A turn is over, for which something was missing or not."""
        self.width *= 1.1 if missed else 0.997


@dataclass(frozen=True)
class _Turn:
    """The n arms of a turn.

    Attributes:
        X: features, (n, d).
        K: kernel rows, (n, known).
        mean: from weights, (n,).
        prior: lam sigma^2 before v counts, (n,).
        squares: squared norms of leading entries of v, (n,).
        alpha, lam: parameters of the score.
        margin: for the rounding of ``mean``.
        extra: points that are known besides.
    """

    X: FloatArray
    K: FloatArray
    mean: FloatArray
    prior: FloatArray
    squares: FloatArray
    alpha: float
    lam: float
    margin: float
    extra: OwnPoints | None

    def bounds(self) -> FloatArray:
        """Upper bounds of the scores, (n,)."""
        deviation = np.sqrt(np.maximum(self.prior - self.squares, 0.0) / self.lam)
        return self.mean + self.alpha * deviation + self.margin

    def bound(self, place: int, squares: float) -> float:
        """The upper bound of one score when the leading entries of its v have this squared norm."""
        deviation = math.sqrt(max(float(self.prior[place]) - squares, 0.0) / self.lam)
        return float(self.mean[place]) + self.alpha * deviation + self.margin


class ComingTurns:
    """The arm sets of an agent's coming turns, announced to its posterior two turns in advance."""

    def __init__(self) -> None:
        self._waiting: deque[ArmSet] = deque()
        self._announced = 0

    def begin(self, arm_sets: Sequence[ArmSet]) -> None:
        """The arm sets of the turn that is taken now and of those after it; those before are used up."""
        self._waiting, self._announced = deque(arm_sets[1:]), 0

    def announce(self, posterior: Posterior) -> None:
        """A turn has been taken: announce the next ones."""
        self._announced = max(0, self._announced - 1)
        while self._waiting and self._announced < AHEAD:
            posterior.look_ahead(self._waiting.popleft())
            self._announced += 1


class LookAhead:
    """Scores mu + alpha sigma of the arms of a turn, exact for every arm that can be the best."""

    def __init__(self, log: Rows) -> None:
        self._log = log
        self.solves = PreparedSolves(log)
        self._lags: deque[int] = deque(maxlen=64)  # rows that agents did not know yet at the last turns
        self._coming: dict[ArmSet, FloatArray | None] = {}  # squared norms of the leading entries of v, once known
        self._waiting: set[bytes] = set()  # solves that belong to coming turns
        self._reach, self._reach_backward = _Reach(), _Reach()

    def look_ahead(self, arms: ArmSet) -> None:
        """Announce the arm set of a coming turn; ``scores`` will be asked about this object."""
        self._coming[arms] = None

    def scores(self, arms: ArmSet, alpha: float, known: int, extra: OwnPoints | None) -> FloatArray | None:
        """mu + alpha sigma of n arms given the first ``known`` rows and the ``extra`` points, (n,).

        -inf for arms whose score is certainly below the largest. None where it is better to solve for all arms.
        """
        margin = _rounding(self._log, known)
        if known < FEWEST_ROWS or margin > 1e-3 * alpha:
            self._coming.pop(arms, None)
            return None
        self._lags.append(self._log.size - known)
        expected = arms in self._coming
        fresh = expected and self._coming[arms] is None
        if fresh or not self.solves.active or known - self.solves.base > MOST_PENDING:
            self._move(known, alpha)
        squares = self._coming.pop(arms, None)
        if known < self.solves.base:
            self._release([x.tobytes() for x in arms.features])
            return None
        X, K = arms.features, self._log.cross(arms.features, known)
        if squares is None:
            squares = self._leading_squares(K, min(known, 384))
        mean, prior = K @ self.solves.weights(known), self._log.kernel.diag(X)
        if extra is not None:
            U = extra.solve_cross(self._covariances(X, K, known, extra.points))
            mean += U.T @ extra.whitened
            prior = prior - np.einsum("ij,ij->j", U, U)
        turn = _Turn(
            X=X,
            K=K,
            mean=mean,
            prior=prior,
            squares=squares,
            alpha=alpha,
            lam=self._log.lam,
            margin=margin,
            extra=extra,
        )
        scores, missed = self._decided(turn)
        if expected:
            keys = [X[place].tobytes() for place in np.flatnonzero(scores == scores.max()).tolist()]
            self._reach.learn(missed)
            self._reach_backward.learn(any(self.solves.held[key].s is None for key in keys))
        self._forget()
        return scores

    # --- one turn

    def _decided(self, turn: _Turn) -> tuple[FloatArray, bool]:
        """Exact scores from the highest bound downwards, prepared arms first, until no bound reaches the best score.

        Returns:
            The scores, and whether an arm had to be solved for that was not prepared.
        """
        keys, bounds = [x.tobytes() for x in turn.X], turn.bounds()
        scores, best, exact, missed = np.full(len(keys), -np.inf), -np.inf, dict[bytes, float](), False
        prepared = np.array([key in self.solves.held for key in keys])
        for place in np.lexsort((-bounds, ~prepared)).tolist():
            key = keys[place]
            if key not in exact:
                if bounds[place] < best or not self._may_win(turn, place, key, best):
                    continue
                missed |= not prepared[place]
                exact[key] = self._score(turn, place, key)
            scores[place] = exact[key]
            best = max(best, exact[key])
        self._release([key for key in keys if exact.get(key, -np.inf) < best])
        self._waiting.difference_update(keys)
        return scores, missed

    def _release(self, keys: Sequence[bytes]) -> None:
        """Drop the solves of arms that were not pulled."""
        self._waiting.difference_update(keys)
        for key in keys:
            self.solves.held.pop(key, None)

    def _may_win(self, turn: _Turn, place: int, key: bytes, best: float) -> bool:
        """Whether an arm may win: it is solved for until its bound falls below the best score, or to the end."""
        if key in self.solves.held:
            return True
        row, v = turn.K[place, :, None], np.empty((0, 1))
        for part in STAGES:
            end = int(part * len(row))
            v = np.concatenate([v, self._log.factor.resume(v, row[len(v) : end])])
            if turn.bound(place, float(v[:, 0] @ v[:, 0])) < best:
                return False
        self.solves.held[key] = Solve(v[:, 0])
        return True

    def _score(self, turn: _Turn, place: int, key: bytes) -> float:
        v = self.solves.column(key, turn.K.shape[1], lambda: turn.K[place])
        x, extra = turn.X[place : place + 1], turn.extra
        mean = float(v @ self._log.whitened_rewards(len(v)))
        unscaled = float(self._log.kernel.diag(x)[0] - v @ v)
        if extra is not None:
            u = extra.solve(x, v[:, None])[:, 0]
            mean += float(u @ extra.whitened)
            unscaled -= float(u @ u)
        return mean + turn.alpha * math.sqrt(max(unscaled, 0.0) * (1.0 / turn.lam))

    def _covariances(self, X: FloatArray, K: FloatArray, known: int, points: FloatArray) -> FloatArray:
        """Covariances (q, n) of arms X, whose kernel rows are K (n, known), with points (q, d), given the rows."""
        backward = [self.solves.backward(x.tobytes(), known) for x in points]
        return self._log.kernel(points, X) - np.stack(backward) @ K.T

    # --- many turns

    def _move(self, known: int, alpha: float) -> None:
        """Lengthen the base, and prepare the turns that have been announced since the last time.

        The base is what most agents know: where messages take time, one that knows less cannot use it.
        """
        base = min(known, self._log.size - sorted(self._lags)[len(self._lags) * 4 // 5])
        if base > self.solves.base:
            self.solves.lengthen(base)
        fresh = [arms for arms, squares in self._coming.items() if squares is None]
        rows, owners = dict[bytes, FloatArray](), list[int]()
        for start in range(0, len(fresh), SETS_AT_ONCE):
            self._pick(fresh[start : start + SETS_AT_ONCE], alpha, rows, owners)
        keys, z = list(rows), self._log.whitened_rewards(self.solves.base)
        if not keys:
            return
        V = self._log.factor.solve(np.array(list(rows.values())).T)
        for key, v in zip(keys, V.T, strict=True):
            self.solves.held[key] = Solve(v.copy())
        self._waiting.update(keys)
        leaders = self._leaders(keys, V, np.array(owners), alpha)
        S = self._log.factor.solve_transposed(np.column_stack([V[:, leaders], z]))
        self.solves.base_weights = S[:, -1].copy()
        for place, s in zip(leaders, S.T, strict=False):
            self.solves.held[keys[place]].s = s.copy()

    def _leaders(self, keys: Sequence[bytes], V: FloatArray, owners: IndexArray, alpha: float) -> list[int]:
        """Which of the arms that were solved for come close to the best score of their arm set."""
        X = np.array([np.frombuffer(key) for key in keys])
        unscaled = np.maximum(self._log.kernel.diag(X) - np.einsum("ij,ij->i", V.T, V.T), 0.0)
        scores = V.T @ self._log.whitened_rewards(len(V)) + alpha * np.sqrt(unscaled / self._log.lam)
        best = np.full(owners.max() + 1, -np.inf)
        np.maximum.at(best, owners, scores)
        return np.flatnonzero(scores >= best[owners] - self._reach_backward.width).tolist()

    def _pick(self, sets: Sequence[ArmSet], alpha: float, rows: dict[bytes, FloatArray], owners: list[int]) -> None:
        """Add the likely winners of arm sets: by key the kernel rows over the base, and the number of the arm set.

        What bounds sigma at the other arms is noted.
        """
        X = np.concatenate([arms.features for arms in sets])
        K = self._log.cross(X, self.solves.base)
        squares = self._leading_squares(K, min(self.solves.base, max(256, self.solves.base // 6)))
        prior, weights = self._log.kernel.diag(X), self.solves.weights(self.solves.base)
        bounds = K @ weights + alpha * np.sqrt(np.maximum(prior - squares, 0.0) / self._log.lam)
        width = alpha * math.sqrt(float(prior.max()) / self._log.lam)
        self._reach.begin(0.1 * width)
        self._reach_backward.begin(0.05 * width)
        start, first = 0, owners[-1] + 1 if owners else 0
        for owner, arms in enumerate(sets, start=first):
            part = slice(start, start + len(arms))
            self._coming[arms] = squares[part]
            for place in np.flatnonzero(bounds[part] >= bounds[part].max() - self._reach.width).tolist():
                key = arms.features[place].tobytes()
                if key not in self.solves.held and key not in rows:
                    rows[key] = K[start + place].copy()
                    owners.append(owner)
            start += len(arms)

    def _leading_squares(self, K: FloatArray, leading: int) -> FloatArray:
        V = self._log.factor.solve(K[:, :leading].T)
        squares: FloatArray = np.einsum("ij,ij->i", V.T, V.T)
        return squares

    def _forget(self) -> None:
        """Drop the oldest solves of arms that were pulled long ago."""
        idle = len(self.solves.held) - len(self._waiting)
        if idle > 2 * MOST_IDLE:
            for key in [key for key in self.solves.held if key not in self._waiting][: idle - MOST_IDLE]:
                del self.solves.held[key]


def _rounding(log: Rows, known: int) -> float:
    """Far more than the rounding of a score from weights: the condition of K + lam I is at most n k(x, x)/lam."""
    return 1e-12 * (known + 1) * log.scale * log.scale
