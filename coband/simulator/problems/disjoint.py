"""Classification data as a bandit with one arm per class: the "disjoint" conversion of Dai et al. 2023, section 5.2.

Dai et al. 2023 ("Federated Neural Bandits"): a row x of the data gives K arms x^1 = [x; 0; ...; 0] to x^K = [0; ...; 0;
x]. The arm of the row's class has reward 1, the other arms have reward 0. Each agent visits the rows in its own random
order and draws a new order after each pass.
"""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from coband.simulator.arrays import FloatArray
from coband.simulator.core.config import Config, JsonObject
from coband.simulator.core.world import World
from coband.simulator.problems.datasets import find, load
from coband.simulator.problems.problem import Problem, ProblemEntry, Streams
from coband.simulator.problems.rewards import as_noise
from coband.simulator.problems.world import Blocks, Turn, TurnsWorld, longest_block, one_right, read_only

Scale = Literal["normalise_standardise", "standardise", "normalise", "none"]
LARGE = 1e4
"""Features and rewards beyond are likely to be in an unlucky unit."""


class LabelledData(Config):
    """The name of a dataset and the location of its file."""

    name: Literal["shuttle", "magic", "mushroom"]
    """shuttle: Statlog (Shuttle), 7 classes; magic: MAGIC Gamma Telescope, 2; mushroom: Mushroom, 2; all from UCI."""
    path: Path | None = None
    """The original file or its directory, relative to the scenario; null: where `coband data fetch` puts it."""


def scaled(features: FloatArray, scale: Scale) -> FloatArray:
    """Normalise rows to l2 norm 1, standardise columns to mean 0 and deviation 1, do both in this order, or neither.

    Rows of zeros stay as they are; constant columns are centred and not scaled.
    """
    if scale in ("normalise_standardise", "normalise"):
        norms = np.linalg.norm(features, axis=1, keepdims=True)
        features = features / np.where(norms > 0.0, norms, 1.0)
    if scale in ("normalise_standardise", "standardise"):
        deviation = features.std(axis=0)
        varies = deviation > 1e-12 * np.abs(features).max(axis=0)  # beyond rounding, in whatever unit
        features = (features - features.mean(axis=0)) / np.where(varies, deviation, 1.0)
    return features


def scale_warnings(features: FloatArray, rewards: FloatArray) -> tuple[str, ...]:
    """What is worth knowing about the scale of one's own data, (n, d) and any shape: a column outweighs all others."""
    sizes = np.abs(features).max(axis=0)
    column, found = int(sizes.argmax()), []
    if sizes[column] > LARGE:
        found.append(
            f"feature {column}, counted from 0, reaches {sizes[column]:.3g}, so distances and linear models hardly see "
            "smaller ones; bring features to one scale with problem.scale: standardise"
        )
    if (largest := float(np.abs(rewards).max())) > LARGE:
        found.append(
            f"rewards reach {largest:.3g}, while confidence widths, priors and networks are made for rewards of about "
            "1; divide rewards and noise by such a number"
        )
    return tuple(found)


class DisjointWorld(TurnsWorld):
    """A world in which each turn offers K arms made from one row of a dataset; rewards have no noise.

    Args:
        rows: features, (n, d).
        labels: class number of each row, (n,).
        classes: number of classes, K.
    """

    def __init__(
        self, rows: FloatArray, labels: npt.NDArray[np.intp], classes: int, streams: Streams, agents: int
    ) -> None:
        super().__init__(classes * int(rows.shape[1]), as_noise(0.0), streams)
        self._rows, self._labels, self._classes = rows, labels, classes
        self._longest = longest_block(agents, classes * self.dimension)

    def _open(self, agent: int) -> Blocks[Turn]:
        rng = self._streams("world", agent, "rows")
        rows = (int(row) for _ in count() for row in rng.permutation(len(self._rows)))
        return Blocks(lambda turns: [self._turn(next(rows)) for _ in range(turns)], self._longest)

    def _turn(self, row: int) -> Turn:
        """The row in each of K blocks, (K, K d)."""
        arms = np.zeros((self._classes, self._classes, self._rows.shape[1]))
        arms[np.arange(self._classes), np.arange(self._classes)] = self._rows[row]
        return one_right(arms.reshape(self._classes, -1), int(self._labels[row]))

    def describe(self) -> JsonObject:
        counts = np.bincount(self._labels, minlength=self._classes)
        return {"rows": len(self._rows), "by_class": counts.tolist()}


class DisjointProblem(Problem):
    """One arm per class; an arm has the features of the row in the block of its class and zeros elsewhere."""

    kind: Literal["classification"]
    """Classification data, one arm per class (Dai et al. 2023, section 5.2)."""
    data: LabelledData
    """The dataset."""
    scale: Scale = "normalise_standardise"
    """Rows to l2 norm 1, then columns to mean 0 and deviation 1; or one of the two, or none."""
    rows: int | None = Field(default=None, ge=1)
    """Number of rows to use, drawn once per replication; null: all rows."""

    def build(self, streams: Streams, agents: int, base: Path | None = None) -> World:
        """Scale the data. Each agent draws its order of the rows from the stream (world, agent, rows).

        Raises:
            DataError: a file is missing or malformed.
        """
        table = load(self.data.name, self.data.path, base)
        classes = find(self.data.name).classes
        features, labels = table.features, table.labels
        if self.rows is not None and self.rows < len(features):
            chosen = streams("world", 0, "subset").permutation(len(features))[: self.rows]
            features, labels = features[chosen], labels[chosen]
        numbers = np.searchsorted(np.array(classes), labels).astype(np.intp)  # classes are in alphabetical order
        return DisjointWorld(read_only(scaled(features, self.scale)), numbers, len(classes), streams, agents)


PROBLEM = ProblemEntry(
    name="classification",
    config=DisjointProblem,
    summary="UCI classification data, one arm per class in a block of its own",
    reference="Dai et al. 2023, section 5.2, after Li et al. 2010",
    cites=("dai2023federated", "li2010contextual"),
)
