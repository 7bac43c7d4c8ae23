"""Classification data as a bandit with one arm per cluster: the UCI experiments of Li et al. 2023, section 5.

Li et al. 2023 ("Learning Kernelized Contextual Bandits in a Distributed and Asynchronous Environment") follows Filippi
et al. 2010: k-means with 20 clusters; the arms are the centroids, and the mean reward of an arm is the share of one
class in its cluster. The paper does not specify the following, so these choices are ours: features are standardised
(magic) or 0/1 (mushroom); class g (magic) or e (mushroom) counts as 1; centroids are divided by the largest norm; a
pull returns the class of a random member; the clusters are drawn again for each replication.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
import pydantic
from pydantic import Field

from coband.simulator.arrays import FloatArray
from coband.simulator.core.config import REWARD, Config
from coband.simulator.core.world import World
from coband.simulator.problems.datasets import DATASETS, DataError, LabelledRows, file_version, find, load, locate
from coband.simulator.problems.problem import Problem, ProblemEntry, Streams
from coband.simulator.problems.rewards import GaussianNoise
from coband.simulator.problems.world import FixedArmsWorld, Noise, read_only

ATTEMPTS = 20
"""Number of k-means starts after which an empty cluster is an error."""

ROUNDS = 50
"""Rounds of `ROUND_STEPS` Lloyd steps; k-means ends when a round changes no label, or after the last round."""

ROUND_STEPS = 10


class DataSpec(Config):
    """The name of a dataset and the location of its file."""

    name: Literal["magic", "mushroom"]
    """magic: MAGIC Gamma Telescope; mushroom: Mushroom; both from the UCI Machine Learning Repository."""
    path: Path | None = None
    """The original file or its directory, relative to the scenario; null: where `coband data fetch` puts it."""


class ClusterLabels:
    """Bernoulli rewards: the class of a random member of the cluster, 1 with probability `mean`, else 0."""

    def draws(self, rng: np.random.Generator, turns: int) -> list[float]:
        values: list[float] = rng.random(turns).tolist()
        return values

    def reward(self, mean: float, draw: float) -> float:
        return float(draw < mean)


@dataclass(frozen=True)
class Clustering:
    """A partition of a dataset into k clusters; all arrays are read-only.

    Attributes:
        centroids: means of the members' scaled features, shape (k, d).
        positives: members of the positive class, shape (k,).
        sizes: members, shape (k,).
    """

    centroids: FloatArray
    positives: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]

    @property
    def shares(self) -> FloatArray:
        """Share of the positive class in each cluster, (k,)."""
        return self.positives / self.sizes


def k_means(points: FloatArray, clusters: int, rng: np.random.Generator) -> tuple[FloatArray, npt.NDArray[np.intp]]:
    """Lloyd's k-means from k-means++ starts, restarted when a cluster is empty.

    Args:
        points: (rows, d).
        clusters: number of clusters, k.

    Returns:
        Centroids (k, d), each the mean of its members, and the cluster of each row, (rows,).

    Raises:
        DataError: fewer than k distinct points, or an empty cluster in each of `ATTEMPTS` starts.
    """
    from scipy.cluster.vq import ClusterError, kmeans2  # slow to import, and only some problems need it

    distinct = len(np.unique(points, axis=0))
    if distinct < clusters:
        raise DataError(f"clusters(={clusters}) must be <= the {distinct} distinct rows of the data.")
    for _ in range(ATTEMPTS):
        try:
            centroids, labels = kmeans2(points, clusters, iter=ROUND_STEPS, minit="++", missing="raise", rng=rng)
            for _ in range(ROUNDS - 1):
                before = labels
                centroids, labels = kmeans2(points, centroids, iter=ROUND_STEPS, minit="matrix", missing="raise")
                if np.array_equal(before, labels):
                    break
            return centroids, labels.astype(np.intp)
        except ClusterError:
            continue
    raise DataError(f"clusters(={clusters}) is too many: k-means left a cluster empty in {ATTEMPTS} starts.")


def cluster_classes(
    data: LabelledRows, clusters: int, positive: str, standardise: bool, rng: np.random.Generator
) -> Clustering:
    """Cluster a dataset and count the members of the positive class in each cluster.

    Standardising centres constant columns and does not scale them.
    """
    points = data.features
    if standardise:
        deviation = points.std(axis=0)
        points = (points - points.mean(axis=0)) / np.where(deviation > 0.0, deviation, 1.0)
    centroids, labels = k_means(points, clusters, rng)
    sizes = np.bincount(labels, minlength=clusters).astype(np.int64)
    positives = np.bincount(labels[data.labels == positive], minlength=clusters).astype(np.int64)
    for counts in (sizes, positives):
        counts.flags.writeable = False
    return Clustering(read_only(centroids), positives, sizes)


@lru_cache(maxsize=64)
def _cached_clustering(
    name: str, file: Path, changed: int, size: int, clusters: int, positive: str, standardise: bool, seed: int
) -> Clustering:
    """`cluster_classes`, computed once per process for all algorithms that run on the same replication."""
    return cluster_classes(load(name, file), clusters, positive, standardise, np.random.default_rng(seed))


class ClustersProblem(Problem):
    """One arm per k-means cluster of a classification dataset; every turn offers all arms."""

    kind: Literal["clusters"]
    """Classification data, one arm per cluster."""
    data: DataSpec
    """The dataset."""
    clusters: int = Field(default=20, ge=1)
    """Number of clusters and of arms (Li et al. 2023: 20)."""
    positive: str | None = None
    """The class that counts as 1; null: g for magic, e for mushroom."""
    scale: Literal["standardise", "none"] | None = None
    """standardise: columns to mean 0, deviation 1; none: unchanged; null: standardise for magic, none for mushroom."""
    unit_ball: bool = True
    """Divide the centroids by the largest of their norms, so that the arms lie in the unit ball."""
    rewards: Literal["bernoulli", "gaussian"] = "bernoulli"
    """bernoulli: the class, 0 or 1, of a random member of the cluster; gaussian: the cluster's share plus noise."""
    noise: Annotated[float | None, REWARD] = Field(default=None, ge=0)
    """Standard deviation of the noise with `rewards: gaussian`; null: 0.1. Not for bernoulli."""

    @pydantic.model_validator(mode="after")
    def _check(self) -> ClustersProblem:
        classes = DATASETS[self.data.name].classes
        if self.positive is not None and self.positive not in classes:
            known = " or ".join(classes)
            raise ValueError(f"positive(={self.positive!r}) must be a class of {self.data.name}: {known}.")
        if self.rewards == "bernoulli" and self.noise is not None:
            raise ValueError(f"noise(={self.noise}) needs `rewards: gaussian`; bernoulli rewards need no noise.")
        return self

    def build(self, streams: Streams, agents: int, base: Path | None = None) -> World:
        """Cluster the data, with starts from the stream (world, 0, clusters).

        Raises:
            DataError: the file is missing or malformed, or cannot be divided into that many clusters.
        """
        dataset = find(self.data.name)
        file = locate(dataset, self.data.path, base)
        positive = dataset.positive if self.positive is None else self.positive
        standardise = dataset.numeric if self.scale is None else self.scale == "standardise"
        seed = int(streams("world", 0, "clusters").integers(2**63))
        clustering = _cached_clustering(dataset.name, *file_version(file), self.clusters, positive, standardise, seed)
        truth = {"positive": positive, "sizes": clustering.sizes.tolist(), "shares": clustering.shares.tolist()}
        return FixedArmsWorld(self._arms(clustering.centroids), clustering.shares, self._noise(), streams, truth)

    def _arms(self, centroids: FloatArray) -> FloatArray:
        if not self.unit_ball:
            return centroids
        largest = float(np.linalg.norm(centroids, axis=1).max())
        return centroids / largest if largest > 0.0 else centroids

    def _noise(self) -> Noise:
        if self.rewards == "bernoulli":
            return ClusterLabels()
        return GaussianNoise(kind="gaussian", sd=0.1 if self.noise is None else self.noise)


PROBLEM = ProblemEntry(
    name="clusters",
    config=ClustersProblem,
    summary="UCI classification data, one arm per k-means cluster, reward = share of one class",
    reference="Li et al. 2023, section 5 (UCI datasets), after Filippi et al. 2010",
    cites=("li2023asynchronous", "filippi2010parametric"),
)
