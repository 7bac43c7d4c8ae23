"""Nystrom posteriors over a dictionary, and the part of such a model that predicts.

Li et al. 2023 ("Learning Kernelized Contextual Bandits in a Distributed and Asynchronous Environment"), eq. 2: with
embeddings z(x) = L^(-1) k_S(x), statistics A = sum z z^T and b = sum z y, and P = (A + lam I)^(-1),

    mu(x)      = z^T P b
    sigma(x)^2 = (k(x,x) - z^T A P z) / lam = (k(x,x) - z^T (I - lam P) z) / lam.

Both are forms in *features* f(x): mu = f.w and sigma^2 = (k(x,x) - f^T Q f)/lam. Features are the kernel row k_S(x)
itself, with w = L^(-T) P b and Q = L^(-T) (I - lam P) L^(-1), which saves the embedding; or, where the dictionary is
so badly conditioned that Q would lose digits, the embedding z(x), with w = P b and Q = I - lam P.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from coband.simulator.arms import ArmSet, Points, features_of
from coband.simulator.arrays import FloatArray
from coband.simulator.maths.linalg.growing_rows import GrowingRows
from coband.simulator.maths.linalg.matrices import add_outer, dpotrf, dpotri, dtrtrs, padded
from coband.simulator.maths.linalg.quadratic_forms import inner
from coband.simulator.maths.posteriors.dictionary import Dictionary, Statistics
from coband.simulator.maths.posteriors.finite_domain import Domain
from coband.simulator.maths.posteriors.observations import Observations
from coband.simulator.maths.posteriors.protocol import Posterior, Predictor

MARGIN = 1e-6
"""Rounding lifts a standard deviation above its bound by at most this share; 1e-8 was measured."""


class NystromPredictor(Predictor):
    """mu = f.w and sigma^2 = (k(x,x) - f^T Q f)/lam in features f(x); immutable.

    It holds one m x m matrix, with embeddings two, and so is what an agent that only evaluates should keep.

    Args:
        embeds: whether features are embeddings z(x) rather than kernel rows k_S(x).
        w: weights (m,).
        Q: quadratic form (m, m).
    """

    def __init__(self, dictionary: Dictionary, lam: float, embeds: bool, w: FloatArray, Q: FloatArray) -> None:
        self.w = w
        self.Q = Q
        self.lam = lam
        self._kernel = dictionary.kernel
        # Not the dictionary itself, whose inverse root only embeddings need.
        self._bound = dictionary.bound
        self._inverse_root = dictionary.inverse_root if embeds else None
        self._of_domain: tuple[ArmSet, FloatArray, FloatArray] | None = None

    @property
    def size(self) -> int:
        return len(self.w)

    def features(self, arms: Points) -> FloatArray:
        """Features f of n arms, as rows (n, m); of a stack (..., n, d) the matrices (..., n, m)."""
        X = features_of(arms)
        if self._bound is None:
            return np.empty((*X.shape[:-1], 0))
        K = self._bound.evaluate(X)
        return K if self._inverse_root is None else K @ self._inverse_root.T

    def predict(self, arms: Points) -> tuple[FloatArray, FloatArray]:
        """Mean and variance (Li et al. 2023, eq. 2) of n arms, each (n,); 0 and k(x,x)/lam without dictionary.

        Those of a whole domain, which is offered turn after turn, are computed once.
        """
        if isinstance(arms, ArmSet) and arms.domain is arms:
            if self._of_domain is None or self._of_domain[0] is not arms:
                self._of_domain = (arms, *self._predict(arms))
            return self._of_domain[1:]
        return self._predict(arms)

    def scores_stack(self, X: FloatArray, alpha: float) -> tuple[FloatArray, FloatArray]:
        """The scores mu + alpha sigma of several arm sets (N, n, d) and their variances, each (N, n).

        What an arm could score at most follows from its mean and k(x,x)/lam, the largest its variance can be. Where
        that is below the largest mean of its arm set, the arm cannot win: its score is -inf, its variance that bound.
        """
        F, prior = self.features(X), self._prior(X)
        mean, variance = F @ self.w, prior / self.lam
        contends = mean + (1.0 + MARGIN) * alpha * np.sqrt(variance) >= mean.max(axis=1, keepdims=True)
        rows = np.flatnonzero(contends)
        if len(rows) % 2:
            rows = np.append(rows, rows[0])  # BLAS rounds the last of an odd number of rows unlike all others.
        variance.ravel()[rows] = self._posterior(prior.ravel()[rows], F.reshape(prior.size, self.size)[rows])
        return np.where(contends, mean + alpha * np.sqrt(variance), -np.inf), variance

    def _predict(self, arms: Points) -> tuple[FloatArray, FloatArray]:
        F = self.features(arms)
        return F @ self.w, self.variance_of(arms, F)

    def variance(self, arms: Points) -> FloatArray:
        """sigma^2 (Li et al. 2023, eq. 2) of n arms, shape (n,)."""
        return self.variance_of(arms, self.features(arms))

    def variance_of(self, arms: Points, F: FloatArray) -> FloatArray:
        """sigma^2 of n arms with features F (..., n, m), clipped at 0; shape (..., n)."""
        return self._posterior(self._prior(features_of(arms)), F)

    def _prior(self, X: FloatArray) -> FloatArray:
        """k(x,x) of points (..., d), shape (...)."""
        return self._kernel.diag(X.reshape(-1, X.shape[-1])).reshape(X.shape[:-1])

    def _posterior(self, prior: FloatArray, F: FloatArray) -> FloatArray:
        """sigma^2 from k(x,x) (..., n), in place."""
        prior -= inner(F @ self.Q, F)
        np.maximum(prior, 0.0, out=prior)
        prior *= 1.0 / self.lam
        return prior


EMBED_BELOW = 1e-6
"""Relative pivot below which features are embeddings: 1/pivot enters Q."""
UPDATES_BEFORE_REFIT = 64
"""Errors of updates add up: 64 change variances by less than 1e-10, relatively (Gaussian kernels, up to 300 points). A
fit of 300 points takes as long as some 70 updates, so that it about doubles their time."""
RESIDUAL_ALLOWED = 1e-9
"""Largest entry of (A + lam I) P b - b, relative to the largest of b, that an update may leave."""


class NystromModel(Predictor):
    """An immutable version of a Nystrom posterior, which many agents can hold.

    Made by ``fit`` from statistics and by ``updated`` from another version.

    Attributes:
        statistics: A and b, kept as exact sums whatever became of P.
        predictor: the part that evaluates, a quarter of the memory, with embeddings a half.
    """

    def __init__(
        self,
        dictionary: Dictionary,
        statistics: Statistics,
        lam: float,
        P: FloatArray,
        Q: FloatArray | None = None,
        updates: int = 0,
    ) -> None:
        self.dictionary = dictionary
        self.statistics = statistics
        self.lam = lam
        self._embeds = dictionary.smallest_pivot < EMBED_BELOW
        self._P = P
        self._theta = P @ statistics.b
        self._updates = updates
        self._of_domain: tuple[FloatArray, FloatArray, FloatArray] | None = None
        self.predictor = NystromPredictor(
            dictionary, lam, self._embeds, self._dual(self._theta), self._quadratic_form() if Q is None else Q
        )

    @classmethod
    def fit(cls, dictionary: Dictionary, statistics: Statistics, lam: float) -> NystromModel:
        """The model of given statistics, from scratch: O(m^3).

        Raises:
            ValueError: the statistics are not over the dictionary's points, or lam is not positive.
        """
        if statistics.size != dictionary.size:
            raise ValueError(f"statistics over {statistics.size} points do not fit a dictionary of {dictionary.size}.")
        if not lam > 0:
            raise ValueError(f"lam(={lam}) must be > 0.")
        return cls(dictionary, statistics, lam, _inverse(statistics.A, lam))

    def predict(self, arms: Points) -> tuple[FloatArray, FloatArray]:
        return self.predictor.predict(arms)

    def variance(self, arms: Points) -> FloatArray:
        """sigma^2 (Li et al. 2023, eq. 2) of n arms, shape (n,)."""
        return self.predictor.variance(arms)

    def of_domain(self, domain: Domain) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Features (M, m), means and variances (M,) of a domain's distinct points, computed once for all agents."""
        if self._of_domain is None:
            F = self.predictor.features(domain.distinct)
            self._of_domain = F, F @ self.predictor.w, self.predictor.variance_of(domain.distinct, F)
        return self._of_domain

    @cached_property
    def log_det(self) -> float:
        """log det(I + A/lam), which is log det(I + K~/lam) for the kernel matrix K~ = Z Z^T of the embedded data."""
        return float(np.linalg.slogdet(np.eye(self.statistics.size) + self.statistics.A / self.lam)[1])

    def gain(self, f: FloatArray) -> FloatArray:
        """G f (m,) for features f (m,), where f^T G f' = z^T P z'."""
        if self._embeds:
            return self._P @ f
        return self._dual(self._P @ (self.dictionary.inverse_root @ f))

    def updated(
        self, dictionary: Dictionary, Z: FloatArray, y: FloatArray, statistics: Statistics | None = None
    ) -> NystromModel:
        """The model with p more observations, over a dictionary that continues the present one: O(m^2 p).

        P is padded with I/lam and gets a rank-p Woodbury correction. Rounding errors are bounded: a model is fit from
        its statistics every 64 updates, where the new points are more than half of the dictionary, and where P b does
        not solve (A + lam I) x = b closely.

        Args:
            dictionary: the present dictionary, or one that it is a prefix of, with m' points.
            Z: embeddings (p, m') of the new points in that dictionary.
            y: rewards (p,).
            statistics: those of all observations, where they are at hand.

        Raises:
            ValueError: the present dictionary is not a prefix of the new one.
        """
        if not self.dictionary.is_prefix_of(dictionary):
            raise ValueError(
                f"the present dictionary of {self.dictionary.size} points must be a prefix of the new one "
                f"of {dictionary.size} points; re-express the statistics and fit otherwise."
            )
        m = dictionary.size
        if statistics is None:
            statistics = self.statistics.extended(Z, y)
        if self._updates + 1 >= UPDATES_BEFORE_REFIT or 2 * len(Z) > m:
            return NystromModel.fit(dictionary, statistics, self.lam)
        P = padded(self._P, m, 1.0 / self.lam)
        G = _woodbury_root(P, Z)
        add_outer(P, -1.0, G)
        Q = self._updated_form(dictionary, G)
        model = NystromModel(dictionary, statistics, self.lam, P, Q, self._updates + 1)
        return model if model._solves() else NystromModel.fit(dictionary, statistics, self.lam)

    def _updated_form(self, dictionary: Dictionary, G: FloatArray) -> FloatArray | None:
        if self._embeds or dictionary.smallest_pivot < EMBED_BELOW:
            return None
        Q = padded(self.predictor.Q, dictionary.size)
        add_outer(Q, self.lam, dictionary.dual(G))
        return Q

    def _quadratic_form(self) -> FloatArray:
        core = -self.lam * self._P
        core.flat[:: len(core) + 1] += 1.0
        if self._embeds:
            return core
        inverse_root = self.dictionary.inverse_root
        return inverse_root.T @ core @ inverse_root

    def _dual(self, h: FloatArray) -> FloatArray:
        return h if self._embeds else self.dictionary.dual(h)

    def _solves(self) -> bool:
        A, b = self.statistics.A, self.statistics.b
        residual = A @ self._theta + self.lam * self._theta - b
        return bool(np.abs(residual).max(initial=0.0) <= RESIDUAL_ALLOWED * np.abs(b).max(initial=0.0))


class NystromPosterior(Posterior):
    """One agent's posterior: a shared immutable model and its own points since, added in the model's dictionary.

    Each own point j corrects P by a rank-one term, P_j = P_(j-1) - h_j h_j^T / c_j with h_j = P_(j-1) z_j and
    c_j = 1 + z_j^T h_j. Only H_j (h_j in the model's features) and c_j are kept; the model is not copied:

        sigma(x)^2 = sigma_base(x)^2 - sum_j (f.H_j)^2 / c_j,    w_j = w_(j-1) + H_j (y_j - mu_(j-1)(x_j)) / c_j.

    Args:
        base: the model.
        domain: all points that it will be asked about, where they are known: mean and variance of all are kept then.

    Attributes:
        base_variance: sigma_base^2, given the model's data alone, of the arms of the last ``predict``.
    """

    def __init__(self, base: NystromModel, domain: Domain | None = None) -> None:
        self.base, self._domain = base, domain
        self.base_variance: FloatArray = np.empty(0)
        self._w = base.predictor.w
        self._H = GrowingRows(base.dictionary.size, 4)
        self._c = GrowingRows(1, 4)
        self._of_domain = None if domain is None else base.of_domain(domain)

    @property
    def size(self) -> int:
        return self._H.size

    @property
    def log_det(self) -> float:
        """log det(I + K~/lam) of the model's and the own data, K~ the kernel matrix of the embedded points."""
        return self.base.log_det + float(np.log(self._corrections()[1]).sum())

    def update(self, observations: Observations) -> None:
        features = self.base.predictor.features(observations.points)
        for f, y in zip(features, observations.rewards.tolist(), strict=True):
            H, c = self._corrections()
            h = self.base.gain(f)
            h -= ((H @ f) / c) @ H
            c_new = 1.0 + f @ h
            step = (y - f @ self._w) / c_new
            self._w = self._w + h * step
            self._H.append(h[None])
            self._c.append(np.array([[c_new]]))
            if self._of_domain is not None:
                F, mean, variance = self._of_domain
                g = F @ h
                self._of_domain = F, mean + g * step, np.maximum(variance - g * g / c_new, 0.0)

    def predict(self, arms: Points) -> tuple[FloatArray, FloatArray]:
        if self._domain is not None and self._of_domain is not None:
            base = self.base.of_domain(self._domain)
            mean, variance, self.base_variance = self._domain.at(arms, *self._of_domain[1:], base[2])
            return mean, variance
        predictor = self.base.predictor
        F = predictor.features(arms)
        self.base_variance = variance = predictor.variance_of(arms, F)
        if self.size:
            H, c = self._corrections()
            variance = np.maximum(variance - ((F @ H.T) ** 2) @ (1.0 / c), 0.0)
        return F @ self._w, variance

    def base_variance_of(self, arms: Points) -> FloatArray:
        """sigma^2 (Li et al. 2023, eq. 2) of n arms given the model's data alone, shape (n,)."""
        return self.base.variance(arms)

    def _corrections(self) -> tuple[FloatArray, FloatArray]:
        return self._H.leading(self.size), self._c.leading(self.size)[:, 0]


def _inverse(A: FloatArray, lam: float) -> FloatArray:
    """(A + lam I)^(-1), exactly symmetric."""
    ridge = np.array(A, order="F")
    ridge.flat[:: len(A) + 1] += lam
    if not len(A):
        return ridge
    rounding = len(A) * np.finfo(np.float64).eps * A.diagonal().max()
    factor, info = dpotrf(ridge, lower=1)
    if info == 0 and lam > rounding:
        lower, _ = dpotri(factor, lower=1)
        inverse: FloatArray = np.tril(lower, -1)
        inverse += np.tril(lower).T
        return inverse
    # A Cholesky factor would invert the rounding errors of A; as eigenvalues they can be told from zero.
    values, vectors = np.linalg.eigh(A)
    values[values < rounding] = 0.0
    solved: FloatArray = (vectors / (values + lam)) @ vectors.T
    return solved


def _woodbury_root(P: FloatArray, Z: FloatArray) -> FloatArray:
    """G (m, p) with (P^(-1) + Z^T Z)^(-1) = P - G G^T: G = P Z^T C^(-T) where C C^T = I + Z P Z^T."""
    U = P @ Z.T
    M = Z @ U
    M.flat[:: len(M) + 1] += 1.0
    C, _ = dpotrf(M, lower=1)
    root, _ = dtrtrs(C, U.T, lower=1)
    return np.asarray(root).T
