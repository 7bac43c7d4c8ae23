"""Recommendation as a bandit, from the ratings of MovieLens or Yelp: Li et al. 2023, section 5.

Li et al. 2023 ("Learning Kernelized Contextual Bandits in a Distributed and Asynchronous Environment") takes the 2,000
users and the 10,000 items with the most ratings, and 10 features of each from the singular value decomposition of their
rating matrix (0 where there is no rating). An arm is (features of the user, features of an item); ratings above 2 are
positive. A turn offers one positive item with reward 1 and nineteen other items with reward 0.

The paper does not specify the following, so these choices are ours:

* all arms of a turn belong to one user, the acting one;
* each agent is one user. The U users who can act are shuffled in each replication, and agent a is user number a mod U
of them; agents that share a user have their own draws. Users who are not agents still influence the features;
* the nineteen other items are drawn from all items that the user has not rated above 2, since few users have nineteen
low ratings;
* the rows of the factors U sqrt(s) and V sqrt(s) are scaled to norm 1/sqrt(2), so arms lie on the unit sphere
(``scale: normalise``; users and items that the factors say nothing about have 0); or all rows are divided by the
largest norm, which leaves most items close to 0 (``unit_ball``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from coband.simulator.arrays import FloatArray
from coband.simulator.core.config import Config, JsonObject
from coband.simulator.core.world import World
from coband.simulator.problems.datasets import DataError, file_version, locate
from coband.simulator.problems.problem import Problem, ProblemEntry, Streams
from coband.simulator.problems.ratings import RATINGS, Ratings, read
from coband.simulator.problems.rewards import as_noise
from coband.simulator.problems.world import Blocks, Turn, TurnsWorld, longest_block, one_right, read_only

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

FIRST_RATINGS = 1_000
"""Looked at in a file that is too large for a check."""

NOTHING = 1e-10
"""Share of the largest norm below which factors are rounding errors, as of users who share no item with most others."""

Scale = Literal["unit_ball", "normalise", "none"]
IntArray = npt.NDArray[np.int64]


class RatingData(Config):
    """The name of a rating dataset and the location of its file."""

    name: Literal["movielens", "yelp"]
    """movielens: `ratings.csv` or `u.data`; yelp: the reviews, `yelp_academic_dataset_review.json`."""
    path: Path | None = None
    """The original file or its directory, relative to the scenario; null: where `coband data list` looks for it."""


@dataclass(frozen=True, eq=False)
class RatingMatrix:
    """The ratings of the users and items with the most ratings.

    Attributes:
        matrix: ratings, 0 where there is none, (users, items).
        user_names: names of the users in the file.
    """

    matrix: csr_matrix
    user_names: tuple[str, ...]


def most_rated(ratings: Ratings, users: int, items: int) -> RatingMatrix:
    """Keep the ratings by the most active users of the most rated items.

    Ties go to the user or item that comes first in the file. A user's last rating of an item counts.
    """
    from scipy.sparse import csr_matrix  # slow to import, and only ratings need it

    chosen_users, user_places = _top(ratings.users, users)
    chosen_items, item_places = _top(ratings.items, items)
    rows, columns = user_places[ratings.users], item_places[ratings.items]
    kept = (rows >= 0) & (columns >= 0)
    rows, columns, values = rows[kept], columns[kept], ratings.values[kept].astype(np.float64)
    keys = rows.astype(np.int64) * len(chosen_items) + columns
    _, from_the_end = np.unique(keys[::-1], return_index=True)
    last = len(keys) - 1 - from_the_end
    shape = len(chosen_users), len(chosen_items)
    matrix = csr_matrix((values[last], (rows[last], columns[last])), shape=shape)
    return RatingMatrix(matrix, tuple(ratings.user_names[user] for user in chosen_users.tolist()))


def _top(numbers: npt.NDArray[np.int32], most: int) -> tuple[IntArray, npt.NDArray[np.int32]]:
    """The `most` most frequent numbers, and for each number its rank among them, or -1."""
    counts = np.bincount(numbers)
    chosen = np.argsort(-counts, kind="stable")[:most].astype(np.int64)
    places = np.full(len(counts), -1, dtype=np.int32)
    places[chosen] = np.arange(len(chosen))
    return chosen, places


def factors(matrix: csr_matrix, rank: int, scale: Scale) -> tuple[FloatArray, FloatArray]:
    """Features of users and items, (users, rank) and (items, rank), from the truncated singular value decomposition.

    Raises:
        DataError: there are not more users and items than features.
    """
    from scipy.sparse.linalg import svds  # slow to import, and only ratings need it

    users, items = matrix.shape
    if rank >= min(users, items):
        raise DataError(
            f"rank(={rank}) must be less than the number of users and of items: there are {users} users and {items} "
            "items."
        )
    start = np.full(min(users, items), 1.0)  # a fixed start, so that the decomposition is the same every time
    U, s, Vt = svds(matrix, k=rank, v0=start)
    order = np.argsort(-s)
    U, s, V = U[:, order], s[order], Vt[order].T
    signs = np.sign(V[np.abs(V).argmax(axis=0), np.arange(rank)])
    roots = np.sqrt(s) * np.where(signs == 0.0, 1.0, signs)
    return _scaled(U * roots, scale), _scaled(V * roots, scale)


def _scaled(rows: FloatArray, scale: Scale) -> FloatArray:
    if scale == "none":
        return read_only(rows)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    rows = np.where(norms > NOTHING * norms.max(), rows, 0.0)
    divisor = norms if scale == "normalise" else np.full_like(norms, norms.max())
    return read_only(rows / np.where(divisor > 0.0, np.sqrt(2.0) * divisor, 1.0))


@dataclass(frozen=True, eq=False)
class RecommenderData:
    """The data of a world: features of users and items, ratings, and the threshold of positive ratings."""

    users: FloatArray
    items: FloatArray
    ratings: RatingMatrix
    above: float

    def liked(self, user: int) -> IntArray:
        """Items that the user rated above the threshold."""
        row = self.ratings.matrix[[user]]
        return np.sort(row.indices[row.data > self.above]).astype(np.int64)

    def others(self, user: int) -> IntArray:
        """Items that the user did not rate above the threshold."""
        return np.setdiff1d(np.arange(len(self.items)), self.liked(user))

    def eligible(self, count: int) -> IntArray:
        """Users with at least one positive item and ``count`` - 1 other items."""
        from scipy.sparse import csr_matrix

        matrix = self.ratings.matrix
        positive = csr_matrix((matrix.data > self.above, matrix.indices, matrix.indptr), shape=matrix.shape)
        liked = np.asarray(positive.sum(axis=1)).ravel().astype(np.int64)
        return np.flatnonzero((liked >= 1) & (len(self.items) - liked >= count - 1)).astype(np.int64)


@lru_cache(maxsize=4)
def _cached_ratings(name: str, file: Path, changed: int, size: int, users: int, items: int) -> RatingMatrix:
    return most_rated(read(RATINGS[name], file), users, items)


@lru_cache(maxsize=4)
def _cached_factors(ratings: RatingMatrix, rank: int, scale: Scale) -> tuple[FloatArray, FloatArray]:
    return factors(ratings.matrix, rank, scale)


class RecommenderWorld(TurnsWorld):
    """A world in which each turn offers one item that the user likes among others; rewards have no noise.

    Arms are (features of the user, features of the item).

    Args:
        acting: the user of each agent.
    """

    def __init__(self, data: RecommenderData, acting: list[int], count: int, streams: Streams) -> None:
        super().__init__(int(data.users.shape[1] + data.items.shape[1]), as_noise(0.0), streams)
        self._data, self._acting, self._count = data, acting, count
        self._longest = longest_block(len(acting), count * self.dimension)
        self._choices: dict[int, tuple[IntArray, IntArray]] = {}

    def describe(self) -> JsonObject:
        matrix, names = self._data.ratings.matrix, self._data.ratings.user_names
        return {
            "users": int(matrix.shape[0]),
            "items": int(matrix.shape[1]),
            "ratings": int(matrix.nnz),
            "positive": int((matrix.data > self._data.above).sum()),
            "acting": [[names[user]] for user in self._acting],
        }

    def _open(self, agent: int) -> Blocks[Turn]:
        rng = self._streams("world", agent, "arms")
        return Blocks(lambda turns: [self._draw(agent, rng) for _ in range(turns)], self._longest)

    def _draw(self, agent: int, rng: np.random.Generator) -> Turn:
        user = self._acting[agent]
        liked, others = self._items_of(user)
        items = np.empty(self._count, dtype=np.int64)
        items[1:] = others[rng.choice(len(others), self._count - 1, replace=False)]
        place = int(rng.integers(self._count))
        items[0] = items[place]
        items[place] = liked[rng.integers(len(liked))]
        own = np.broadcast_to(self._data.users[user], (self._count, self._data.users.shape[1]))
        return one_right(np.hstack([own, self._data.items[items]]), place)

    def _items_of(self, user: int) -> tuple[IntArray, IntArray]:
        found = self._choices.get(user)
        if found is None:
            found = self._choices[user] = self._data.liked(user), self._data.others(user)
        return found


class RecommenderProblem(Problem):
    """Recommendation from ratings: each turn offers one item that the user likes, among others."""

    kind: Literal["recommender"]
    """Recommendation from ratings (Li et al. 2023, section 5)."""
    data: RatingData
    """The ratings."""
    users: int = Field(default=2_000, ge=1)
    """Number of users to keep, those with the most ratings; all users if there are fewer."""
    items: int = Field(default=10_000, ge=1)
    """Number of items to keep, those with the most ratings; all items if there are fewer."""
    rank: int = Field(default=10, ge=1)
    """Features of a user, and of an item; arms have twice as many."""
    positive: float = Field(default=2.0, ge=0.0)
    """Ratings above this value are positive."""
    count: int = Field(default=20, ge=2)
    """Arms of a turn, one of them positive."""
    scale: Scale = "normalise"
    """normalise: user and item features to norm 1/sqrt(2); unit_ball: divided by the largest norms; none: as is."""

    def peek(self, base: Path | None, most: int) -> str | None:
        source = RATINGS[self.data.name]
        file = locate(source, self.data.path, base)
        if file.stat().st_size <= most:
            return None
        return f"the first {len(read(source, file, FIRST_RATINGS).values):,} ratings of {file.name}"

    def build(self, streams: Streams, agents: int, base: Path | None = None) -> World:
        """Decompose the ratings, and draw the acting users from the stream (world, 0, users).

        Raises:
            DataError: the file is missing or malformed, or has too few users or items.
        """
        source = RATINGS[self.data.name]
        file = locate(source, self.data.path, base)
        ratings = _cached_ratings(source.name, *file_version(file), self.users, self.items)
        data = RecommenderData(*_cached_factors(ratings, self.rank, self.scale), ratings, self.positive)
        eligible = data.eligible(self.count)
        if not len(eligible):
            raise DataError(
                f"no user can act: none has an item rated above {self.positive:g} and {self.count - 1} items that "
                "it has not rated above; set count lower.",
                file,
            )
        shuffled = eligible[streams("world", 0, "users").permutation(len(eligible))]
        acting = [int(shuffled[agent % len(shuffled)]) for agent in range(agents)]
        return RecommenderWorld(data, acting, self.count, streams)


PROBLEM = ProblemEntry(
    name="recommender",
    config=RecommenderProblem,
    summary="ratings of MovieLens or Yelp: one item that the user likes among others, features from an SVD",
    reference="Li et al. 2023, section 5 (MovieLens and Yelp)",
    cites=("li2023asynchronous",),
)
