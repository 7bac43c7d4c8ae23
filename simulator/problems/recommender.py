"""Recommendation as a bandit, from the ratings of MovieLens or Yelp: paper 000, section 5.

paper 000 ("Learning Kernelized Contextual Bandits in a Distributed and Asynchronous Environment") takes the 2,000 users
and the 10,000 items with the most ratings, and 10 features of each from the singular value decomposition of their
rating matrix (0 where there is no rating). An arm is (features of the user, features of an item); ratings above 2 are
positive. A turn offers one positive item and nineteen others; the positive one pays 1, the others 0.

Ours, as the paper leaves it open:

* the arms of a turn are all of one user, the one who acts;
* each agent is one user: the users that can act are shuffled in each replication, and agent a is number a of them, or
a mod U when there are more agents than such users (U), each with draws of its own. Users that are no agent still shape
the features. With ``users_per_agent: all`` all of them act: agent a has the numbers a, a + N, a + 2N, ... of N agents,
one of which is drawn for each turn;
* the nineteen others are drawn from all items that the user has not rated above 2 (``negatives: unliked``), as few
users have nineteen low ratings; or from low ratings alone, and then only users that have so many can act (``rated``);
* the rows of the factors U sqrt(s) and V sqrt(s) are brought to norm 1/sqrt(2), so that arms lie on the unit sphere
(``scale: normalise``); or all divided by the largest norm, which leaves most items next to 0 (``unit_ball``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import svds

from coband.simulator.arrays import FloatArray
from coband.simulator.problems.datasets import DataError, fingerprint, locate
from coband.simulator.problems.ratings import RATINGS, Ratings, read
from coband.simulator.problems.world import (
    Blocks,
    Problem,
    ProblemEntry,
    Spec,
    Streams,
    World,
    check_arm,
    longest_block,
    read_only,
)

FIRST_RATINGS = 1_000
"""Looked at in a file that is too large for a check."""

Scale = Literal["unit_ball", "normalise", "none"]
IntArray = npt.NDArray[np.int64]


class RatingData(Spec):
    """Whose ratings, and where their file is."""

    name: Literal["movielens", "yelp"]
    """movielens: `ratings.csv` or `u.data`; yelp: the reviews, `yelp_academic_dataset_review.json`."""
    path: Path | None = None
    """The original file or its directory, relative to the scenario; null: where `coband data list` looks for it."""


@dataclass(frozen=True, eq=False)
class RatingMatrix:
    """The users and items with the most ratings.

    matrix (users, items): ratings, 0 where there is none; user_names: as in the file.
    """

    matrix: csr_matrix
    user_names: tuple[str, ...]


def most_rated(ratings: Ratings, users: int, items: int) -> RatingMatrix:
    """The part of the ratings that is by the most active users and of the most rated items.

    Equally many ratings: who comes first in the file. A user's last rating of an item counts.
    """
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
    """The most frequent numbers, and by number its place among them or -1."""
    counts = np.bincount(numbers)
    chosen = np.argsort(-counts, kind="stable")[:most].astype(np.int64)
    places = np.full(len(counts), -1, dtype=np.int32)
    places[chosen] = np.arange(len(chosen))
    return chosen, places


def factors(matrix: csr_matrix, rank: int, scale: Scale) -> tuple[FloatArray, FloatArray]:
    """Features of users and items, (users, rank) and (items, rank), from the truncated singular value decomposition.

    Raises:
        DataError: not fewer features than users and items.
    """
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
    divisor = norms if scale == "normalise" else np.full_like(norms, norms.max())
    return read_only(rows / np.where(divisor > 0.0, np.sqrt(2.0) * divisor, 1.0))


@dataclass(frozen=True, eq=False)
class Catalogue:
    """What a world is made of: features, and by user the items that are positive and those that are not."""

    users: FloatArray
    items: FloatArray
    ratings: RatingMatrix
    above: float

    def liked(self, user: int) -> IntArray:
        """Items that the user rated above the threshold."""
        row = self.ratings.matrix[[user]]
        return np.sort(row.indices[row.data > self.above]).astype(np.int64)

    def others(self, user: int, rated: bool) -> IntArray:
        """Items that it did not; all, or only those that it rated."""
        row = self.ratings.matrix[[user]]
        if rated:
            return np.sort(row.indices[row.data <= self.above]).astype(np.int64)
        return np.setdiff1d(np.arange(len(self.items)), self.liked(user))

    def eligible(self, count: int, rated: bool) -> IntArray:
        """Users with a positive item and ``count`` - 1 others."""
        matrix = self.ratings.matrix
        totals = np.diff(matrix.indptr)
        positive = csr_matrix((matrix.data > self.above, matrix.indices, matrix.indptr), shape=matrix.shape)
        liked = np.asarray(positive.sum(axis=1)).ravel().astype(np.int64)
        others = (totals if rated else len(self.items)) - liked
        return np.flatnonzero((liked >= 1) & (others >= count - 1)).astype(np.int64)


@lru_cache(maxsize=4)
def _cached_ratings(name: str, file: Path, changed: int, size: int, users: int, items: int) -> RatingMatrix:
    return most_rated(read(RATINGS[name], file), users, items)


@lru_cache(maxsize=4)
def _cached_factors(ratings: RatingMatrix, rank: int, scale: Scale) -> tuple[FloatArray, FloatArray]:
    return factors(ratings.matrix, rank, scale)


_Turn = tuple[FloatArray, int]
"""What a turn offers: arms (n, d), and which of them pays 1."""


class RecommenderWorld:
    """Turn by turn one user, an item that it likes and others; rewards without noise."""

    fixed_arms = False

    def __init__(self, catalogue: Catalogue, acting: list[IntArray], count: int, rated: bool, streams: Streams) -> None:
        """Args: features and ratings; the users of each agent; arms a turn; others among rated items only; streams."""
        self.dimension = int(catalogue.users.shape[1] + catalogue.items.shape[1])
        self._catalogue, self._acting, self._count, self._rated = catalogue, acting, count, rated
        self._streams = streams
        self._longest = longest_block(len(acting), count * self.dimension)
        self._blocks: dict[int, Blocks[_Turn]] = {}
        self._choices: dict[int, tuple[IntArray, IntArray]] = {}

    def arms(self, agent: int, turn: int) -> FloatArray:
        """(features of the user, features of an item) for each item on offer, (n, d)."""
        return self._at(agent, turn)[0]

    def means(self, agent: int, turn: int) -> FloatArray:
        """1 for the positive item, 0 for the others, (n,)."""
        means = np.zeros(self._count)
        means[self._at(agent, turn)[1]] = 1.0
        return read_only(means)

    def pull(self, agent: int, turn: int, arm: int) -> tuple[float, float]:
        """1 and no regret for the positive item, else 0 and regret 1; an IndexError when there is no such arm."""
        check_arm(arm, self._count)
        right = self._at(agent, turn)[1] == arm
        return float(right), float(not right)

    def describe(self) -> dict[str, Any]:
        """Sizes, and the users that act, by agent, with their names in the file."""
        matrix, names = self._catalogue.ratings.matrix, self._catalogue.ratings.user_names
        return {
            "users": int(matrix.shape[0]),
            "items": int(matrix.shape[1]),
            "ratings": int(matrix.nnz),
            "positive": int((matrix.data > self._catalogue.above).sum()),
            "acting": [[names[user] for user in users.tolist()] for users in self._acting],
        }

    def _at(self, agent: int, turn: int) -> _Turn:
        blocks = self._blocks.get(agent)
        if blocks is None:
            rng = self._streams("world", agent, "arms")
            blocks = self._blocks[agent] = Blocks(
                lambda turns: [self._draw(agent, rng) for _ in range(turns)], self._longest
            )
        return blocks.at(turn)

    def _draw(self, agent: int, rng: np.random.Generator) -> _Turn:
        users = self._acting[agent]
        user = int(users[rng.integers(len(users))]) if len(users) > 1 else int(users[0])
        liked, others = self._items_of(user)
        items = np.empty(self._count, dtype=np.int64)
        items[1:] = others[rng.choice(len(others), self._count - 1, replace=False)]
        place = int(rng.integers(self._count))
        items[0] = items[place]
        items[place] = liked[rng.integers(len(liked))]
        own = np.broadcast_to(self._catalogue.users[user], (self._count, self._catalogue.users.shape[1]))
        return read_only(np.hstack([own, self._catalogue.items[items]])), place

    def _items_of(self, user: int) -> tuple[IntArray, IntArray]:
        found = self._choices.get(user)
        if found is None:
            found = self._choices[user] = self._catalogue.liked(user), self._catalogue.others(user, self._rated)
        return found


class RecommenderProblem(Problem):
    """Ratings of items by users: each turn one item that the user likes, among others."""

    kind: Literal["recommender"]
    """Recommendation from ratings (paper 000, section 5)."""
    data: RatingData
    """The ratings."""
    users: int = Field(default=2_000, ge=1)
    """So many users with the most ratings, or all if there are fewer."""
    items: int = Field(default=10_000, ge=1)
    """So many items with the most ratings, or all if there are fewer."""
    rank: int = Field(default=10, ge=1)
    """Features of a user and of an item each; arms have twice as many."""
    positive: float = Field(default=2.0, ge=0.0)
    """Ratings above it are positive."""
    count: int = Field(default=20, ge=2)
    """Arms of a turn, one of them positive."""
    negatives: Literal["unliked", "rated"] = "unliked"
    """The other arms: unliked, any item that the user has not rated positively; rated, only items that it has rated."""
    users_per_agent: Literal["one", "all"] = "one"
    """one: every agent is one user, drawn anew in each replication, and users serve for several agents where there are
    fewer users; all: the users are dealt out, and each turn draws one of the agent's."""
    scale: Scale = "normalise"
    """normalise: user and item features to norm 1/sqrt(2); unit_ball: divided by the largest norms; none: as is."""

    def peek(self, base: Path | None, most: int) -> str | None:
        """Look at the first ratings of a large file."""
        source = RATINGS[self.data.name]
        file = locate(source, self.data.path, base)
        if file.stat().st_size <= most:
            return None
        return f"the first {len(read(source, file, FIRST_RATINGS).values):,} ratings of {file.name}"

    def build(self, streams: Streams, agents: int, base: Path | None = None) -> World:
        """Decompose the ratings; which users act is drawn from the stream (world, 0, users).

        Raises:
            DataError: the file is missing or malformed, or has too few users or items.
        """
        source = RATINGS[self.data.name]
        file = locate(source, self.data.path, base)
        ratings = _cached_ratings(source.name, *fingerprint(file), self.users, self.items)
        rated = self.negatives == "rated"
        catalogue = Catalogue(*_cached_factors(ratings, self.rank, self.scale), ratings, self.positive)
        eligible = catalogue.eligible(self.count, rated)
        if not len(eligible):
            kind = "it has rated, none of them" if rated else "it has not rated"
            raise DataError(
                f"no user can act: none has an item rated above {self.positive:g} and {self.count - 1} items that "
                f"{kind} above; set count lower.",
                file,
            )
        shuffled = eligible[streams("world", 0, "users").permutation(len(eligible))]
        return RecommenderWorld(catalogue, self._deal(shuffled, agents), self.count, rated, streams)

    def _deal(self, users: IntArray, agents: int) -> list[IntArray]:
        """The users of each agent."""
        if self.users_per_agent == "all" and len(users) > agents:
            return [users[agent::agents] for agent in range(agents)]
        return [users[[agent % len(users)]] for agent in range(agents)]


PROBLEM = ProblemEntry(
    name="recommender",
    config=RecommenderProblem,
    summary="ratings of MovieLens or Yelp: one item that the user likes among others, features from an SVD",
    reference="paper 000, section 5 (MovieLens and Yelp)",
    cites=("li2023asynchronous",),
)
