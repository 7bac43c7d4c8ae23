"""Nystrom posteriors over a fixed domain: what depends on the model alone is computed once per model.

Li et al. 2023 ("Learning Kernelized Contextual Bandits in a Distributed and Asynchronous Environment"), eq. 2.
"""

from __future__ import annotations

import math

import numpy as np

from coband.simulator.arms import Points
from coband.simulator.arrays import FloatArray, IndexArray
from coband.simulator.maths.linalg.growing_rows import GrowingRows
from coband.simulator.maths.posteriors.dictionary import Dictionary, Statistics
from coband.simulator.maths.posteriors.finite_domain import Domain
from coband.simulator.maths.posteriors.nystrom import NystromModel
from coband.simulator.maths.posteriors.observations import Observations
from coband.simulator.maths.posteriors.protocol import Posterior


class DomainNystromModel:
    """What a Nystrom model says about all points of a domain; immutable, to be shared by the agents that hold it.

    Attributes:
        base: the model.
        mean, variance: of the M distinct points, (M,).
    """

    def __init__(self, domain: Domain, base: NystromModel) -> None:
        self.domain, self.base = domain, base
        predictor = base.predictor
        self._features = predictor.features(domain.distinct)
        self.mean = self._features @ predictor.w
        self.variance = predictor.variance_of(domain.distinct, self._features)
        self._covariances: dict[int, FloatArray] = {}

    def covariance(self, entry: int) -> FloatArray:
        """z(U)^T P z(u) of all distinct points U with one of them, (M,); computed once."""
        if entry not in self._covariances:
            self._covariances[entry] = self._features @ self.base.gain(self._features[entry])
        return self._covariances[entry]


class DomainNystromPosterior(Posterior):
    """``NystromPosterior`` for the points of a domain: a shared model and the agent's own points since.

    Own point j with reward y changes P, and with it the covariances z^T P z between all points, by a rank-one term:
    with g_j = z(U)^T P_(j-1) z(x_j) and c_j = 1 + g_j(x_j),

        sigma(x)^2 = sigma_base(x)^2 - sum_j g_j(x)^2 / c_j,    mu_j = mu_(j-1) + g_j (y - mu_(j-1)(x_j)) / c_j.

    Only the rows v_j = g_j / sqrt(c_j) are kept, over the points of the domain and not of the dictionary.

    Attributes:
        base_variance: sigma_base^2, given the model's data alone, of the arms of the last ``predict``.
    """

    def __init__(self, model: DomainNystromModel) -> None:
        self.model, self.base = model, model.base
        self.base_variance: FloatArray = np.empty(0)
        self._mean, self._variance = model.mean, model.variance
        self._rows = GrowingRows(model.domain.size, 4)
        self._gain = 0.0

    @property
    def size(self) -> int:
        return self._rows.size

    @property
    def log_det(self) -> float:
        """log det(I + K~/lam) of the model's and the own data, K~ the kernel matrix of the embedded points."""
        return self.base.log_det + self._gain

    def update(self, observations: Observations) -> None:
        entries = self.model.domain.entries(observations.points).tolist()
        for entry, y in zip(entries, observations.rewards.tolist(), strict=True):
            V = self._rows.leading(self.size)
            g = self.model.covariance(entry) - V[:, entry] @ V
            root = math.sqrt(1.0 + g[entry])
            v = g / root
            self._mean = self._mean + v * ((y - self._mean[entry]) / root)
            self._variance = self._variance - v * v
            self._rows.append(v[None])
            self._gain += 2.0 * math.log(root)

    def predict(self, arms: Points) -> tuple[FloatArray, FloatArray]:
        mean, variance, base = self.model.domain.at(arms, self._mean, self._variance, self.model.variance)
        self.base_variance = base
        return mean, np.maximum(variance, 0.0)

    def base_variance_of(self, arms: Points) -> FloatArray:
        """sigma^2 (Li et al. 2023, eq. 2) of n points of the domain given the model's data alone, (n,)."""
        return self.model.domain.at(arms, self.model.variance)[0]


class DomainEmbedding:
    """The embeddings of a domain's points in one dictionary.

    Attributes:
        Z: embeddings of the distinct points, (M, m).
    """

    def __init__(self, domain: Domain, dictionary: Dictionary) -> None:
        self.dictionary = dictionary
        self.Z = dictionary.embed(domain.distinct)

    def statistics(self, entries: IndexArray, y: FloatArray) -> Statistics:
        """The statistics of the points of those numbers (p,) with rewards y (p,): repeated points enter by number."""
        distinct, inverse = np.unique(entries, return_inverse=True)
        Z = self.Z[distinct]
        weighted = Z * np.bincount(inverse)[:, None]
        return Statistics(weighted.T @ Z, Z.T @ np.bincount(inverse, weights=y))
