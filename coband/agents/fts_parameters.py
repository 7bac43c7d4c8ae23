"""Parameters of federated Thompson sampling, and what follows from them: regions, weights phi, and noise.

FTS: Dai et al. 2020; with distributed exploration (DE) and differential privacy (DP): Dai et al. 2021, algorithms 1
and 2. What is of the authors' program stands in `agents.fts`.
"""

from __future__ import annotations

import math
from typing import Annotated, Self

import numpy as np
from pydantic import Field, model_validator

from coband.simulator.arrays import FloatArray, IntArray
from coband.simulator.core.config import Config
from coband.simulator.maths.random_features import RandomFeatures


class FtsConfig(Config):
    """Parameters of FTS, which are those of all four."""

    features: int = Field(default=100, ge=1)
    """M, random features."""
    length_scale: float = Field(default=0.1, gt=0)
    """Of the squared exponential kernel."""
    variance: float = Field(default=1.0, gt=0)
    """k(x, x)."""
    noise_variance: float = Field(default=0.01, gt=0)
    """Variance of the noise of rewards, of the model."""
    initial: int = Field(default=10, ge=0)
    """Random points of an agent's region before it sends anything."""
    patience: int = Field(default=3, ge=1)
    """A round also ends when an agent has sent so many draws in it, so that agents that are down hold nobody up."""

    @property
    def regions(self) -> int:
        """Equal parts of each coordinate, whose products are the regions."""
        return 1

    def draw_features(self, rng: np.random.Generator, dimension: int) -> RandomFeatures:
        return RandomFeatures(rng, self.features, dimension, self.length_scale, self.variance)

    def total(self, dimension: int) -> int:
        """P."""
        return int(self.regions**dimension)

    def regions_of(self, X: FloatArray) -> IntArray:
        """The region of each row, (n,)."""
        return np.zeros(len(X), dtype=np.int64)

    def misplaced(self, X: FloatArray) -> str:
        """What to say of points for which the regions are not made; empty where there are none."""
        return ""

    def shares(self, agents: int, dimension: int, round: int) -> FloatArray:
        """phi, (P, agents): how much each agent counts in each region."""
        return np.full((1, agents), 1.0 / agents)


class Regions(FtsConfig):
    """Parameters of FTS-DE."""

    splits: int = Field(default=2, ge=1)
    """Equal parts of each coordinate; their products are the P regions."""
    low: float = 0.0
    """Where the domain begins, in each coordinate."""
    high: float = 1.0
    """Where it ends."""
    a: float = Field(default=16.0, ge=0, le=700)
    """An agent counts exp(a), to begin with, in the region that it explores first."""
    b: float = Field(default=1.0, ge=0, le=700)
    """An agent counts exp(b) in the other regions, and in the end everywhere."""
    constant: int = Field(default=10, ge=0)
    """Rounds in which a stays as it is."""
    decay: int = Field(default=30, ge=2)
    """Rounds after these in which a falls to b."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.low < self.high:
            raise ValueError(f"low(={self.low:g}) must be < high(={self.high:g}).")
        return self

    @property
    def regions(self) -> int:
        return self.splits

    def regions_of(self, X: FloatArray) -> IntArray:
        """The region of each row, (n,); the first coordinate counts most."""
        cells = np.floor((X - self.low) / (self.high - self.low) * self.splits).astype(np.int64)
        place: IntArray = self.splits ** np.arange(X.shape[1])[::-1]
        return np.clip(cells, 0, self.splits - 1) @ place

    def misplaced(self, X: FloatArray) -> str:
        if not X.size or (X.min() >= self.low and X.max() <= self.high):
            return ""
        return (
            f"arms lie outside of {self.low:g} to {self.high:g} and count to the regions at its border; "
            "give the low and high of the domain"
        )

    def shares(self, agents: int, dimension: int, round: int) -> FloatArray:
        """phi, (P, agents), of a round from 1: agent n explores region n mod P first."""
        P, since = self.total(dimension), round - 1 - self.constant
        a = self.a + (self.b - self.a) * min(max(since, 0) / (self.decay - 1), 1.0)
        own = np.arange(agents) % P == np.arange(P)[:, None]
        shares = np.exp(np.where(own, a, self.b) - max(a, self.b))
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))


class Private(FtsConfig):
    """Parameters of DP-FTS."""

    q: float = Field(default=0.35, gt=0, le=1)
    """With this probability an agent takes part in a round."""
    S: float = Field(default=22.0, gt=0)
    """Weights are cut to the length S / sqrt(P)."""
    z: float = Field(default=1.0, gt=0)
    """Deviation of the noise over what an agent changes in all regions together."""
    delta: Annotated[float, Field(gt=0, lt=1)] = 1e-3
    """With this probability the promise of epsilon may fail."""

    def release(self, rng: np.random.Generator, shares: FloatArray, weights: FloatArray) -> FloatArray:
        """sum over a random subset of phi_np omega_n / q with noise, (P, M), from phi (P, N) and omega (N, M)."""
        chosen, bound = rng.random(len(weights)) < self.q, self.S / math.sqrt(len(shares))
        cut = weights / np.maximum(1.0, np.linalg.norm(weights, axis=1) / bound)[:, None]
        noise = rng.standard_normal((len(shares), weights.shape[1]))
        deviations = self.z * self.S * shares.max(axis=1, keepdims=True) / self.q
        return np.asarray((shares * chosen) @ cut / self.q + deviations * noise)


class PrivateRegions(Regions, Private):
    """Parameters of DP-FTS-DE."""
